"""The agent for a long time, on a host on which nothing lasts, with a server that goes away and comes back.

    sudo SOAK_SECONDS=1200 python3 tests/soak/agent.py

Beside churn.py there is a storm of processes of a few milliseconds, containers' cgroups come and go, and
somebody asks for profiles all the time. At the end:
    accounting  ticks = samples + idle + unselected + lost; every sample of every window that was built is
                with the server, once; nothing was dropped or refused
    labels      each container that worked has arrived under its own id
    memory      resident memory, kernel memory, descriptors and threads aren't more in the last part than
                in the second
Prints a line for each and last "N passed, N failed"; exit status 1 if one failed.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(0, HERE)

import churn  # noqa: E402
import lib  # noqa: E402
import test_agent  # noqa: E402
import test_workload  # noqa: E402
from receivers import receiver  # noqa: E402
from soak import MIB, SHARE, Watch, main, map_bytes  # noqa: E402

SECONDS = float(os.environ.get("SOAK_SECONDS", "1200"))
LIMITS = ["--max-files", "512", "--unwind-bytes", "8M", "--symbol-bytes", "4M", "--window-bytes", "128K",
          "--workload-bytes", "1M", "--max-series", "200"]
OUTAGE = "status 503", "close", "hang 3", "status 429 retry-after 2"
SLACK = {"resident": 8 * MIB, "maps": 2 * MIB, "descriptors": 64, "threads": 2}


class AgentWatch(Watch):
    """Threads as well."""

    def run(self):
        while not self.over.wait(1):
            with contextlib.suppress(OSError):
                with open(f"/proc/{self.pid}/statm") as f:
                    resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                fds = len(os.listdir(f"/proc/{self.pid}/fd"))
                threads = len(os.listdir(f"/proc/{self.pid}/task"))
                self.seen.append((resident, map_bytes(self.pid), fds, threads))


class Containers:
    """Cgroups as Docker's, each for a program of a quarter of a second of CPU time."""

    def __init__(self):
        self.ids = []

    def step(self, i):
        name = test_workload.digest(f"soak {os.getpid()} {i}")
        with test_workload.cgroups(f"docker/{name}") as (directory,):
            test_workload.run_in(directory, lib.program("burst-0"), "0.25")
        self.ids.append(name)
        time.sleep(1)


def storm(i):
    subprocess.run([lib.program("storm"), "100", "4", "0.004", lib.program("zero")], check=True, stdout=subprocess.DEVNULL)


def outages(server):
    def step(i):
        time.sleep(min(30, SECONDS / 8))
        server.fault(OUTAGE[i % len(OUTAGE)])
        time.sleep(min(20, SECONDS / 10))
        server.fault("")

    return churn.repeating(step)


def callers(agent):
    def step(i):
        with contextlib.suppress(OSError):
            agent.get(f"/debug/pprof/profile?seconds=2&hz={(99, 199)[i % 2]}")
        agent.get("/metrics")

    return churn.repeating(step)


def run(directory):
    churn.build()
    containers = Containers()
    with receiver("pyroscope") as server:
        options = ["--push", server.url, "--spool-dir", os.path.join(directory, "spool"), *LIMITS]
        with test_agent.agent(*options, window="5s", freq=97) as agent:
            watch = AgentWatch(agent.process.pid)
            watch.start()
            with churn.everything(directory, SECONDS), churn.repeating(containers.step), \
                    churn.repeating(storm), outages(server), callers(agent):
                threading.Event().wait(SECONDS)
            watch.over.set()
            watch.join()
            server.fault("")
            agent.wait_metric("wick_windows_total", agent.metrics()["wick_windows_total"] + 2)  # the last samples
            agent.wait("the end of what waits", lambda: test_agent.settled(agent.metrics()), timeout=300)
            figures = agent.metrics()
            stored = list(server.stored)
        log = agent.log
    return figures, stored, watch, containers, log


def expect_accounting(figures, stored, watch, containers, log):
    test_agent.check_ticks(figures)
    built, windows = figures["wick_built_samples_total"], figures["wick_window_samples_total"]
    unbuilt = sum(v for k, v in figures.items() if k.startswith("wick_unbuilt_samples_total"))
    lib.check(built + unbuilt == windows, f"{windows} samples in windows, {built} built, {unbuilt} not")
    gone = {k: v for k, v in figures.items() if v and k.startswith(("wick_push_dropped", "wick_push_refused"))}
    arrived = sum(s["mark"] for s in stored)
    lib.check(not gone, f"dropped or refused: {gone}{lib.shown(log)}")
    lib.check(arrived == built, f"{built} samples in profiles, {arrived} arrived")
    lost = sum(v for k, v in figures.items() if k.startswith("wick_lost_ticks_total"))
    return f"{figures['wick_ticks_total']:.0f} ticks, {lost:.0f} lost; {built:.0f} samples in {len(stored)} profiles"


def expect_labels(figures, stored, watch, containers, log):
    seen = {s["labels"].get("container_id") for s in stored}
    missing = [i for i in containers.ids if i not in seen]
    lib.check(len(missing) <= len(containers.ids) // 50, f"{len(missing)} of {len(containers.ids)} containers")
    return f"{len(containers.ids) - len(missing)} of {len(containers.ids)} containers of a quarter of a second"


def usual(watch, which):
    """The medians of the second and the last part: a file's table being compiled is no leak."""
    n = max(1, len(watch.seen) // SHARE)
    values = [s[which] for s in watch.seen]
    return statistics.median(values[n : 2 * n]), statistics.median(values[-n:])


def expect_memory(figures, stored, watch, containers, log):
    told = []
    for which, (name, slack) in enumerate(SLACK.items()):
        first, last = usual(watch, which)
        unit = MIB if slack >= MIB else 1
        told.append(f"{name} {first / unit:.1f} at first, {last / unit:.1f} at last")
        lib.check(last <= first + first // 10 + slack, told[-1])
    return "; ".join(told)


CHECKS = [expect_accounting, expect_labels, expect_memory]


if __name__ == "__main__":
    sys.exit(main(run, CHECKS))
