"""What the agent costs in steady state: a table of CPU, memory and bytes sent, at two frequencies, on an
idle and on a busy host. After `warm` seconds, in which tables are compiled and files are read for the first
time, it is watched for BENCH_SECONDS (30).

CPU is the agent's own, BPF programs' time beside it (kernel.bpf_stats_enabled); a budget of 0.1 % of a CPU
for each busy CPU is DESIGN's.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for directory in ("e2e", "soak"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), directory))

import lib  # noqa: E402
import test_agent  # noqa: E402
from soak import MIB, map_bytes  # noqa: E402

SECONDS = float(os.environ.get("BENCH_SECONDS", "30"))
WARM = 20
LOAD = (
    ["perl", "-e", "while (1) { my %h = map { $_ => 1 } 1 .. 100; $x += keys %h }"],
    [sys.executable, "-c", "while 1: sum(i * i for i in range(1000))"],
    ["openssl", "speed", "-seconds", "1000", "rsa2048"],
)
STATS = "/proc/sys/kernel/bpf_stats_enabled"


def bpf_ns(pid):
    """Run time of the programs that a process holds."""
    programs = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/fdinfo/{fd}") as f:
            info = dict(line.split(":\t", 1) for line in f if ":\t" in line)
            if "run_time_ns" in info:
                programs[info["prog_id"]] = int(info["run_time_ns"])
    return sum(programs.values())


@contextlib.contextmanager
def load(busy):
    processes = [subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for argv in LOAD if busy]
    try:
        yield
    finally:
        for p in processes:
            p.kill()
            p.wait()


@contextlib.contextmanager
def bpf_stats():
    with open(STATS) as f:
        before = f.read()
    try:
        with open(STATS, "w") as f:
            f.write("1")
        yield
    finally:
        with open(STATS, "w") as f:
            f.write(before)


def busy_seconds():
    """CPU time of the whole machine so far, idle time aside."""
    with open("/proc/stat") as f:
        words = [int(w) for w in f.readline().split()[1:]]
    return (sum(words[:8]) - words[3] - words[4]) / os.sysconf("SC_CLK_TCK")


def figures(agent):
    pid = agent.process.pid
    sent = sum(v for k, v in agent.metrics().items() if k.startswith("wick_push_bytes_total"))
    return time.monotonic(), lib.cpu_seconds(pid), bpf_ns(pid) / 1e9, busy_seconds(), sent


def measure(freq, busy):
    with tempfile.TemporaryDirectory() as directory, load(busy):
        os.chdir(directory)
        options = ["--push", f"file://{directory}/out"]
        with test_agent.agent(*options, window="15s", freq=freq, budget=1000) as agent:
            time.sleep(WARM)
            before = figures(agent)
            time.sleep(SECONDS)
            wall, cpu, bpf, machine, sent = (b - a for a, b in zip(before, figures(agent)))
            m = agent.metrics()
            pid = agent.process.pid
            row = (freq, "busy" if busy else "idle", 100 * cpu / wall, 100 * bpf / wall,
                   100 * cpu / max(machine, 0.01), m["process_resident_memory_bytes"] / MIB,
                   map_bytes(pid) / MIB, sent / wall * 60 / 1024)
        os.chdir("/")
    return row


def main():
    print("\nThe agent in steady state:\n")
    print("| Hz | host | CPU, % of one | BPF, % of one | CPU, % of the time worked by all | resident, MiB |"
          " kernel memory of maps, MiB | sent, KiB a minute |")
    print("|---|---|---|---|---|---|---|---|")
    with bpf_stats():
        for freq in (19, 99):
            for busy in (False, True):
                print("| {} | {} | {:.2f} | {:.3f} | {:.2f} | {:.0f} | {:.0f} | {:.0f} |".format(
                    *measure(freq, busy)), flush=True)


if __name__ == "__main__":
    main()
