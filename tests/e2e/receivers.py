"""Receivers (tests/receiver) and the driver of delivery (tests/net/deliver.c), for test_delivery*.py.

    with receiver("pyroscope") as server:
        final = deliver(f"pyroscope+http://127.0.0.1:{server.port}", windows=3)
    marks(server)
"""

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys

import build
import lib
from pprof import Profile

RECEIVER = os.path.join(build.ROOT, "tests", "receiver", "receiver.py")
DELIVER = os.path.join(os.path.dirname(lib.WICK), "net", "deliver")
SCHEMES = {
    "pyroscope": "pyroscope+http",
    "ingest": "pyroscope-ingest+http",
    "profefe": "profefe+http",
    "otlp": "otlp+http",
    "parca": "parca+grpc",
}
DROPS = ("queue_full", "expired", "spool_full", "spool_torn", "encoding", "shutdown")


def python():
    """An interpreter that has Google's protobuf and gRPC: the distribution's, if not ours."""
    if importlib.util.find_spec("google") and importlib.util.find_spec("grpc"):
        return sys.executable
    if os.path.isdir("/usr/lib/python3/dist-packages/grpc"):
        return "/usr/bin/python3"
    raise lib.Skip("no Python with protobuf and grpc")


class Receiver:
    def __init__(self, protocol, directory, port):
        self.protocol, self.directory, self.port = protocol, directory, int(port)

    @property
    def url(self):
        return f"{SCHEMES[self.protocol]}://127.0.0.1:{self.port}"

    def lines(self, name):
        try:
            with open(os.path.join(self.directory, name), encoding="utf-8") as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    @property
    def stored(self):
        """What the server has after it has recognised what came twice."""
        return [s for s in self.lines("stored") if not s["again"]]

    def profile(self, stored):
        """One of .stored as it came; not of OTLP."""
        return Profile.read(os.path.join(self.directory, stored["hash"]))

    @property
    def marks(self):
        return sorted(s["mark"] for s in self.stored)

    @property
    def requests(self):
        return self.lines("requests")

    def fault(self, words=""):
        path = os.path.join(self.directory, "fault")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(words)
        os.rename(path + ".new", path)

    def check(self):
        complaints = self.lines("complaints")
        lib.check(not complaints, f"{self.protocol} complains: {complaints[:5]}")


@contextlib.contextmanager
def receiver(protocol, *options, directory=None, port=0, fault="", strict=True):
    directory = directory or f"at-{protocol}"
    os.makedirs(directory, exist_ok=True)
    argv = [python(), RECEIVER, "--protocol", protocol, "--directory", directory, "--port", port, *options]
    made = Receiver(protocol, directory, port)
    made.fault(fault)
    with lib.running(*argv, lines=1) as process:
        lib.check(process.lines[0], "the receiver doesn't start")
        made.port = int(process.lines[0][0])
        yield made
    if strict:
        made.check()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def arguments(urls, options):
    argv = [DELIVER]
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            argv += ["--" + name.replace("_", "-"), str(one)]
    return argv + list(urls)


def check_accounts(s):
    """put + found = sent + refused + dropped + queued + spooled (delivery.h)"""
    fates = s["sent"] + s["refused"] + s["queued"] + s["spooled"] + sum(s[d] for d in DROPS)
    lib.check(s["put"] + s["found"] == fates, f"the accounts don't add up: {s}")


def finals(text):
    """The last word on each sink; every line on the way must add up as well."""
    lines = [json.loads(line) for line in text.splitlines()]
    for s in lines:
        if s["final"]:
            check_accounts(s)
    found = [s for s in lines if s["final"]]
    return found if len(found) != 1 else found[0]


def deliver(*urls, timeout=60, env=None, **options):
    options.setdefault("grace", 10000)
    environment = {**os.environ, "no_proxy": "*", **(env or {})}
    done = subprocess.run(arguments(urls, options), capture_output=True, text=True, timeout=timeout, env=environment)
    lib.check(not done.returncode, f"deliver exits {done.returncode}:{lib.shown(done.stderr)}")
    lib.check(not done.stderr, f"deliver says:{lib.shown(done.stderr)}")
    return finals(done.stdout)


@contextlib.contextmanager
def delivering(*urls, **options):
    """Runs it beside; yields the process. Killed at the end if it still runs."""
    options.setdefault("grace", 10000)
    environment = {**os.environ, "no_proxy": "*"}
    process = subprocess.Popen(arguments(urls, options), stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.stdout.close()
        process.wait()


def expected(windows, series=1, samples=1):
    return sorted(1000 * w + s + samples for w in range(windows) for s in range(series))
