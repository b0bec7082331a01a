"""wick agent: windows, accounting to the last sample, profiles on demand, outages, budgets, rules."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

import lib
from lib import check, program, running
from pprof import Profile
from receivers import free_port, receiver

SECOND = 10**9


class Agent:
    """A running agent and its HTTP side."""

    def __init__(self, process, port, log):
        self.process, self.port, self.log_path = process, port, log

    @property
    def log(self):
        with open(self.log_path, encoding="utf-8", errors="backslashreplace") as f:
            return f.read()

    def get(self, path, timeout=60):
        """(status, headers, body)"""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as r:
                return r.status, r.headers, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()

    def metrics(self):
        """{name or name{labels}: value}"""
        status, _, body = self.get("/metrics")
        check(status == 200, f"/metrics answers {status}")
        lines = [line for line in body.decode().splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def profile(self, query):
        status, headers, body = self.get("/debug/pprof/profile?" + query)
        check(status == 200, f"the profile is answered with {status}: {body[:300]}")
        check(headers["Content-Type"].startswith("application/octet-stream"), headers)
        with open("demand.pb.gz", "wb") as f:
            f.write(body)
        return Profile.read("demand.pb.gz")

    def wait(self, what, until, timeout=45):
        deadline = time.monotonic() + timeout
        while not until():
            check(self.process.poll() is None, f"the agent has ended:{lib.shown(self.log)}")
            check(time.monotonic() < deadline, f"{what}: not within {timeout} s:{lib.shown(self.log)}")
            time.sleep(0.1)

    def wait_metric(self, name, at_least, **how):
        self.wait(f"{name} >= {at_least}", lambda: self.metrics()[name] >= at_least, **how)

    def stop(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        self.process.wait(timeout=60)
        if by == signal.SIGTERM:
            check(self.process.returncode == 0, f"exit {self.process.returncode}:{lib.shown(self.log)}")


@contextlib.contextmanager
def agent(*options, window="1s", freq=97, budget=1000, log="agent.log"):
    """Budgets are wide unless a test is about them: the machine is shared."""
    port = free_port()
    argv = [lib.WICK, "agent", "--listen", f"127.0.0.1:{port}", "--window", window, "--freq", str(freq)]
    argv += ["--cpu-budget", str(budget), "--memory-budget", "1G", *map(str, options)]
    with open(log, "a", encoding="utf-8") as f:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f)
    made = Agent(process, port, log)
    try:
        made.wait("the start", lambda: "sampling" in made.log)
        yield made
        if process.poll() is None:
            made.stop()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def check_ticks(m):
    fates = m["wick_samples_total"] + m["wick_idle_ticks_total"] + m["wick_unselected_ticks_total"]
    fates += sum(v for k, v in m.items() if k.startswith("wick_lost_ticks_total"))
    # ticks go on while the figures are read, CPU by CPU
    check(abs(m["wick_ticks_total"] - fates) <= 16, f"{m['wick_ticks_total']} ticks have {fates} fates")


def delivered(server):
    return sum(s["mark"] for s in server.stored)


def test_windows_are_aligned_and_whole():
    """Every sample of every window arrives, in profiles that begin where the windows do."""
    with receiver("pyroscope") as server, running(program("zero"), 600):
        with agent("--push", server.url, "--label", "cluster=c1") as a:
            a.wait_metric("wick_built_windows_total", 4)
            check_ticks(a.metrics())
        log = a.log
    starts = sorted({s["time"] // 1000 for s in server.stored})  # servers get distinct times, to the microsecond
    check(len(starts) >= 4, f"only {len(starts)} windows:{lib.shown(log)}")
    aligned = [t for t in starts if t % 10**6 == 0]
    check(aligned == starts[1:], f"windows start at {starts}")
    check(all(s["labels"].get("cluster") == "c1" and s["labels"].get("node") for s in server.stored), "labels")
    check(delivered(server) > 100, f"{delivered(server)} samples")


def test_accounts_from_tick_to_server():
    """What was recorded, built, queued and stored: one number."""
    with receiver("pyroscope") as server, running(program("zero"), 600):
        with agent("--push", server.url, window="2s") as a:
            a.wait_metric("wick_built_windows_total", 2)
            a.wait("an empty queue", lambda: settled(a.metrics()))
            m = a.metrics()
            stored = delivered(server)
            sink = next(k for k in m if k.startswith("wick_push_sent_total"))
            check(m[sink] == len(server.stored), f"{m[sink]} sent, {len(server.stored)} stored")
        check(m["wick_window_samples_total"] == m["wick_built_samples_total"], f"{m}")
        check(stored == m["wick_built_samples_total"], f"{stored} stored, {m['wick_built_samples_total']} built")


def settled(m):
    """No window is being built, no profile on its way; and a moment since the last window's end."""
    queues = [v for k, v in m.items() if k.startswith(("wick_queue_profiles", "wick_spool_profiles"))]
    return not m["wick_queued_windows"] and not any(queues) and m["wick_built_windows_total"] == m["wick_windows_total"]


def test_profile_on_demand():
    """Go's parameters, a higher frequency, a filter; values are times, whatever the frequency was."""
    with running(program("zero"), 600) as busy, agent(freq=19) as a:
        p = a.profile(f"seconds=2&hz=199&pid={busy.pid}")
        names = {f.name for s in p.samples for f in s.frames}
        check(all(s.labels["pid"] == busy.pid for s in p.samples), "other processes' samples")
        check("main" in names or any("hot" in n for n in names), f"names are {sorted(names)[:20]}")
        check(1.9 * SECOND < p.duration_nanos < 10 * SECOND, f"it took {p.duration_nanos} ns")
        check(abs(p.period - SECOND / 199) < 2, f"period {p.period}")
        seconds = p.total("cpu") / SECOND
        check(seconds <= p.duration_nanos / SECOND * 1.1 + 0.1, f"{seconds} s of one thread")
        check(p.total("samples") > 40, f"{p.total('samples')} samples")
        # later windows are back at the agent's own
        a.wait("19 Hz", lambda: a.metrics()["wick_frequency_hertz"] == 19)
        status, _, body = a.get("/debug/pprof/profile?seconds=1&pid=4194304")
        check(status == 200 and not Profile.decode(body).samples, f"nobody's profile: {status}")


def test_another_event_on_demand():
    with running("sh", "-c", "while :; do true | cat; done"), agent() as a:
        p = a.profile("seconds=1&event=context-switches")
        check(p.sample_types[1][1] == "count" and p.total() > 0, f"{p.sample_types}")
        status, _, body = a.get("/debug/pprof/profile?seconds=1&event=nonsense")
        check(status == 400 and b"nonsense" in body, f"{status} {body[:200]}")


def test_ready():
    with receiver("pyroscope") as server, running(program("zero"), 600):
        with agent("--push", server.url) as a:
            check(a.get("/healthz")[0] == 200, "not alive")
            a.wait("readiness", lambda: a.get("/readyz")[0] == 200)
            server.fault("status 503")
            a.wait("unreadiness", lambda: a.get("/readyz")[0] == 503)
            server.fault("")


def test_server_goes_and_comes_back():
    """What was refused meanwhile waits on disk, arrives, and once."""
    with receiver("pyroscope") as server, running(program("zero"), 600):
        server.fault("status 503")
        with agent("--push", server.url, "--spool-dir", "spool") as a:
            a.wait_metric("wick_built_windows_total", 3)
            server.fault("")
            a.wait("what was spooled", lambda: settled(a.metrics()))
            built = a.metrics()["wick_built_samples_total"]
            check(delivered(server) >= built, f"{delivered(server)} of {built} samples arrived")


def test_killed_and_started_again():
    """kill -9: at most what is younger than the spool's patience is lost, and nothing comes twice."""
    with receiver("pyroscope") as server, running(program("zero"), 600):
        server.fault("status 503")
        with agent("--push", server.url, "--spool-dir", "spool") as a:
            a.wait("something on disk", lambda: any(v for k, v in a.metrics().items()
                                                    if k.startswith("wick_spool_profiles")))
            a.stop(signal.SIGKILL)
        server.fault("")
        with agent("--push", server.url, "--spool-dir", "spool", log="second.log") as a:
            found = next(v for k, v in a.metrics().items() if k.startswith("wick_spool_found_total"))
            check(found > 0, f"nothing found on disk:{lib.shown(a.log)}")
            a.wait("the rest", lambda: settled(a.metrics()))
        check(len(server.stored) >= found, f"{len(server.stored)} stored, {found} were on disk")


def test_rules_are_decided_in_bpf():
    """Samples of what is excluded stop being taken; they count as unselected."""
    with receiver("pyroscope") as server, running(program("zero"), 600) as busy:
        exe = os.readlink(f"/proc/{busy.pid}/exe")
        with agent("--push", server.url, "--targets-exclude", f"exe={exe}") as a:
            a.wait_metric("wick_skipped{kind=\"process\"}", 1)
            before = a.metrics()
            a.wait_metric("wick_windows_total", before["wick_windows_total"] + 2)
            after = a.metrics()
            check(after["wick_unselected_ticks_total"] > before["wick_unselected_ticks_total"] + 20, "they don't count as unselected")
            check_ticks(after)
    named = [s for s in server.stored if s["labels"]["service_name"] == os.path.basename(exe)]
    check(not named, f"excluded, and yet there: {named[:3]}")


def test_reads_its_configuration_again():
    with open("wick.yaml", "w", encoding="utf-8") as f:
        f.write("labels: [tier=one]\n")
    with receiver("pyroscope") as server, running(program("zero"), 600):
        with agent("--push", server.url, "--config", "wick.yaml") as a:
            a.wait("a delivery", lambda: server.stored)
            with open("wick.yaml", "w", encoding="utf-8") as f:
                f.write("labels: [tier=two]\nmax_files: 100000\n")
            a.process.send_signal(signal.SIGHUP)
            a.wait("the new label", lambda: any(s["labels"].get("tier") == "two" for s in server.stored))
            check("max_files" in a.log or "max-files" in a.log, f"no word of what needs a restart:{lib.shown(a.log)}")
            with open("wick.yaml", "w", encoding="utf-8") as f:
                f.write("labels: [tier=three]\nnonsense: 1\n")
            a.process.send_signal(signal.SIGHUP)
            a.wait("the complaint", lambda: "nonsense" in a.log)
            n = len(server.stored)
            a.wait("more deliveries", lambda: len(server.stored) > n + 2)
        check(server.stored[-1]["labels"]["tier"] == "two", "a broken configuration was taken over")


def test_too_many_series_join():
    """More executables than series: the rest is one series, and counted."""
    with receiver("pyroscope") as server, contextlib.ExitStack() as stack:
        for i in range(24):
            shutil.copy(program("zero"), f"zero{i}")
            stack.enter_context(running(f"./zero{i}", 600))
        with agent("--push", server.url, "--max-series", "16") as a:
            a.wait_metric("wick_other_samples_total", 20)
            a.wait("its delivery", lambda: any(s["labels"]["service_name"] == "_other_" for s in server.stored))
            m = a.metrics()
            check(m["wick_profiles_total"] <= 17 * m["wick_windows_total"], "more series than that")


def test_keeps_its_budget():
    """A tenth of a percent of a CPU isn't enough for 97 Hz here: it goes down, says so, and counts."""
    with running(program("zero"), 600):
        with agent(budget=1) as a:
            a.wait("a lower frequency", lambda: a.metrics()["wick_budget_frequency_hertz"] < 97)
            m = a.metrics()
            check(m['wick_budget_exceeded_total{budget="cpu"}'] > 0, "it isn't counted")
            check(re.search(r"sampling at \d+ Hz instead of", a.log), f"it isn't said:{lib.shown(a.log)}")


@lib.each(signal.SIGTERM, signal.SIGINT)
def test_ends_in_order(by):
    """The last window is shorter, and is delivered within the grace period."""
    with receiver("pyroscope") as server, running(program("zero"), 600) as busy:
        with agent("--push", server.url, window="1m") as a:
            lib.let_work(busy.pid, seconds=1)
            a.process.send_signal(by)
            a.process.wait(timeout=30)
            check(a.process.returncode == 0, f"exit {a.process.returncode}")
    check(delivered(server) > 0, f"the last window is missing:{lib.shown(a.log)}")


def test_start_fails_with_a_sentence():
    for args, words in (
        (["--push", "gopher://x"], "gopher"),
        (["--listen", "0.0.0.0:0"], "token"),
        (["--event", "nonsense"], "nonsense"),
        (["--freq", "0"], "1"),
    ):
        _, stderr = lib.wick("agent", *args, status=None)
        check(words in stderr and stderr.count("\n") <= 3, f"{args}:{lib.shown(stderr)}")
