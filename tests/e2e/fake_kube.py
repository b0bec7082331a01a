"""A stand-in for a Kubernetes API server and for kubelet, for tests: lists and watches pods, and fails in
the ways that real ones do.

    with FakeKube(token="secret") as kube:
        kube.put(pod("web", containers={"api": "3f2a..."}))
        ... GET kube.url/api/v1/pods?..., GET kube.url/pods ...
        kube.faults.append("500")   # for the next request

Faults, each for one request: an HTTP status ("500", "429"); "malformed" (200, but no JSON), "truncated"
(half an answer), "huge" (a list over every limit), "hang" (nothing for 3 s), "close" (no answer at
all), "redirect"; for a watch also "gone" (an ERROR event with code 410) and "garbage" (a line that is no
event). Every request must carry the token, if there is one; each is in .requests as (path, query).
"""

import contextlib
import http.server
import json
import ssl
import threading
import time
import urllib.parse

NODE = "n1"


def pod(name, namespace="shop", uid=None, containers=(), labels=None, annotations=None, owner=None):
    """A v1 Pod. containers: {name: id}; owner: (kind, name)."""
    meta = {"name": name, "namespace": namespace, "uid": uid or uid_of(name)}
    meta["labels"], meta["annotations"] = labels or {}, annotations or {}
    if owner:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    statuses = [{"name": n, "containerID": f"containerd://{i}"} for n, i in dict(containers).items()]
    return {"metadata": meta, "spec": {"nodeName": NODE}, "status": {"containerStatuses": statuses}}


def uid_of(name):
    digits = name.encode().hex().ljust(32, "0")[:32]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        kube = self.server.kube
        parts = urllib.parse.urlsplit(self.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(parts.query).items()}
        with kube.lock:
            kube.requests.append((parts.path, query))
            watching = "watch" in query
            fault = kube.next_fault(watching)
        if kube.token and self.headers["Authorization"] != f"Bearer {kube.token}":
            self.status(401, "Unauthorized")
        elif fault and self.fail(fault):
            pass
        elif parts.path == "/pods":
            self.send({"kind": "PodList", "items": list(kube.pods.values())})
        elif parts.path != "/api/v1/pods" or query.get("fieldSelector") != f"spec.nodeName={NODE}":
            self.status(404, f"no {self.path}")
        elif watching:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.watch(query, fault)
        else:
            self.list(query)

    def send(self, answer, status=200, **headers):
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def status(self, code, message, **headers):
        self.send({"kind": "Status", "code": code, "message": message}, code, **headers)

    def fail(self, fault):
        if fault.isdigit():
            # says the token back, as a careless proxy might
            self.status(int(fault), f"{fault}: {self.headers['Authorization']}", Retry_After=1)
        elif fault == "malformed":
            self.send(b"<html>not what you think</html>")
        elif fault == "truncated":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"kind":"PodList","items":[')
            self.close_connection = True
        elif fault == "huge" and "limit" not in self.path:
            self.send(b" " * (17 << 20))
        elif fault == "hang":
            time.sleep(3)
            self.close_connection = True
        elif fault == "close":
            self.close_connection = True
        elif fault == "redirect":
            self.status(302, "elsewhere", Location=self.server.kube.url + "/stolen")
        else:
            return False
        return True

    def list(self, query):
        kube = self.server.kube
        with kube.lock:
            pods, version = list(kube.pods.values()), kube.version
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 1 << 30))
        meta = {"resourceVersion": str(version)}
        if start + limit < len(pods):
            meta["continue"] = str(start + limit)
        self.send({"kind": "PodList", "metadata": meta, "items": pods[start : start + limit]})

    def watch(self, query, fault):
        kube = self.server.kube
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if fault == "gone":
            self.event("ERROR", {"kind": "Status", "code": 410, "message": "too old"})
        elif fault == "garbage":
            self.chunk(b"no event\n")
        else:
            seen, end = int(query["resourceVersion"]), time.monotonic() + kube.watch_seconds
            while time.monotonic() < end and not kube.stopping:
                with kube.lock:
                    new = [e for e in kube.events if e[0] > seen]
                for seen, kind, thing in new:
                    thing["metadata"]["resourceVersion"] = str(seen)
                    self.event(kind, thing)
                time.sleep(0.02)
        self.chunk(b"")

    def event(self, kind, thing):
        line = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
        self.chunk(line[:10])  # lines don't keep to packets
        self.chunk(line[10:])

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


class FakeKube:
    def __init__(self, token=None, watch_seconds=60, certificate=None):
        self.token, self.watch_seconds = token, watch_seconds
        self.lock = threading.Lock()
        self.pods, self.events, self.version = {}, [], 100
        self.faults, self.watch_faults, self.requests = [], [], []
        self.stopping = False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.kube = self
        self.server.handle_error = lambda *_: None  # a client that has turned away
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        if certificate:  # (certificate, key), as file names
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.url = self.url.replace("http", "https")

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.server.shutdown()
        self.server.server_close()

    def next_fault(self, watching):
        faults = self.watch_faults if watching else self.faults
        return faults.pop(0) if faults else None

    def change(self, kind, thing):
        with self.lock:
            self.version += 1
            name = thing["metadata"]["name"]
            if kind == "DELETED":
                self.pods.pop(name, None)
            else:
                self.pods[name] = thing
            self.events.append((self.version, kind, thing))

    def put(self, thing):
        self.change("MODIFIED" if thing["metadata"]["name"] in self.pods else "ADDED", thing)

    def delete(self, thing):
        self.change("DELETED", thing)
