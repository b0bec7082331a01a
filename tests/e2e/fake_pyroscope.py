"""A stand-in for a Pyroscope server, for tests: says yes and no to a push as the real one does.

    python3 fake_pyroscope.py --directory DIR [--port PORT] [--answer STATUS[:CODE[:MESSAGE]]]
                              [--tenant] [--prefix /PATH]

Prints its port on a line of its own once it listens. It knows one method, POST
/push.v1.PusherService/Push (Connect unary, protobuf). What it accepts is stored: DIR/N.json
(labels, headers) and DIR/N.pb.gz (the profile as sent), for N = 0, 1, ... --answer makes it refuse
everything so; a STATUS alone has an empty body. --tenant wants the header X-Scope-OrgID.

The rules are those of a server with default limits, as seen from outside, odd ones included: 415
without a body for any other Content-Type, 500 "unknown" for what can't be decoded, 429 for more
than 2 MiB at once, 200 for a profile without samples, which is dropped.
"""

import argparse
import gzip
import http.server
import json
import os
import re
import threading
import time
import zlib

from pprof import Profile, Wire

PATH = "/push.v1.PusherService/Push"
STATUS = {
    "invalid_argument": 400,
    "unauthenticated": 401,
    "not_found": 404,
    "resource_exhausted": 429,
    "unknown": 500,
    "unimplemented": 501,
    "unavailable": 503,
}
MAX_LABELS, MAX_NAME, MAX_VALUE = 30, 1024, 2048
MAX_SAMPLES, MAX_RAW, BURST = 16000, 4 << 20, 2 << 20
OLDEST, NEWEST = 3600, 600  # seconds before and after now


class Refusal(Exception):
    def __init__(self, code, message, status=None):
        super().__init__(message)
        self.code = code
        self.status = status or STATUS[code]


def message(data, name):
    """The fields of a message of the request: (number, bytes)."""
    try:
        found = list(Wire(data))
    except ValueError as e:
        raise Refusal("invalid_argument", f"unmarshal message: {name}: {e}") from None
    if any(isinstance(value, int) for _, value in found):
        raise Refusal("invalid_argument", f"unmarshal message: {name}: wrong wire type")
    return found


def text(data, what):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("invalid_argument", f"unmarshal message: {what}: invalid UTF-8") from None


def read_labels(pairs):
    labels = {}
    for pair in pairs:
        f = dict(message(pair, "LabelPair"))
        name, value = text(f.get(1, b""), "name"), text(f.get(2, b""), "value")
        if name in labels:
            raise Refusal("invalid_argument", f"duplicate label name: '{name}'")
        labels[name] = value
    return labels


def check_labels(labels):
    if not labels:
        raise Refusal("invalid_argument", "error at least one label pair is required per profile")
    if len(labels) > MAX_LABELS:
        text = f"profile series has {len(labels)} label names; limit {MAX_LABELS}"
        raise Refusal("invalid_argument", text)
    if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", labels.get("__name__", "")):
        raise Refusal("invalid_argument", "invalid metric name")
    if labels.setdefault("service_name", "unknown_service") == "":
        raise Refusal("invalid_argument", "service name is not provided")
    for name, value in labels.items():
        if not re.fullmatch(r"[a-zA-Z_.][a-zA-Z0-9_.]*", name):
            raise Refusal("invalid_argument", f"invalid labels: invalid label name '{name}'")
        if len(name.encode()) > MAX_NAME:
            raise Refusal("invalid_argument", f"label name too long: '{name}'")
        if len(value.encode()) > MAX_VALUE:
            raise Refusal("invalid_argument", f"label value too long: '{name}'")


def unpack(raw):
    try:
        data = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        profile = Profile.decode(data)
    except (ValueError, EOFError, OSError, zlib.error) as e:
        raise Refusal("unknown", f"failed to parse profile: {e}") from None
    if not profile.sample_types:
        raise Refusal("unknown", "failed to parse profile: no sample type")
    return profile, len(data)


def check_profile(profile, size, labels):
    if size > MAX_RAW:
        text = f"profile of {size} B exceeds the size limit (max_profile_size_byte, {MAX_RAW})"
        raise Refusal("invalid_argument", text)
    counted = size + sum(len(name.encode()) + len(labels[name].encode()) for name in labels)
    if counted > BURST:
        text = f"push rate limit ({BURST} B) exceeded while adding {counted} B"
        raise Refusal("resource_exhausted", text)
    if len(profile.samples) > MAX_SAMPLES:
        text = f"the profile has {len(profile.samples)} samples, the limit is {MAX_SAMPLES}"
        raise Refusal("invalid_argument", text)
    if any("-" in name for name, _ in profile.sample_types):
        raise Refusal("invalid_argument", "sample type contains -")
    age = time.time() - profile.time_nanos / 1e9
    if profile.time_nanos and not -NEWEST <= age <= OLDEST:
        text = f"profile is outside of ingestion window ({age:.0f} s old)"
        raise Refusal("invalid_argument", text)


def has_samples(profile):
    return any(any(v > 0 for v in s.values) for s in profile.samples)


class Store:
    def __init__(self, directory):
        self.directory = directory
        self.lock = threading.Lock()
        self.n = 0

    def add(self, labels, headers, raw):
        with self.lock:
            base = os.path.join(self.directory, str(self.n))
            self.n += 1
        with open(base + ".pb.gz", "wb") as f:
            f.write(raw)
        with open(base + ".json", "w", encoding="utf-8") as f:
            json.dump({"labels": labels, "headers": headers}, f, indent=1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        options = self.server.options
        try:
            if options.answer:
                status, code, text = (options.answer.split(":", 2) + ["", ""])[:3]
                raise Refusal(code, text, int(status))
            if self.path != options.prefix + PATH:
                return self.reply(404, "text/plain; charset=utf-8", b"404 page not found\n")
            if self.headers.get("Content-Type") != "application/proto":
                return self.reply(415, None, b"")
            if options.tenant and not self.headers.get("X-Scope-OrgID"):
                raise Refusal("unauthenticated", "no org id")
            self.push(self.decompress(body))
        except Refusal as no:
            if not no.code:
                return self.reply(no.status, None, b"")
            error = json.dumps({"code": no.code, "message": str(no)}).encode()
            return self.reply(no.status, "application/json", error)
        return self.reply(200, "application/proto", b"")

    def do_GET(self):
        ready = self.path == "/ready"
        self.reply(200 if ready else 404, "text/plain", b"ready\n" if ready else b"not found\n")

    def decompress(self, body):
        encoding = self.headers.get("Content-Encoding", "identity")
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise Refusal("unimplemented", f'unknown compression "{encoding}"')
        try:
            return gzip.decompress(body)
        except (EOFError, OSError, zlib.error) as e:
            raise Refusal("invalid_argument", f"decompress: {e}") from None

    def push(self, body):
        """Every series is tried; the first error is told, the good ones are stored."""
        first = None
        for _, series in message(body, "PushRequest"):
            try:
                self.push_series(message(series, "RawProfileSeries"))
            except Refusal as no:
                first = first or no
        if first:
            raise first

    def push_series(self, fields):
        labels = read_labels(value for number, value in fields if number == 1)
        check_labels(labels)
        for number, value in fields:
            if number == 2:
                raw = dict(message(value, "RawSample")).get(1, b"")
                profile, size = unpack(raw)
                check_profile(profile, size, labels)
                if has_samples(profile):
                    self.server.store.add(labels, dict(self.headers.items()), raw)

    def reply(self, status, kind, body):
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", required=True, help="where to store what is accepted")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any")
    parser.add_argument("--answer", metavar="STATUS[:CODE[:MESSAGE]]", help="refuse everything so")
    parser.add_argument("--tenant", action="store_true", help="want X-Scope-OrgID")
    parser.add_argument("--prefix", default="", help="before the path of the method")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.options = options
    server.store = Store(options.directory)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
