"""Debug files from debuginfod servers: Debian's own, and ones that are down, hang, lie or never end."""

import contextlib
import http.server
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.request

import lib
from lib import check, need, record
from receivers import free_port
from test_agent import agent
from test_lines import expect_chain, last


def build_id(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", text).group(1)


def stripped():
    """A program without symbols, its debug file in ./files, and an empty cache in ./cache."""
    need("gcc", "objcopy", "readelf")
    source = os.path.join(lib.build.SOURCES, "inlined.c")
    os.makedirs("files")
    path = os.path.abspath("stripped")
    # another build id each time: what this host has of others doesn't count
    subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-Wl,--build-id=0x" + os.urandom(20).hex(),
                    "-o", path, source], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", path, "files/stripped.debug"], check=True)
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    os.environ["DEBUGINFOD_CACHE_PATH"] = os.path.abspath("cache")
    return path


@contextlib.contextmanager
def debuginfod(wanted):
    """Debian's server over ./files, when it knows a build id."""
    need("debuginfod")
    port = free_port()
    env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
    with open("server.log", "w") as log:
        process = subprocess.Popen(["debuginfod", "-d", ":memory:", "-F", "-p", str(port), "files"],
                                   stdout=log, stderr=log, env=env)
    try:
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/buildid/{wanted}/debuginfo").read()
                break
            check(time.monotonic() < deadline and process.poll() is None, "debuginfod doesn't serve the file")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def server(answer):
    """Another one: answer(handler) says what it sends. Yields it, with its .url and the .requests so far."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            made.requests.append((self.path, dict(self.headers)))
            with contextlib.suppress(OSError):
                answer(self)

        def log_message(self, *_):
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    made.requests = []
    made.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()


def record_from(url, path, *options, **how):
    os.environ["DEBUGINFOD_URLS"] = url
    how.setdefault("command", [path, "0.5"])
    return record("--debuginfod", *options, **how)


def is_named(s):
    return any(last(f.name or "") == "innermost" for f in s.frames)


def expect_unnamed(r, words):
    """The program runs in `main` and has its samples, without names, and the summary says why."""
    lib.expect_none(r, is_named, what="samples with names that nobody had")
    lib.expect_some(r, lib.labelled(comm="stripped"))
    told = re.search(r"debug files from DEBUGINFOD_URLS: (.*)", r.stderr)
    check(told and re.search(words, told.group(1)), f"the summary doesn't say {words!r}:{lib.shown(r.stderr)}")


def test_names_lines_and_inlined_calls():
    path = stripped()
    with debuginfod(build_id(path)) as url:
        r = record_from(url, path)
        expect_chain(r, "inlined.c", path)
        check("URLS: 1 fetched" in r.stderr, r.stderr)
    os.environ["DEBUGINFOD_URLS"] = "http://127.0.0.1:1"   # it is kept
    r = record("--debuginfod", command=[path, "0.5"])
    expect_chain(r, "inlined.c", path)
    check("1 fetched before" in r.stderr, r.stderr)


def test_only_when_asked():
    path = stripped()
    with debuginfod(build_id(path)) as url:
        os.environ["DEBUGINFOD_URLS"] = url
        r = record(command=[path, "0.5"])
    lib.expect_none(r, is_named)
    check("debug files" not in r.stderr and not os.path.exists("cache"), r.stderr)
    del os.environ["DEBUGINFOD_URLS"]
    _, stderr = lib.wick("record", "--debuginfod", "-d", "0.1", status=2)
    check("DEBUGINFOD_URLS isn't set" in stderr, stderr)
    _, stderr = lib.wick("agent", "--debuginfod", status=2)
    check("DEBUGINFOD_URLS isn't set" in stderr, stderr)


def test_no_library():
    need("unshare")
    found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, env={"PATH": "/sbin:/usr/sbin"})
    library = re.search(r"libdebuginfod\.so\.1 .*=> (\S+)", found.stdout)
    check(library, "no libdebuginfod here")
    os.environ.update(DEBUGINFOD_URLS="http://127.0.0.1:1", DEBUGINFOD_CACHE_PATH=os.path.abspath("cache"))
    hide = f'mount --bind /dev/null "{library.group(1)}" && exec "$@"'
    _, stderr = lib.wick("record", "--debuginfod", "-d", "0.1", status=1,
                         prefix=["unshare", "-m", "sh", "-c", hide, "sh"])
    check("libdebuginfod" in stderr, stderr)


def test_sends_build_ids_and_nothing_else():
    path = stripped()
    with server(lambda h: h.send_error(404)) as s:
        r = record_from(s.url, path)
    expect_unnamed(r, "not found")
    check(f"/buildid/{build_id(path)}/debuginfo" in {p for p, _ in s.requests}, s.requests)
    for p, headers in s.requests:
        check(re.fullmatch(r"/buildid/[0-9a-f]+/debuginfo", p), p)
        others = set(headers) - {"Host", "User-Agent", "Accept", "Accept-Encoding", "X-DEBUGINFOD-MAXSIZE"}
        check(not others and "wick" not in str(headers) and os.uname().nodename not in str(headers), headers)


def test_server_down():
    path = stripped()
    expect_unnamed(record_from("http://127.0.0.1:1", path), r"\d+ failed \(Connection refused\)")


def test_server_hangs():
    path = stripped()
    over = threading.Event()
    with server(lambda h: over.wait(60)) as s:
        start = time.monotonic()
        r = record_from(s.url, path, "--debuginfod-wait", "0.5")
        check(time.monotonic() - start < 40, "it has waited")
        expect_unnamed(r, r"\d+ not here after --debuginfod-wait")
        # several may be asked for, each has its second
        r = record_from(s.url, path, "--debuginfod-time", "1", "--debuginfod-wait", "30")
        expect_unnamed(r, r"\d+ over --debuginfod-time")
        over.set()


def test_wrong_file():
    path = stripped()
    with open("/proc/self/exe", "rb") as f:
        other = f.read()

    def lie(h):
        h.send_response(200)
        h.send_header("Content-Length", str(len(other)))
        h.end_headers()
        h.wfile.write(other)

    with server(lie) as s:
        expect_unnamed(record_from(s.url, path), r"\d+ not the file of that build id")
    check(not os.path.exists(os.path.join("cache", build_id(path))), "it is kept")


@lib.each("told", "endless")
def test_too_large(kind):
    path = stripped()

    def send(h):
        h.send_response(200)
        if kind == "told":
            h.send_header("Content-Length", str(1 << 40))
        h.end_headers()
        while True:
            h.wfile.write(bytes(1 << 16))

    with server(send) as s:
        r = record_from(s.url, path, "--debuginfod-bytes", "1M")
        expect_unnamed(r, r"\d+ over --debuginfod-bytes")


def test_agent_improves():
    """The first windows have what is there; when the file has come all of it has names and lines."""
    path = stripped()
    held = threading.Event()
    with open("files/stripped.debug", "rb") as f:
        content = f.read()

    def give(h):
        if build_id(path) not in h.path:
            h.send_error(404)
            return
        held.wait(60)
        h.send_response(200)
        h.send_header("Content-Length", str(len(content)))
        h.end_headers()
        h.wfile.write(content)

    with server(give) as s, lib.running(path, "120") as process:
        os.environ["DEBUGINFOD_URLS"] = s.url
        query = f"seconds=1&hz=97&pid={process.pid}"
        with agent("--debuginfod", "--lines") as a:
            a.wait_metric("wick_built_windows_total", 2)
            lib.expect_none(a.profile(query), is_named)
            a.wait_metric("wick_debuginfod_queue", 1)
            held.set()
            a.wait_metric("wick_debuginfod_improved_files_total", 1)
            p = a.profile(query)
            lib.expect_most(p, is_named, share=0.8, at_least=20)
            frames = [f for sample in p.samples for f in sample.frames if f.name == "innermost"]
            check(frames and all(f.file.endswith("/inlined.c") and f.line for f in frames), frames[:3])
            check(a.metrics()['wick_debuginfod_files_total{result="fetched"}'] == 1, a.metrics())
            a.stop()


def test_agent_with_a_server_that_hangs():
    """Sampling, naming and the end go on."""
    path = stripped()
    over = threading.Event()
    with server(lambda h: over.wait(120)) as s, lib.running(path, "120"):
        os.environ["DEBUGINFOD_URLS"] = s.url
        with agent("--debuginfod", "--debuginfod-time", "1", "--debuginfod-queue", "1") as a:
            a.wait_metric('wick_debuginfod_files_total{result="timed_out"}', 1)
            before = a.metrics()["wick_built_windows_total"]
            a.wait_metric("wick_built_windows_total", before + 3)
            a.stop()
        over.set()


def test_what_dwz_has_moved():
    """A debug file that came leads to another one, which two of them share."""
    need("dwz")
    path = stripped()
    shutil.copy("files/stripped.debug", "files/other.debug")
    os.chdir("files")
    subprocess.run(["dwz", "-m", "shared.debug", "stripped.debug", "other.debug"], check=True)
    os.chdir("..")
    with debuginfod(build_id(path)) as url:
        r = record_from(url, path)
    expect_chain(r, "inlined.c", path)
    check("URLS: 2 fetched" in r.stderr, r.stderr)
    r = record("--debuginfod", command=[path, "0.5"])
    expect_chain(r, "inlined.c", path)
    check("2 fetched before" in r.stderr, r.stderr)


def test_command_keeps_its_environment():
    path = stripped()
    os.environ.pop("DEBUGINFOD_MAXSIZE", None)
    r = record_from("http://127.0.0.1:1", "sh", command=["sh", "-c", f"env > env.txt; {path} 0.2"])
    check("failed" in r.stderr, r.stderr)
    with open("env.txt") as f:
        check("DEBUGINFOD_MAXSIZE" not in f.read(), "the command sees what is set for libdebuginfod")
