"""The agent on a host of twenty thousand processes.

    sudo SOAK_PROCESSES=20000 python3 tests/soak/crowd.py

A thousand processes work, then twenty times as many, each of them in its turn and under a name of its own. At
the end of each:
    accounting  ticks = samples + idle + unselected + lost; all samples of all windows are with the server
    processes   the agent has met most of them, and says what it has let go of
    memory      resident memory isn't much more with the many than with the few, kernel memory not at all
Prints a line for each and last "N passed, N failed"; exit status 1 if one failed.
"""

import contextlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(0, HERE)

import churn  # noqa: E402
import lib  # noqa: E402
import test_agent  # noqa: E402
from agent import AgentWatch  # noqa: E402
from receivers import receiver  # noqa: E402
from soak import MIB, main  # noqa: E402

MANY = int(os.environ.get("SOAK_PROCESSES", "20000"))
FEW = MANY // 20
MICROSECONDS = 2000  # of CPU time, each
FREQ = 997
SLACK = {"resident": 12 * MIB, "maps": 2 * MIB}
MET_MIN = 0.7  # of the processes; a turn may fall between two ticks


@contextlib.contextmanager
def crowd(n, turns):
    argv = [churn.compiled("crowd", "crowd.c"), str(n), str(MICROSECONDS), str(turns)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            lib.check(process.stdout.readline() == "ready\n", f"no {n} processes here")
            yield process
        finally:
            process.kill()  # and so its children


def measured(agent, server, n, turns):
    """(highest of each figure of the watch, metrics at the end, samples that arrived of the crowd)"""
    watch = AgentWatch(agent.process.pid)
    arrived = sum(s["mark"] for s in server.stored)
    with crowd(n, turns) as process:
        watch.start()
        lib.check(process.stdout.readline() == "done\n", "the crowd has ended early")
        agent.wait_metric("wick_windows_total", agent.metrics()["wick_windows_total"] + 2)
        agent.wait("the end of what waits", lambda: test_agent.settled(agent.metrics()), timeout=300)
        watch.over.set()
        watch.join()
    highest = [max(column) for column in zip(*watch.seen)]
    return highest, agent.metrics(), sum(s["mark"] for s in server.stored) - arrived


def run(directory):
    with receiver("pyroscope") as server:
        with test_agent.agent("--push", server.url, window="2s", freq=FREQ) as agent:
            few = measured(agent, server, FEW, MANY // FEW)
            many = measured(agent, server, MANY, 1)
    return few, many, met(many[1]) - met(few[1])


def met(figures):
    return figures["wick_processes"] + figures["wick_workload_evictions_total"]


def expect_accounting(few, many, new):
    for _, figures, _ in few, many:
        test_agent.check_ticks(figures)
        gone = {k: v for k, v in figures.items() if v and k.startswith(("wick_push_dropped", "wick_unbuilt"))}
        lib.check(not gone, gone)
        lib.check(figures["wick_built_samples_total"] == figures["wick_window_samples_total"], figures)
    lib.check(few[2] + many[2] <= many[1]["wick_built_samples_total"], "more arrived than was built")
    return f"{many[1]['wick_ticks_total']:.0f} ticks, {many[2]} samples of the many arrived"


def expect_processes(few, many, new):
    lib.check(new >= MET_MIN * MANY, f"{new:.0f} of {MANY} processes were met")
    return f"{new:.0f} met, by pid and name; {many[1]['wick_processes']:.0f} kept, {many[1]['wick_workload_bytes'] / MIB:.1f} MiB"


def expect_memory(few, many, new):
    told = []
    for which, (name, slack) in enumerate(SLACK.items()):
        a, b = few[0][which], many[0][which]
        told.append(f"{name} {a / MIB:.1f} MiB with {FEW} processes, {b / MIB:.1f} with {MANY}")
        lib.check(b <= a + slack, told[-1])
    return "; ".join(told)


CHECKS = [expect_accounting, expect_processes, expect_memory]


if __name__ == "__main__":
    sys.exit(main(run, CHECKS))
