"""Delivery while servers are slow, silent, broken or away, disks full, and wick killed: nothing is lost that
fits the spool, nothing is stored twice, and the accounts add up (receivers.finals checks them)."""

import contextlib
import glob
import os
import signal
import subprocess
import time

import lib
from receivers import deliver, delivering, expected, finals, free_port, receiver

BESIDE = True

SOON = dict(linger=30000, grace=1000)


def expect(server, marks):
    lib.check(server.marks == marks, f"{server.protocol} has {server.marks[:20]}, not {marks[:20]}")


def wait_for(condition, what, timeout=30):
    deadline = time.monotonic() + timeout
    while not condition():
        lib.check(time.monotonic() < deadline, f"waited {timeout} s for {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def tmpfs(size, name="small"):
    os.mkdir(name)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", name], capture_output=True)
    if done.returncode:
        raise lib.Skip("can't mount a tmpfs")
    try:
        yield os.path.join(os.getcwd(), name)
    finally:
        subprocess.run(["umount", "-l", name], check=False)


# ---- servers that fail for a while ----

PASSING = ["status 503", "status 500 code internal", "status 502", "close", "half", "garbage", "hang 5"]


@lib.each(*PASSING)
def test_passing_trouble(fault):
    """Once it is over everything is there, once."""
    with receiver("pyroscope", fault=fault) as server:
        with delivering(server.url + "?timeout=400ms", windows=2, series=3, window=300, spool="spool", **SOON) as process:
            wait_for(lambda: len(server.requests) >= 5, "requests that fail")
            lib.check(not server.stored, "it was stored nevertheless")
            server.fault()
            final = finals(process.communicate()[0])
    expect(server, expected(2, 3))
    lib.check(final["sent"] == 6 and final["retried"] and final["error"], final)


@lib.each("grpc UNAVAILABLE", "grpc RESOURCE_EXHAUSTED", "hang 1")
def test_passing_trouble_of_parca(fault):
    with receiver("parca", fault=fault) as server:
        with delivering(server.url + "?timeout=400ms", windows=2, series=2, window=300, spool="spool", **SOON) as process:
            wait_for(lambda: len(server.requests) >= 3, "requests that fail")
            server.fault()
            final = finals(process.communicate()[0])
    lib.check(final["sent"] == 4, final)
    lib.check(sorted({s["mark"] for s in server.stored}) == expected(2, 2), server.marks)


def test_without_a_spool():
    with receiver("pyroscope", fault="status 503") as server:
        with delivering(server.url, windows=2, series=3, window=300, **SOON) as process:
            wait_for(lambda: len(server.requests) >= 5, "requests that fail")
            server.fault()
            final = finals(process.communicate()[0])
    expect(server, expected(2, 3))
    lib.check(final["sent"] == 6, final)


REPEATING = ["status 400 code invalid_argument", "status 500 code unknown", "status 401 code unauthenticated",
             "status 413 code x", "status 404 code x", "status 415 code x"]


@lib.each(*REPEATING)
def test_trouble_that_repeats(fault):
    """One request for each profile, no more, and the server's words."""
    with receiver("pyroscope", fault=fault) as server:
        final = deliver(server.url, windows=2, series=2, spool="spool")
        requests = len(server.requests)
    lib.check(requests == 4 and final["refused"] == 4 and not final["spooled"], final)
    words = "no Pyroscope" if "404" in fault else "as the test wants it"
    lib.check(words in final["error"] or "as the test wants it" in final["error"], final)


@lib.each("grpc INVALID_ARGUMENT", "grpc UNKNOWN", "grpc UNIMPLEMENTED")
def test_trouble_that_repeats_at_parca(fault):
    with receiver("parca", fault=fault) as server:
        final = deliver(server.url, series=2)
    lib.check(final["refused"] == 2 and final["requests"] == 2, final)
    lib.check("as the test wants it: 100% \u00e9" in final["error"], final)


def test_retry_after():
    with receiver("pyroscope", fault="status 429 retry-after 3") as server:
        with delivering(server.url, spool="spool", **SOON) as process:
            wait_for(lambda: server.requests, "a request")
            server.fault()
            final = finals(process.communicate()[0])
        times = [r["time"] for r in server.requests]
    expect(server, [1])
    lib.check(final["requests"] == 2 and times[1] - times[0] >= 2.9, f"{times} {final}")


def test_waits_longer_and_longer():
    """One request at a time, at growing distances."""
    with receiver("pyroscope", fault="status 503") as server:
        deliver(server.url, windows=10, series=2, window=500, spool="spool", grace=100)
        n = len(server.requests)
    lib.check(3 <= n <= 12, f"{n} requests in 5 s")


def test_hopeless_one():
    """A profile that always fails, though it looks as if it needn't, is given up while others arrive."""
    with receiver("pyroscope", fault="only s.1.w.0. status 503") as server:
        final = deliver(server.url, windows=20, series=3, window=400, grace=2000)
    lib.check(final["refused"] == 1 and final["sent"] == 59, final)
    expect(server, [m for m in expected(20, 3) if m != 2])


def test_hanging_server_holds_up_no_other():
    with receiver("pyroscope", fault="hang 20", directory="a") as bad, receiver("otlp", directory="b") as good:
        with delivering(bad.url, good.url, windows=3, series=10, window=300, spool="spool", grace=0) as process:
            wait_for(lambda: len(good.stored) == 30, "the other server's profiles", timeout=20)
            final = finals(process.communicate()[0])
    expect(good, expected(3, 10))
    lib.check(final[0]["spooled"] == 30 and final[1]["sent"] == 30, final)


# ---- nobody there ----


def test_outage():
    """Windows from before, in and after an outage; nothing twice."""
    port = free_port()
    with delivering(f"pyroscope+http://127.0.0.1:{port}", windows=12, series=5, window=500, spool="spool", **SOON) as process:
        with receiver("pyroscope", port=port) as server:
            wait_for(lambda: server.stored, "the first profiles")
        time.sleep(1.5)
        with receiver("pyroscope", port=port) as server:
            final = finals(process.communicate()[0])
            expect(server, expected(12, 5))
    lib.check(final["sent"] == 60 and not final["spooled"], final)


def test_no_such_host():
    final = deliver("pyroscope+http://wick.invalid?timeout=2s", windows=2, spool="spool", window=200, grace=4000)
    lib.check(final["spooled"] == 2 and not final["sent"], final)
    lib.check("wick.invalid" in final["error"], final)


def test_fresh_ones_first():
    """A long spool is drained, and doesn't delay the windows of now."""
    port = free_port()
    url = f"pyroscope+http://127.0.0.1:{port}?batch=1"
    deliver(url, windows=1, series=80, spool="spool", grace=0)
    with receiver("pyroscope", port=port, fault="slow 0.05") as server:
        final = deliver(url, windows=6, samples=1000, window=500, spool="spool", concurrency=2, linger=60000)
        marks = [s["mark"] for s in server.stored]
    lib.check(final["found"] == 80 and final["sent"] == 86, final)
    fresh = [marks.index(w * 1000) for w in range(1, 7)]
    behind = [len([m for m in marks[i:] if m <= 80]) for i in fresh]
    lib.check(min(behind) > 0, f"fresh profiles came last: {behind}")


def test_proxy():
    """By environment; here nobody is at the proxy's address."""
    with receiver("pyroscope") as server:
        proxy = f"http://127.0.0.1:{free_port()}"
        final = deliver(server.url, spool="spool", grace=200, env={"http_proxy": proxy, "no_proxy": ""})
    lib.check(final["spooled"] == 1 and not server.requests, final)


# ---- killed, and disks ----


def test_kill():
    """What was put before the last window is on disk, and arrives when wick is back."""
    port = free_port()
    url = f"pyroscope+http://127.0.0.1:{port}"
    for _ in range(3):
        with delivering(url, windows=1000, series=20, window=50, spool="spool") as process:
            lines = [process.stdout.readline() for _ in range(10)]
            lib.check(all(lines), "it ended by itself")
            process.send_signal(signal.SIGKILL)
    with receiver("pyroscope", port=port) as server:
        final = deliver(url, windows=0, spool="spool", linger=30000)
    lib.check(final["sent"] == final["found"] and final["sent"] >= 3 * 9 * 20, final)
    whole = [m for m in range(1, 9000) if 1 <= m % 1000 <= 20]
    counts = {m: server.marks.count(m) for m in whole}
    lib.check(min(counts.values()) == 3, f"lost: {[m for m in whole if counts[m] < 3][:10]}")


def test_torn_spool():
    """A record cut by a crash, and one that the disk has changed: skipped and counted."""
    port = free_port()
    url = f"pyroscope+http://127.0.0.1:{port}"
    deliver(url, windows=10, spool="spool", grace=0)
    (path,) = glob.glob("spool/*/*.seg")
    with open(path, "r+b") as f:
        data = f.read()
        starts = [i for i in range(len(data)) if data.startswith(b"wk\xf5R", i)]
        lib.check(len(starts) == 10, f"{len(starts)} records")
        f.seek(starts[4] + 40)
        f.write(b"\xff\xff\xff")
        f.truncate(len(data) - 5)
    with receiver("pyroscope", port=port) as server:
        final = deliver(url, windows=0, spool="spool", linger=30000)
    lib.check(final["spool_torn"] == 2 and final["sent"] == 8, final)
    # which two: records are in the order in which their requests have failed
    kept = set(server.marks)
    lib.check(len(server.marks) == len(kept) == 8 and kept < set(expected(10)), f"{server.marks}")


def test_spool_keeps_within_bytes():
    url = f"pyroscope+http://127.0.0.1:{free_port()}"
    final = deliver(url, windows=80, series=10, samples=300, spool="spool", spool_bytes=1 << 20, window=1, grace=0)
    size = sum(map(os.path.getsize, glob.glob("spool/*/*.seg")))
    lib.check(size <= 1 << 20 and final["spool_bytes"] <= 1 << 20, f"{size} {final}")
    lib.check(final["spool_full"] and final["spooled"] and final["put"] == 800, final)


def test_spool_keeps_within_age():
    url = f"pyroscope+http://127.0.0.1:{free_port()}"
    deliver(url, windows=3, spool="spool", grace=0)
    time.sleep(0.6)
    final = deliver(url, windows=1, spool="spool", age=500, linger=3000, grace=0)
    lib.check(final["expired"] >= 3 and final["found"] == 3, final)


def test_spool_on_a_full_disk():
    """Counted; the queue in memory holds what it can, and all of that arrives."""
    port = free_port()
    url = f"pyroscope+http://127.0.0.1:{port}"
    with tmpfs("64k") as disk:
        with delivering(url, windows=40, series=5, samples=20, window=50, spool=f"{disk}/spool", **SOON) as process:
            for _ in range(38):
                process.stdout.readline()
            with receiver("pyroscope", port=port) as server:
                final = finals(process.communicate()[0])
    lib.check(final["spool_errors"] and final["sent"] == 200, final)
    expect(server, expected(40, 5, 20))


def test_directory_on_a_full_disk():
    """What doesn't fit waits, and the other sink gets everything."""
    with tmpfs("100k") as disk, receiver("profefe") as server:
        final = deliver(f"file://{disk}/out", server.url, windows=15, series=5, samples=100, window=20, grace=4000)
    lib.check(final[1]["sent"] == 75 and final[0]["sent"] > 10, final)
    lib.check(final[0]["shutdown"] and "No space left" in final[0]["error"], final)
    expect(server, expected(15, 5, 100))


def test_queue_keeps_within_bytes():
    url = f"pyroscope+http://127.0.0.1:{free_port()}"
    final = deliver(url, windows=10, series=10, samples=50, window=10, queue_bytes=50000, grace=0)
    lib.check(final["queue_full"] and final["shutdown"], final)
