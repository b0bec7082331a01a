"""wick agent's HTTP side and its configuration, as callers and operators meet them."""

import concurrent.futures
import contextlib
import os
import random
import re
import socket
import subprocess
import urllib.request

import lib
from lib import check, each, program, running
from receivers import free_port
from test_agent import agent, check_ticks

TOKEN = "correct-horse-battery-staple"

# Reads an exposition on stdin with Prometheus' own parser, and says what its server would object to.
PARSE = """
import sys
from prometheus_client.parser import text_string_to_metric_families
seen, names = set(), set()
for family in text_string_to_metric_families(sys.stdin.read()):
    assert family.name not in names, f"{family.name} stands twice"
    names.add(family.name)
    assert family.type in ("counter", "gauge", "histogram"), f"{family.name}: {family.type}"
    assert family.documentation, f"{family.name} has no help"
    for s in family.samples:
        key = (s.name, tuple(sorted(s.labels.items())))
        assert key not in seen, f"{key} stands twice"
        seen.add(key)
    buckets = {}
    for s in family.samples:
        if s.name.endswith("_bucket"):
            rest = tuple(sorted((k, v) for k, v in s.labels.items() if k != "le"))
            buckets.setdefault(rest, []).append((float(s.labels["le"]), s.value))
    for rest, list_ in buckets.items():
        assert list_ == sorted(list_) and list_[-1][0] == float("inf"), (family.name, list_)
        values = [v for _, v in list_]
        assert values == sorted(values), f"{family.name}: buckets aren't cumulative"
        count = [s.value for s in family.samples if s.name.endswith("_count")
                 and tuple(sorted(s.labels.items())) == rest]
        assert count == [values[-1]], f"{family.name}: {count} is not {values[-1]}"
print(len(names), len(seen))
"""


def dial(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.settimeout(60)
    return s


def hear(s):
    """What comes until the end; a reset is one."""
    data = b""
    with contextlib.suppress(OSError), s:
        while chunk := s.recv(65536):
            data += chunk
    return data


def test_metrics_are_what_prometheus_reads():
    python = "/usr/bin/python3"
    probe = subprocess.run([python, "-c", "import prometheus_client"], capture_output=True)
    if probe.returncode:
        raise lib.Skip("python3-prometheus-client is not installed")
    with agent("--push", "file://" + os.path.abspath("out")) as a:
        a.wait_metric("wick_windows_total", 2)
        status, headers, body = a.get("/metrics")
        check(status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers)
    done = subprocess.run([python, "-c", PARSE], input=body.decode(), capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    families, series = map(int, done.stdout.split())
    check(families > 50 and series > families, f"{families} families, {series} series")


def test_go_tool_pprof_pulls():
    lib.need("go")
    with running(program("shares"), "60") as target, agent() as a:
        where = f"http://127.0.0.1:{a.port}/debug/pprof/profile?seconds=2&pid={target.pid}"
        done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-top", where], capture_output=True, text=True,
                              timeout=90, env=dict(os.environ, PPROF_TMPDIR=os.getcwd()))
        check(done.returncode == 0, done.stderr)
        check("hot_a" in done.stdout, lib.shown(done.stdout + done.stderr))
        check("Type: cpu" in done.stdout, lib.shown(done.stdout))


def test_index_and_what_is_not_there():
    with agent() as a:
        status, headers, body = a.get("/debug/pprof/")
        check(status == 200 and headers["Content-Type"].startswith("text/html"), headers)
        check(b'href="profile?seconds=10"' in body, body)
        check(a.get("/debug/pprof/heap")[0] == 404, "heap")
        for query, part in (("seconds=0", b"from 0.1 to 300"), ("hz=100000", b"from 1 to 499"),
                            ("contianer=x", b"unknown parameter"), ("event=nothing", b"cpu-clock")):
            status, _, body = a.get("/debug/pprof/profile?" + query)
            check(status == 400 and part in body, f"{query}: {status} {body}")


def test_callers_are_limited_and_may_leave():
    with agent("--listen-max-callers", "2") as a:
        leaver = dial(a.port)
        leaver.sendall(b"GET /debug/pprof/profile?seconds=200 HTTP/1.1\r\nHost: x\r\n\r\n")
        a.wait_metric("wick_profile_requests", 1)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = list(pool.map(lambda _: a.get("/debug/pprof/profile?seconds=2"), range(4)))
        statuses = sorted(status for status, _, _ in answers)
        check(statuses == [200, 429, 429, 429], statuses)
        for status, headers, _ in answers:
            check(status == 200 or 1 <= int(headers["Retry-After"]) <= 201, headers)
        leaver.close()
        a.wait_metric("wick_http_gone_total", 1)
        a.wait("the session's end", lambda: a.metrics()["wick_profile_requests"] == 0)
        check(a.metrics()["wick_http_busy_total"] == 3, "busy")


def test_rude_callers_cost_nothing():
    """Silent, slow, oversized and senseless ones, while windows go on and profiles are made."""
    chance = random.Random(1)
    with agent("--listen-connections", "32") as a:
        silent = [dial(a.port) for _ in range(20)]
        for s in silent[10:]:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        for i in range(60):
            s = dial(a.port)
            with contextlib.suppress(OSError):
                if i % 3 == 0:
                    s.sendall(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                elif i % 3 == 1:
                    s.sendall(bytes(chance.randrange(256) for _ in range(400)) + b"\r\n\r\n")
                else:
                    s.sendall(b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n")
                s.shutdown(socket.SHUT_WR)
            check(b" 200 " not in hear(s)[:20], f"caller {i} was served")
        check(a.get("/debug/pprof/profile?seconds=1")[0] == 200, "a decent caller isn't served")
        a.wait_metric("wick_http_cut_total", 20, timeout=60)
        for s in silent:
            check(b"200" not in hear(s), "a caller without a request was served")
        m = a.metrics()
        check(m["wick_windows_total"] >= 3, "windows didn't go on")
        check_ticks(m)


def test_token():
    with open("token", "w", encoding="utf-8") as f:
        f.write(TOKEN + "\n")
    port = free_port()
    _, stderr = lib.wick("agent", "--listen", f"0.0.0.0:{port}", status=2)
    check("token" in stderr, stderr)
    with agent("--listen", f"0.0.0.0:{port}", "--listen-token-file", "token") as a:
        a.port = port
        check(a.get("/healthz")[0] == 200, "probes have no token")
        check(a.get("/metrics")[0] == 401, "metrics without a token")
        check(a.get("/debug/pprof/profile?seconds=1")[0] == 401, "a profile without a token")
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")
        request.add_header("Authorization", "Bearer " + TOKEN)
        with urllib.request.urlopen(request, timeout=30) as answer:
            metrics = answer.read().decode()
        with open(f"/proc/{a.process.pid}/cmdline", "rb") as f:
            cmdline = f.read().decode()
        for where, text in (("log", a.log), ("metrics", metrics), ("command line", cmdline)):
            check(TOKEN not in text, f"the token is in the {where}")


CONFIG = """# line 1
freq: 49
window: 5s
push:
  - url: pyroscope+http://me:s3cret@127.0.0.1:1
    headers: { X-Key: s3cret }
labels: { team: a }
"""


def check_config(text, *flags, status=0, variables=()):
    with open("agent.yaml", "w", encoding="utf-8") as f:
        f.write(text)
    prefix = ["env", *variables] if variables else []
    return lib.wick("agent", "--config", "agent.yaml", "--check-config", *flags, status=status,
                    prefix=prefix)


def test_check_config():
    stdout, stderr = check_config(CONFIG, "--window", "7s", variables=["WICK_FREQ=33", "WICK_FERQ=1"])
    text = stdout.decode()
    for line in ("freq: 33  # environment", "window: 7s  # command line", "grace: 10s  # default",
                 'labels: ["team=a"]  # file', "  - url: \"pyroscope+http://me:********@127.0.0.1:1\""):
        check(line in text.splitlines(), f"no '{line}' in{lib.shown(text)}")
    check("s3cret" not in text + stderr, "a secret is printed")
    check("valid" in stderr and "WICK_FERQ" in stderr, stderr)
    again, _ = check_config(re.sub(r"(?m)^(push:|  - |    ).*\n", "", text))
    check("freq: 33  # file" in again.decode(), "what is printed can't be read")


MISTAKES = {
    "freq: 0": "agent.yaml:1:7: freq: '0' is not a number from 1 to 1000",
    "\nfrek: 1": "agent.yaml:2:1: unknown key 'frek' (did you mean freq?)",
    "push:\n  - url: http://x": "agent.yaml:2:10: url",
    "push:\n  - url: file:///x\n    password_file: /nonexistent": "agent.yaml:3:20: password-file: '/nonexistent'",
    "spool: {dri: x}": "agent.yaml:1:9: unknown key",
    "freq: 'a": "agent.yaml:1:9: while scanning a quoted scalar",
}


@each(*MISTAKES)
def test_mistake_in_the_file(text):
    _, stderr = check_config(text, status=2)
    check(MISTAKES[text] in stderr, stderr)


def test_help_names_everything():
    stdout, _ = lib.wick("agent", "--help")
    text = stdout.decode()
    for word in ("--push", "--spool-dir", "--cpu-budget", "SIGHUP", "WICK_", "default: 19"):
        check(word in text, f"{word} is not in the help")
    check("(null)" not in text, "(null) in the help")
