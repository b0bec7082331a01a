"""Servers that take profiles as the real ones do, and refuse what those were seen to refuse, to break
on, or to lose in silence; for tests of delivery.

    python3 receiver.py --protocol pyroscope --directory DIR [options]

Prints its port when it listens. What is accepted becomes a line of JSON in DIR/stored, every request
one in DIR/requests, and its bytes a file named by their SHA-256. What no honest client sends (nothing to store, a time that another profile of the
series has) is noted in DIR/complaints, even where the real server says yes to it.
DIR/fault, read at each request, makes it misbehave: a line of words from Fault.

Bytes are decoded by Google's protobuf, whose modules protoc makes from proto/ and this directory.
"""

import argparse
import base64
import contextlib
import hashlib
import http.server
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

import check

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def compile_protos():
    """Into build/receiver, unless that is newer than everything it comes from."""
    out = os.path.join(ROOT, "build", "receiver")
    sources = {f"{ROOT}/proto": ("profile", "push", "parca"), HERE: ("otlp_profiles",)}
    files = [(directory, f"{directory}/{name}.proto") for directory, names in sources.items() for name in names]
    newest = max(os.path.getmtime(path) for _, path in files)
    if not os.path.exists(f"{out}/made") or os.path.getmtime(f"{out}/made") < newest:
        os.makedirs(out, exist_ok=True)
        for directory, path in files:
            subprocess.run(["protoc", f"--proto_path={directory}", f"--python_out={out}", path], check=True)
        with open(f"{out}/made", "w", encoding="utf-8"):
            pass
    sys.path.insert(0, out)


compile_protos()

from google.protobuf.message import DecodeError  # noqa: E402
import otlp_profiles_pb2 as otlp  # noqa: E402
import parca_pb2 as parca  # noqa: E402
import push_pb2 as push  # noqa: E402

Refusal = check.Refusal


class Store:
    """What was accepted, as lines of JSON; thread-safe."""

    def __init__(self, directory):
        self.directory = directory
        self.lock = threading.Lock()
        self.identities = {}
        self.remember()

    def line(self, name, what):
        with self.lock, open(os.path.join(self.directory, name), "a", encoding="utf-8") as f:
            f.write(json.dumps(what) + "\n")

    def complain(self, text):
        self.line("complaints", text)

    def remember(self):
        """What was stored before a restart is known."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.directory, "stored"), encoding="utf-8") as f:
            for known in map(json.loads, f):
                self.identities[(tuple(sorted(known["labels"].items())), known["time"])] = known["hash"]

    def add(self, labels, profile, raw, **more):
        """labels: a dict with __name__; raw: what tells a retry from another profile."""
        identity, digest = (tuple(sorted(labels.items())), profile.time_nanos), hashlib.sha256(raw).hexdigest()
        with self.lock:
            again = identity in self.identities
            known = self.identities.setdefault(identity, digest)
        with open(os.path.join(self.directory, digest), "wb") as f:
            f.write(raw)
        if known != digest:
            self.complain(f"two profiles of {labels} at {profile.time_nanos}: one is lost")
        self.line("stored", {"labels": labels, "again": again, "time": profile.time_nanos, "mark": profile.mark,
                             "samples": profile.nsamples, "type": profile.type_id, "raw": profile.raw_size,
                             "names": profile.names[:5], "hash": digest, **more})


class Fault:
    """DIR/fault: "status 503 retry-after 2 code CODE" (code none: no body), "hang 10", "slow 0.3", "close", "half", "garbage",
    "partial"; "only N FAULT..." for requests whose body holds the bytes N."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "fault")

    def words(self, body):
        try:
            with open(self.path, encoding="utf-8") as f:
                words = f.read().split()
        except OSError:
            return []
        if words[:1] == ["only"]:
            return words[2:] if words[1].encode() in body else []
        return words


def is_token(path, header):
    with open(path, encoding="utf-8") as f:
        return header in [f"Bearer {line.strip()}" for line in f]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_):
        pass

    # ---- replies ----

    def reply(self, status, kind=None, body=b"", headers=()):
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def misbehave(self, words):
        """True: the request has been dealt with."""
        if words[:1] == ["slow"]:
            time.sleep(float(words[1]))
            return False
        if words[:1] == ["hang"]:
            time.sleep(float(words[1]))
            self.close_connection = True
            return True
        if words[:1] == ["close"]:  # without an answer
            self.close_connection = True
            return True
        if words[:1] == ["half"]:  # our side closes within the answer
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.close_connection = True
            return True
        if words[:1] == ["garbage"]:
            self.wfile.write(b"\x15\x03\x01 no HTTP at all\r\n\r\n")
            self.close_connection = True
            return True
        if words[:1] == ["status"]:
            more = [("Retry-After", words[3])] if words[2:3] == ["retry-after"] else []
            code = words[words.index("code") + 1] if "code" in words else "unavailable"
            body = json.dumps({"code": code, "message": "as the test wants it"}).encode()
            if code == "none":
                self.reply(int(words[1]), None, b"", more)
            else:
                self.reply(int(words[1]), "application/json", body, more)
            return True
        return False

    # ---- requests ----

    def authorized(self):
        want = self.server.options
        got = self.headers.get("Authorization", "")
        if want.user and got != "Basic " + base64.b64encode(want.user.encode()).decode():
            return False
        if want.bearer and not is_token(want.bearer, got):
            return False
        return not want.tenant or self.headers.get("X-Scope-OrgID") == want.tenant

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        store, words = self.server.store, self.server.fault.words(body)
        note = {"path": self.path.split("?")[0], "headers": dict(self.headers.items()), "fault": words, "bytes": len(body),
                "connection": self.client_address[1], "time": time.time()}
        store.line("requests", note)
        if self.misbehave(words):
            return
        if not self.authorized():
            self.reply(401, "application/json", b'{"code":"unauthenticated","message":"no org id"}')
            return
        self.server.protocol(self, body)

    def do_PUT(self):
        self.reply(200)  # profefe: nothing stored


# ---- Pyroscope ----


def refuse_as_connect(handler, no):
    error = json.dumps({"code": no.code, "message": str(no)}).encode()
    handler.reply(no.status, "application/json", error)


def pyroscope(handler, body):
    if handler.path != handler.server.options.prefix + "/push.v1.PusherService/Push":
        return handler.reply(404, "text/plain; charset=utf-8", b"404 page not found\n")
    if handler.headers.get("Content-Type") != "application/proto":
        return handler.reply(415)
    encoding = handler.headers.get("Content-Encoding", "identity")
    try:
        if encoding not in ("identity", "gzip"):
            raise Refusal("unimplemented", f"unknown compression {encoding}")
        try:
            request = push.PushRequest.FromString(check.gunzip(body) if encoding == "gzip" else body)
        except DecodeError as e:
            raise Refusal("invalid_argument", f"unmarshal message: {e}") from None
        push_all(handler.server.store, request)
    except Refusal as no:
        return refuse_as_connect(handler, no)
    return handler.reply(200, "application/proto")


def push_all(store, request):
    """Every series is tried, the first error is told, the good ones are stored."""
    first = None
    for series in request.series:
        try:
            labels = check.labels_of((pair.name, pair.value) for pair in series.labels)
            check.series(labels)
            for sample in series.samples:
                profile = check.pprof(sample.raw_profile, store.complain)
                check.push_limits(profile, labels)
                store.add(labels, profile, sample.raw_profile, protocol="pyroscope")
        except Refusal as no:
            first = first or no
    if first:
        raise first


# ---- Pyroscope's older way in ----

APP = re.compile(r"[A-Za-z0-9_.\-/]+")


def parse_name(name):
    """APP{KEY=VALUE,...} without any escaping."""
    app, brace, rest = name.partition("{")
    if not APP.fullmatch(app):
        raise Refusal("invalid_argument", f"name: invalid app name '{app}'")
    labels = {"service_name": app}
    if brace and not rest.endswith("}"):
        raise Refusal("invalid_argument", "name: no closing brace")
    for pair in filter(None, rest[:-1].split(",")):
        key, equal, value = pair.partition("=")
        if not equal or not re.fullmatch(r"[A-Za-z0-9_.]+", key) or "}" in value:
            raise Refusal("invalid_argument", f"name: invalid label '{pair}'")
        labels[key.strip()] = value.strip()
    return labels


def form_fields(handler, body):
    kind = handler.headers.get("Content-Type", "")
    found = re.fullmatch(r"multipart/form-data; boundary=([A-Za-z0-9'()+_,./:=?-]{1,70})", kind)
    if not found:
        raise Refusal("unknown", "no multipart form", 422)
    mark = b"--" + found.group(1).encode()
    parts = (b"\r\n" + body).split(b"\r\n" + mark)
    if parts[0] or parts[-1] != b"--\r\n":
        raise Refusal("unknown", "multipart: NextPart: EOF", 422)
    fields = {}
    for part in parts[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]+)"', head).group(1).decode()
        fields[name] = content
    return fields


def ingest(handler, body):
    url = urllib.parse.urlsplit(handler.path)
    query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True, strict_parsing=True))
    if url.path != "/ingest":
        return handler.reply(404, "text/plain; charset=utf-8", b"404 page not found\n")
    try:
        if "format" in query:
            raise Refusal("unknown", "failed to parse profile: a form is no profile", 422)
        labels = parse_name(query["name"])
        profile_bytes = form_fields(handler, body)["profile"]
        profile = check.pprof(profile_bytes, handler.server.store.complain)
        labels = {"__name__": profile.metric, **labels}
        check.series(labels)
        check.push_limits(profile, labels)
        if not query["from"].isdigit() or len(query["from"]) not in (10, 13, 16, 19):
            raise Refusal("invalid_argument", "bad time")
        handler.server.store.add(labels, profile, profile_bytes, protocol="ingest")
    except Refusal as no:
        if no.code == "unknown":
            no.status = 422
        return refuse_as_connect(handler, no)
    return handler.reply(200)


# ---- profefe ----

PROFEFE_TYPES = ("cpu", "heap", "block", "mutex", "goroutine", "threadcreate", "other", "trace")


def profefe_labels(text):
    labels = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        labels[urllib.parse.unquote_plus(key)] = urllib.parse.unquote_plus(value)
    return labels


def profefe(handler, body):
    def answer(code, **what):
        handler.reply(code, "text/plain; charset=utf-8", json.dumps({"code": code, **what}).encode())

    url = urllib.parse.urlsplit(handler.path)
    query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True)) if ";" not in url.query else {}
    if url.path != "/api/0/profiles":
        return answer(404, error="nothing found")
    if not query.get("service"):
        return answer(400, error='bad request: missing "service"')
    if query.get("type") not in PROFEFE_TYPES:
        return answer(400, error=f'bad request: bad profile type "{query.get("type")}"')
    if handler.headers.get("Content-Encoding"):
        handler.server.store.complain("profefe doesn't know Content-Encoding")
    try:
        labels = profefe_labels(query.get("labels", ""))
        profile = check.pprof(body, handler.server.store.complain)
        if (query["type"] == "cpu") != (profile.metric == "process_cpu"):
            handler.server.store.complain(f"type {query['type']} for {profile.type_id}")
        names = {"__name__": profile.metric, "service_name": query["service"], **labels}
        handler.server.store.add(names, profile, body, protocol="profefe")
    except Refusal as no:
        return answer(400, error=f"malformed profile ({no})")
    return answer(200, body={"id": "P0", "type": query["type"], "service": query["service"]})


# ---- OTLP ----


def otlp_error(handler, status, text):
    body = otlp.RpcStatus(code=3, message=text).SerializeToString()
    handler.reply(status, "application/x-protobuf", body)


def otlp_profiles(handler, body):
    if handler.path != "/v1development/profiles":
        return handler.reply(404, "text/plain", b"404 page not found\n")
    if handler.headers.get("Content-Type") != "application/x-protobuf":
        return handler.reply(415, "text/plain", b"415 unsupported media type")
    encoding = handler.headers.get("Content-Encoding", "")
    if encoding not in ("", "gzip"):
        return handler.reply(400, "text/plain", b"unsupported Content-Encoding")
    if "partial" in handler.server.fault.words(body):
        part = otlp.PartialSuccess(rejected_profiles=1, error_message="not this one")
        return handler.reply(200, "application/x-protobuf", otlp.ExportResponse(partial_success=part).SerializeToString())
    try:
        request = otlp.ExportRequest.FromString(check.gunzip(body) if encoding else body)
        for labels, profile, raw in check.otlp(request, otlp, handler.server.options.otlp):
            handler.server.store.add(labels, profile, raw, protocol="otlp")
    except (Refusal, DecodeError) as no:
        return otlp_error(handler, 400, str(no))
    return handler.reply(200, "application/x-protobuf")


# ---- Parca ----


def parca_server(options, store, fault):
    import grpc
    from concurrent import futures

    def write_raw(body, context):
        words = fault.words(body)
        meta = dict(context.invocation_metadata())
        store.line("requests", {"fault": words, "headers": {k: str(v) for k, v in meta.items()}, "bytes": len(body)})
        if words[:1] == ["hang"] or words[:1] == ["slow"]:
            time.sleep(float(words[1]))
        if words[:1] == ["grpc"]:
            context.abort(getattr(grpc.StatusCode, words[1]), "as the test wants it: 100% \u00e9")
        if options.bearer and not is_token(options.bearer, meta.get("authorization", "")):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "bad token")
        try:
            write_all(store, parca.WriteRawRequest.FromString(body))
        except DecodeError as e:
            context.abort(grpc.StatusCode.INTERNAL, f"unmarshal: {e}")
        except Refusal as no:
            code = "UNKNOWN" if no.code == "unknown" else "INVALID_ARGUMENT"
            context.abort(getattr(grpc.StatusCode, code), str(no))
        return b""

    methods = {"WriteRaw": grpc.unary_unary_rpc_method_handler(write_raw)}
    service = "parca.profilestore.v1alpha1.ProfileStoreService"
    server = grpc.server(futures.ThreadPoolExecutor(16))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    if options.cert:
        with open(options.key, "rb") as key, open(options.cert, "rb") as cert:
            credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
        port = server.add_secure_port(f"127.0.0.1:{options.port}", credentials)
    else:
        port = server.add_insecure_port(f"127.0.0.1:{options.port}")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


def write_all(store, request):
    for series in request.series:
        if not series.HasField("labels"):
            store.complain("a series without labels: the server dies")
            os._exit(3)
        labels = check.labels_of((label.name, label.value) for label in series.labels.labels)
        check.parca_labels(labels)
        for sample in series.samples:
            profile = check.pprof(sample.raw_profile, store.complain)
            if not request.normalized:
                store.complain("addresses aren't said to be normalised")
            store.add(labels, profile, sample.raw_profile, protocol="parca")


# ---- serving ----

PROTOCOLS = {"pyroscope": pyroscope, "ingest": ingest, "profefe": profefe, "otlp": otlp_profiles}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that went away


def http_server(options, store, fault):
    server = Server(("127.0.0.1", options.port), Handler)
    server.options, server.store, server.fault = options, store, fault
    server.protocol = PROTOCOLS[options.protocol]
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)
        if options.client_ca:
            context.load_verify_locations(options.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", required=True, choices=[*PROTOCOLS, "parca"])
    parser.add_argument("--directory", required=True)
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any")
    parser.add_argument("--cert", help="with --key: speak TLS")
    parser.add_argument("--key")
    parser.add_argument("--client-ca", help="want a client certificate of this authority")
    parser.add_argument("--user", metavar="USER:PASSWORD")
    parser.add_argument("--bearer", metavar="FILE", help="the tokens that may pass, a line each")
    parser.add_argument("--tenant")
    parser.add_argument("--prefix", default="", help="before the path of Push")
    parser.add_argument("--otlp", default="1.10", choices=["1.9", "1.10"], help="revision of the protocol")
    options = parser.parse_args()
    store, fault = Store(options.directory), Fault(options.directory)
    if options.protocol == "parca":
        parca_server(options, store, fault)
    else:
        http_server(options, store, fault)


if __name__ == "__main__":
    main()
