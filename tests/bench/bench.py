"""make bench: what `wick record -a` costs beside perf, under the same load in the same run.

    WICK=build/wick python3 tests/bench/bench.py [--seconds N] [--rounds N]

Needs root and perf. Each round measures every tool once, one after the other, under a load of what is
installed (perl, python3, openssl, gcc, node), and the table shows medians. CPU is user + system of
the tool and its children as the kernel accounts them at their end; memory is the largest resident
set of one process. perf's cost is recording plus the script run that turns its file into stacks,
since wick's result is finished. BPF time is the kernel's own statistics (kernel.bpf_stats_enabled).
Absolute figures depend on the machine; the ratios are what holds.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

WICK = os.path.abspath(os.environ.get("WICK", "build/wick"))
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..", "src", "profile", "report.c")
INCLUDES = [f"-I{os.path.join(HERE, '..', '..', d)}" for d in ("src", "include")]
STATS = "/proc/sys/kernel/bpf_stats_enabled"

LOADS = [
    ["perl", "-e", "my $s = 0; while (1) { for my $i (1..100000) { $s += $i * $i } }"],
    ["/usr/bin/python3", "-S", "-c",
     "def f(n): return sum(i * i for i in range(n))\nwhile True: f(10000)"],
    ["openssl", "speed", "-seconds", "60", "rsa2048"],
    ["sh", "-c", 'while :; do gcc -O2 -D_GNU_SOURCE "$@" -c -o /dev/null; done', "sh", *INCLUDES, SOURCE],
    ["node", "-e", "let s = 0; for (;;) { for (let i = 0; i < 1e6; i++) s += Math.sqrt(i); }"],
]


class Load:
    """The mix, in a process group of its own that ends with the block."""

    def __enter__(self):
        self.running = [subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         start_new_session=True)
                        for argv in LOADS if shutil.which(argv[0])]
        time.sleep(1)
        return self

    def __exit__(self, *_):
        for p in self.running:
            os.killpg(p.pid, 9)
            p.wait()


def run(*argv, **kwargs):
    """Runs to the end; (CPU seconds, largest RSS in MiB, wall seconds, standard error)."""
    with tempfile.TemporaryFile() as err:
        start = time.monotonic()
        p = subprocess.Popen(argv, stdout=kwargs.get("stdout", subprocess.DEVNULL), stderr=err)
        _, status, usage = os.wait4(p.pid, 0)
        wall = time.monotonic() - start
        err.seek(0)
        text = err.read().decode(errors="replace")
    if status:
        sys.exit(f"{' '.join(argv)} failed:\n{text}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, wall, text


def wick(seconds, directory):
    out = os.path.join(directory, "wick.pb.gz")
    cpu, rss, _, text = run(WICK, "record", "-a", "-F", "99", "-d", str(seconds), "-n", "0", "-o", out)
    found = re.search(r"samples (\d+) \+ idle (\d+) \+ unselected \d+ \+ lost (\d+)", text)
    roots = re.search(r"([\d.]+) % of user stacks", text)
    names = re.search(r"([\d.]+) % of frames", text)
    return {"cpu": cpu, "rss": rss, "bytes": os.path.getsize(out),
            "samples": int(found[1]), "lost": int(found[3]),
            "rooted": float(roots[1]) if roots else None, "named": float(names[1]) if names else None}


def perf_stacks(text):
    """(samples with a user stack, those that reach _start or a thread's start) of perf script."""
    user = rooted = 0
    for sample in text.split("\n\n"):
        frames = [line.split(None, 1)[1] for line in sample.split("\n")[1:] if line.strip()]
        frames = [f for f in frames if "[kernel" not in f and "[guest" not in f]
        if frames:
            user += 1
            rooted += bool(re.match(r"(_start|__?clone3?|clone)\b", frames[-1]))
    return user, rooted


def perf(seconds, directory, *graph):
    data, script = os.path.join(directory, "perf.data"), os.path.join(directory, "script")
    cpu, rss, _, _ = run("perf", "record", "-q", "-F", "99", "-e", "cpu-clock", "-a", *graph, "-o", data, "--",
                         "sleep", str(seconds))
    with open(script, "wb") as out:
        more, rss2, _, _ = run("perf", "script", "--no-inline", "-i", data, "-F", "comm,ip,sym,dso",
                               stdout=out)
    with open(script, encoding="utf-8", errors="replace") as f:
        text = f.read()
    user, rooted = perf_stacks(text)
    return {"cpu": cpu + more, "rss": max(rss, rss2), "bytes": os.path.getsize(data),
            "samples": len([s for s in text.split("\n\n") if s.strip()]), "lost": None,
            "rooted": 100 * rooted / user if user else None, "named": None}


def start_up(*argv):
    """Wall seconds of recording a command that does nothing."""
    return statistics.median(run(*argv)[2] for _ in range(3))


def bpf_cost(seconds, directory):
    """Nanoseconds in all of wick's BPF programs per tick, and bytes of its maps, from bpftool."""
    with open(STATS) as f:
        before = f.read()
    with open(STATS, "w") as f:
        f.write("1")
    try:
        p = subprocess.Popen([WICK, "record", "-a", "-F", "99", "-q", "-d", str(seconds), "-o",
                              os.path.join(directory, "x.pb.gz")])
        time.sleep(seconds - 0.7)
        bpftool = shutil.which("bpftool", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        programs = json.loads(subprocess.check_output([bpftool, "-j", "prog", "show"]))
        maps = json.loads(subprocess.check_output([bpftool, "-j", "map", "show"]))
        p.wait()
    finally:
        with open(STATS, "w") as f:
            f.write(before)
    ours = [q for q in programs if q.get("name", "").startswith("wick_")]
    ids = {m for q in ours for m in q.get("map_ids", [])}
    names = ("wick_half", "wick_rows")
    ticks = sum(q.get("run_cnt", 0) for q in ours if q["name"] == "wick_tick")
    # A tail call is accounted to the program that made it.
    ns = sum(q.get("run_time_ns", 0) for q in ours)
    memory = sum(m.get("bytes_memlock", 0) for m in maps if m["id"] in ids or m.get("name") in names)
    return ns / ticks if ticks else float("nan"), memory


def median(rows, key):
    values = [r[key] for r in rows if r[key] is not None]
    return statistics.median(values) if values else None


def shown(value, form):
    return form.format(value) if value is not None else "-"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if os.geteuid() or not shutil.which("perf"):
        sys.exit("needs root and perf")
    tools = {"wick record": wick,
             "perf -g + script": lambda s, d: perf(s, d, "-g"),
             "perf dwarf + script": lambda s, d: perf(s, d, "--call-graph", "dwarf")}
    rows = {name: [] for name in tools}
    with tempfile.TemporaryDirectory() as directory:
        with Load():
            for _ in range(args.rounds):
                for name, tool in tools.items():
                    rows[name].append(tool(args.seconds, directory))
            ns, memory = bpf_cost(args.seconds, directory)
        data = os.path.join(directory, "t.data")
        starts = [start_up(WICK, "record", "-q", "-o", os.path.join(directory, "t.pb.gz"), "--", "true"),
                  start_up("perf", "record", "-q", "--no-bpf-event", "-e", "cpu-clock", "-g", "-o", data,
                           "--", "true"), None]
    print(f"{args.seconds} s at 99 Hz on {os.cpu_count()} CPUs, kernel {platform.release()}, "
          f"median of {args.rounds}:\n")
    print("| | CPU s | ratio | memory MiB | samples | stacks to the root | file KiB | start and end, `true` |")
    print("|---|---|---|---|---|---|---|---|")
    base = median(rows["wick record"], "cpu")
    for (name, measured), start in zip(rows.items(), starts):
        cpu = median(measured, "cpu")
        print(f"| {name} | {cpu:.2f} | {cpu / base:.1f} | {median(measured, 'rss'):.0f} "
              f"| {median(measured, 'samples'):.0f} | {shown(median(measured, 'rooted'), '{:.1f} %')} "
              f"| {median(measured, 'bytes') / 1024:.0f} | {shown(start, '{:.2f} s')} |")
    print(f"\nwick: {ns / 1000:.1f} us of BPF per tick, {memory / 2**20:.1f} MiB of maps, "
          f"{median(rows['wick record'], 'named')} % of frames named, "
          f"lost {sum(r['lost'] for r in rows['wick record'])}.")


if __name__ == "__main__":
    main()
