"""make bench: what `wick record` costs beside perf, under the same load in the same run.

    WICK=build/wick python3 tests/bench/bench.py [--seconds N] [--rounds N] [--quick]

Needs root and perf; prints Markdown. --quick is one round of 3 s, to see that the benchmark works.

What is compared is the whole way from the first tick to named stacks: `wick record -o FILE`, whose
file has names, against perf's recording and the perf script run that names it. In each round every
tool records once, in an order that turns from round to round, under a load of what is installed of
perl, python3, openssl, node and gcc -O2. A figure is the median of the rounds, a ratio the median
of the rounds' ratios: the ratios are what another machine should see as well.

- CPU is user + system of the tool and its children when they end. Time in the kernel at the ticks
  themselves falls on whoever is interrupted; for wick it is measured on its own, as BPF time.
- Memory is the largest resident set of one process. (It begins with that of this one, which must
  stay small for that reason: files are analysed in a process of their own.)
- Start is from the tool's exec to the exec of the command that is recorded, without the load.
- Stacks are judged by one measure for all tools, over the load's own processes: a stack reaches its
  root if it ends in _start, be it named or the one frame above __libc_start_main, or in clone. What
  ends in a clone3 of libc or a _start of the dynamic linker that has no name counts as cut.
- BPF time is the kernel's statistics (kernel.bpf_stats_enabled, set back afterwards) of that wick's
  programs alone, in the second half of the recording, when the unwind tables are there.
- Unwind tables are compiled by bench_rows, which prints the best of some rounds.
- The yardstick for the walk is bpf_get_stack(), the kernel's frame-pointer walk, alone in a program
  (fp_walk.bpf.c), on stacks of deep.c, which have frame pointers. On the same stacks wick's time is
  that of everything it does at a tick: who runs, which mappings, a walk by tables, storing. Two
  depths tell what a tick costs and what a frame.
"""

import argparse
import contextlib
import glob
import json
import multiprocessing
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WICK = os.path.abspath(os.environ.get("WICK", os.path.join(HERE, "..", "..", "build", "wick")))
BENCH_ROWS = os.path.join(os.path.dirname(WICK), "bench_rows")
BPFTOOL = shutil.which("bpftool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
BPF_STATS = "/proc/sys/kernel/bpf_stats_enabled"
HZ = 99
CPUS = len(os.sched_getaffinity(0))
STARTS = 5
DEPTHS = 4, 100  # of deep.c; the kernel walks at most 127
PROG_PERF_EVENT, MAP_ARRAY_OF_MAPS = 7, 12  # of linux/bpf.h

# ---- load ----

PYTHON = "def f(n): return sum(i * i for i in range(n))\nwhile True: f(10000)"
NODE = "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } for (;;) f(20)"  # no garbage
LOADS = {  # the name of the process that burns -> (what must be installed, what runs)
    "perl": ("perl", ["perl", "-e", "for (;;) { $s += $_ * $_ for 1 .. 100000 }"]),
    "python3": ("python3", ["python3", "-S", "-c", PYTHON]),
    "openssl": ("openssl", ["sh", "-c", "while :; do openssl speed -seconds 5 rsa2048; done"]),
    "node": ("node", ["node", "-e", NODE]),
    "cc1": ("gcc", ["sh", "-c", "while :; do gcc -O2 -c -o /dev/null load.c; done"]),
}


def generated_c():
    """Some seconds of work for gcc -O2."""
    function = """
static int f{0}(int *a, int n) {{
	int s = {0};
	for (int i = 0; i < n; i++)
		switch ((a[i] + {0}) % 7) {{
		case 0: s += a[i] * {0}; break;
		case 1: s ^= a[i] >> 3; break;
		case 2: for (int j = 0; j < i; j++) s += a[j] * a[i - j]; break;
		default: s -= a[i] / ({0} + 1);
		}}
	return s;
}}
"""
    calls = "".join(f"\ts += f{i}(a, n);\n" for i in range(400))
    return "".join(function.format(i) for i in range(400)) + (
        f"int all(int *a, int n) {{\n\tint s = 0;\n{calls}\treturn s;\n}}\n")


@contextlib.contextmanager
def running(*commands, cwd=None):
    """Commands that run while the block does, each in a process group that ends with it."""
    processes = []
    try:
        for argv in commands:
            processes.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=cwd,
                                              stderr=subprocess.DEVNULL, start_new_session=True))
        time.sleep(1)
        yield processes
    finally:
        for p in processes:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()


# ---- one run of a tool ----


def run(*argv, stdout=subprocess.DEVNULL):
    """Runs to the end; (CPU seconds, largest resident MiB, wall seconds, standard error)."""
    with tempfile.TemporaryFile() as err:
        start = time.monotonic()
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=err)
        _, status, usage = os.wait4(p.pid, 0)
        wall = time.monotonic() - start
        p.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        text = err.read().decode(errors="replace")
    if p.returncode:
        sys.exit(f"{' '.join(argv)} exits {p.returncode}:\n{text}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, wall, text


def ticks(summary):
    """The accounting line of wick's summary."""
    return {word: int(re.search(rf"\b{word} (\d+)", summary)[1])
            for word in ("ticks", "samples", "idle", "unselected", "lost")}


def wick(seconds, directory):
    out = os.path.join(directory, "wick.pb.gz")
    cpu, rss, wall, text = run(WICK, "record", "-a", "-F", str(HZ), "-d", str(seconds), "-n", "0",
                               "-o", out)
    n = ticks(text)
    return {**apart(quality, wick_stacks, out), "cpu": cpu, "rss": rss, "wall": wall - seconds,
            "kib": os.path.getsize(out) / 1024, "ticks": n["samples"] + n["idle"],
            "lost": n["lost"]}


def perf(seconds, directory, *graph):
    data, script = os.path.join(directory, "perf.data"), os.path.join(directory, "script")
    cpu, rss, wall, _ = run("perf", "record", "-q", "-F", str(HZ), "-e", "cpu-clock", "-a", *graph,
                            "-o", data, "--", "sleep", str(seconds))
    with open(script, "wb") as out:
        cpu2, rss2, wall2, _ = run("perf", "script", "--no-inline", "-i", data, "-F",
                                   "comm,ip,sym,dso", stdout=out)
    return {**apart(quality, perf_stacks, script), "cpu": cpu + cpu2, "rss": max(rss, rss2),
            "wall": wall + wall2 - seconds, "kib": os.path.getsize(data) / 1024}


TOOLS = {
    "`wick record -a`": wick,
    "`perf record -g`": lambda s, d: perf(s, d, "-g"),
    "`perf record --call-graph dwarf`": lambda s, d: perf(s, d, "--call-graph", "dwarf"),
}

# ---- what is in the files ----


def apart(function, *args):
    with multiprocessing.Pool(1) as pool:
        return pool.apply(function, args)


def wick_stacks(path):
    """(thread name, [(address, name) of each frame, leaf first], samples)"""
    sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
    from pprof import Profile

    for s in Profile.read(path).samples:
        frames = [(at.address, at.lines[0].function.name if at.lines else "") for at in s.locations]
        yield s.labels.get("comm"), frames, s.values[0]


def perf_stacks(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        samples = f.read().split("\n\n")
    for sample in samples:
        comm, *lines = sample.strip("\n").split("\n")
        if comm:
            words = [line.split(None, 2) for line in lines]
            yield comm.strip(), [(int(w[0], 16), w[1]) for w in words if len(w) > 1], 1


NAMELESS = re.compile(r"^$|^\[unknown\]|\+0x[0-9a-f]+$")


def reaches_root(names):
    return bool(re.match(r"_start$|(__)?clone3?$", names[-1])) or (
        len(names) > 1 and names[-2].startswith("__libc_start_main"))


def quality(read, path):
    """Ticks of all processes, shares over the load's; [truncated: ...] is no frame."""
    n = {"ticks": 0, "stacks": 0, "rooted": 0, "frames": 0, "named": 0}
    for comm, frames, count in read(path):
        names = [name for address, name in frames
                 if address < 1 << 63 and not name.startswith("[truncated")]
        n["ticks"] += count
        if comm not in LOADS or not names:
            continue
        n["stacks"] += count
        n["rooted"] += count * reaches_root(names)
        n["frames"] += count * len(names)
        n["named"] += count * sum(not NAMELESS.search(name) for name in names)
    stacks, frames = max(n["stacks"], 1), max(n["frames"], 1)
    return {"ticks": n["ticks"], "rooted": 100 * n["rooted"] / stacks,
            "depth": n["frames"] / stacks, "named": 100 * n["named"] / frames}


def frames_of(path):
    """Mean number of frames of all samples, kernel's included."""
    samples = list(wick_stacks(path))
    return sum(len(f) * n for _, f, n in samples) / max(sum(n for *_, n in samples), 1)


# ---- start ----


def start(directory, *argv):
    """Seconds from exec of the tool to exec of what it records; the best of some, since whatever
    else runs can only add."""
    seen, times = os.path.join(directory, "seen"), []
    for _ in range(STARTS):
        before = time.time()
        run(*argv, "--", "touch", seen)
        times.append(os.stat(seen).st_mtime - before)
        os.unlink(seen)
    return min(times)


def starts(directory):
    out = ["-a", "-F", str(HZ), "-q", "-o", os.path.join(directory, "start.pb.gz")]
    perf_record = ["perf", "record", *out, "-e", "cpu-clock"]
    argv = [WICK, "record", *out], [*perf_record, "-g"], [*perf_record, "--call-graph", "dwarf"]
    return {name: start(directory, *a) for name, a in zip(TOOLS, argv)}


# ---- BPF ----


@contextlib.contextmanager
def bpf_stats():
    with open(BPF_STATS, "r+") as f:
        before = f.read()
    try:
        with open(BPF_STATS, "w") as f:
            f.write("1")
        yield
    finally:
        with open(BPF_STATS, "w") as f:
            f.write(before)


def descriptors(pid, kind):
    """id -> what /proc tells of a process's programs ("prog") or maps ("map")."""
    found = {}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(path) as f:
            info = dict(re.findall(r"^(\w+):\s*(\d+)", f.read(), re.M))
            if f"{kind}_type" in info:  # a link has the id of its program, but no type of it
                found[int(info[f"{kind}_id"])] = {k: int(v) for k, v in info.items()}
    return found


def bpf_time(pid):
    """(runs at ticks, nanoseconds) of a process's perf_event programs. One that is tail-called is
    accounted to its caller."""
    programs = [p for p in descriptors(pid, "prog").values()
                if p["prog_type"] == PROG_PERF_EVENT]
    return (sum(p["run_cnt"] for p in programs), sum(p["run_time_ns"] for p in programs))


def bpf_memory(pid):
    """Bytes of a process's maps, and of the maps in them."""
    maps = descriptors(pid, "map")
    size = {m["id"]: m.get("bytes_memlock", 0) for m in bpftool("map", "show")}
    ids = set(maps)
    for n, m in maps.items():
        if m["map_type"] == MAP_ARRAY_OF_MAPS:
            values = [e.get("value") for e in bpftool("map", "dump", "id", str(n))]
            ids |= {int.from_bytes(bytes(int(byte, 16) for byte in v), sys.byteorder)
                    for v in values if isinstance(v, list)}  # else the slot is empty
    return sum(size.get(n, 0) for n in ids)


def bpftool(*args):
    return json.loads(subprocess.check_output([BPFTOOL, "-j", *args]))


def wick_in_bpf(seconds, directory, *select):
    """{ns: a tick, share: of ticks that are samples, frames: a sample, memory: bytes of maps}"""
    out = os.path.join(directory, "bpf.pb.gz")
    argv = [WICK, "record", "-F", str(HZ), "-d", str(seconds), "-n", "0", "-o", out, *select]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as p:
        while not bpf_time(p.pid)[0] and p.poll() is None:
            time.sleep(0.05)
        time.sleep(seconds / 2)
        runs, ns = bpf_time(p.pid)
        time.sleep(seconds / 2 - 0.5)
        memory = bpf_memory(p.pid)
        runs2, ns2 = bpf_time(p.pid)
        text = p.stderr.read()
    if p.returncode or runs2 <= runs:
        sys.exit(f"{' '.join(argv)}: no BPF statistics\n{text}")
    n = ticks(text)
    return {"ns": (ns2 - ns) / (runs2 - runs), "share": n["samples"] / max(n["ticks"], 1),
            "frames": apart(frames_of, out), "memory": memory}


def build_yardstick(directory):
    """(fp_walk, its object, deep)"""
    program, obj, deep = (os.path.join(directory, n) for n in ("fp_walk", "fp_walk.o", "deep"))
    source = {n: os.path.join(HERE, n) for n in ("fp_walk.c", "fp_walk.bpf.c", "deep.c")}
    arch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    run("clang", "-target", "bpf", "-O2", "-g", f"-I/usr/include/{arch}", "-c",
        source["fp_walk.bpf.c"], "-o", obj)
    run("gcc", "-O2", "-D_GNU_SOURCE", source["fp_walk.c"], "-o", program, "-lbpf")
    run("gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", source["deep.c"],
        "-o", deep)
    return program, obj, deep


def line(points):
    """(ns a tick, ns a frame) from two (frames, ns)."""
    (x1, y1), (x2, y2) = points
    slope = (y2 - y1) / (x2 - x1)
    return y1 - slope * x1, slope


def deep_walks(seconds, rounds, directory):
    """(wick's, the kernel's): a list of (ns a tick, ns a frame), one of each round."""
    program, obj, deep = build_yardstick(directory)
    ours, kernels = [], []
    for _ in range(rounds):
        points, kernel_points = [], []
        # What a tick costs that -p leaves out: this process sleeps meanwhile.
        other = wick_in_bpf(seconds, directory, "-p", str(os.getpid()))["ns"]
        for depth in DEPTHS:
            with running(*[[deep, str(depth)]] * CPUS) as processes:
                pids = [str(p.pid) for p in processes]
                r = wick_in_bpf(seconds, directory, "-p", ",".join(pids))
                argv = [program, obj, str(HZ), str(seconds), *pids]
                walk = subprocess.check_output(argv, text=True)
            points.append((r["frames"], (r["ns"] - other * (1 - r["share"])) / r["share"]))
            runs, ns, frames = map(int, walk.split())
            kernel_points.append((frames / runs, ns / runs))
        ours.append(line(points))
        kernels.append(line(kernel_points))
    return ours, kernels


# ---- tables ----


def median(values):
    return statistics.median(list(values))


def ratio(rounds, base, peer, key):
    """Wick's figure as a share of the peer's."""
    return median(w[key] / p[key] for w, p in zip(rounds[base], rounds[peer]))


ROWS = [  # key, what, form, whether a ratio says something
    ("cpu", "CPU to named stacks, s", "{:.2f}", True),
    ("rss", "resident memory, MiB", "{:.0f}", True),
    ("wall", "wall time beyond the recording's, s", "{:.2f}", True),
    ("start", "start, s", "{:.2f}", True),
    ("kib", "file, KiB", "{:.0f}", True),
    ("delivered", "ticks that are in it", "{:.1f} %", False),
    ("rooted", "user stacks that reach their root", "{:.1f} %", False),
    ("depth", "user frames a stack", "{:.1f}", False),
    ("named", "user frames with a name", "{:.1f} %", False),
]


def print_comparison(rounds):
    base, *peers = rounds
    print(f"| | {base} |" + "".join(f" {p} + `perf script` | wick / perf |" for p in peers))
    print("|---|---|" + "---|---|" * len(peers))
    for key, what, form, rated in ROWS:
        cells = [what, form.format(median(r[key] for r in rounds[base]))]
        for p in peers:
            cells.append(form.format(median(r[key] for r in rounds[p])))
            cells.append(f"{ratio(rounds, base, p, key):.2f}" if rated else "")
        print("| " + " | ".join(cells) + " |")


def print_bpf(mix, deep):
    ns, frames, memory = (median(r[key] for r in mix) for key in ("ns", "frames", "memory"))
    print(f"\nBPF time of a tick under this load: {ns / 1000:.1f} us for {frames:.1f} frames "
          f"({ns / frames:.0f} ns a frame). Kernel memory of all maps: {memory / 2**20:.1f} MiB.\n")
    print("| the same stacks | wick, everything | the kernel's frame-pointer walk | ratio |")
    print("|---|---|---|---|")
    for what, i in ("a tick, ns", 0), ("and each frame, ns", 1):
        ours, kernels = ([r[i] for r in rounds] for rounds in deep)
        rated = median(a / b for a, b in zip(ours, kernels))
        print(f"| {what} | {median(ours):.0f} | {median(kernels):.0f} | {rated:.1f} |")


def large_files():
    """Large files of this machine that many run."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        path = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True)
        yield path.stdout.strip()
    for pattern in (
        "/usr/bin/node",
        "/usr/lib/jvm/*/lib/server/libjvm.so",
        "/usr/lib/*/libcrypto.so.3",
        "/usr/lib/*/libc.so.6",
    ):
        yield from glob.glob(pattern)[:1]


def print_tables():
    files = [f for f in large_files() if os.path.exists(f)]
    if not os.path.exists(BENCH_ROWS) or not files:
        return
    print("\n| unwind table | CPU, ms | rows | ns a row | KiB | KiB per MiB of text |")
    print("|---|--:|--:|--:|--:|--:|", flush=True)
    subprocess.run([BENCH_ROWS, *files], check=False)


def measure(seconds, rounds, directory):
    with open(os.path.join(directory, "load.c"), "w") as f:
        f.write(generated_c())
    loads = [argv for program, argv in LOADS.values() if shutil.which(program)]
    results = {name: [] for name in TOOLS}
    start_of = starts(directory)
    with running(*loads, cwd=directory):
        for i in range(rounds):
            order = list(TOOLS)
            for name in order[i % len(order):] + order[:i % len(order)]:
                r = TOOLS[name](seconds, directory)
                due = seconds * HZ * CPUS
                r |= {"start": start_of[name], "delivered": 100 * r["ticks"] / due}
                results[name].append(r)
        with bpf_stats():
            mix = [wick_in_bpf(seconds, directory, "-a") for _ in range(rounds)]
    with bpf_stats():
        deep = deep_walks(seconds, rounds, directory)
    return results, mix, deep


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=10, help="of each recording, at least 3")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round of 3 s")
    args = parser.parse_args()
    seconds, rounds = (3, 1) if args.quick else (max(args.seconds, 3), max(args.rounds, 1))
    if os.geteuid() or not shutil.which("perf") or not BPFTOOL:
        sys.exit("bench.py: needs root, perf and bpftool")
    with tempfile.TemporaryDirectory() as directory:
        results, mix, deep = measure(seconds, rounds, directory)
    installed = ", ".join(name for name, (program, _) in LOADS.items() if shutil.which(program))
    print(f"{seconds} s at {HZ} Hz on {CPUS} CPUs, Linux {platform.release()}, under {installed}; "
          f"medians of {rounds}:\n")
    print_comparison(results)
    print_bpf(mix, deep)
    lost = sum(r["lost"] for r in results["`wick record -a`"])
    print_tables()
    print(f"\nTicks that wick lost, all rounds together: {lost}.")


if __name__ == "__main__":
    main()
