"""What the end-to-end tests are made of: running wick, reading what it made, judging shares.

    def test_shares():
        r = lib.record(command=[lib.program("shares"), "1"])
        lib.expect_share(r, lib.under("hot_a"), 0.75, among=lib.under("round_of_both"))

Every recording that record() makes is checked on the way: the profile obeys the format and wick's
own rules (check_profile), and what the summary says adds up to the last tick (check_accounting).
Proportions are judged by statistics, never by absolute time, so a loaded machine fails nothing.
A test runs in an empty directory of its own. It fails by an exception and is skipped by Skip.
"""

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import time

import build
from pprof import Profile

WICK = os.path.abspath(os.environ.get("WICK", os.path.join(build.ROOT, "build", "wick")))
FREQ = 499  # enough samples in a second, and no step with anything that ticks by 10

program = build.program
Skip = build.Skip


def each(*values):
    """Decorates a test that runs once for each value, as test[value]."""

    def decorate(function):
        function.values = values
        return function

    return decorate


def need(*programs):
    for name in programs:
        if not shutil.which(name):
            raise Skip(f"{name} is not installed")


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def shown(text):
    """Output for a message: all of it, on lines of its own."""
    return "\n" + text.rstrip() if text.strip() else " nothing"


# ---- running wick ----


class Recording:
    """A finished `wick record`: status, stdout (bytes), stderr, and the profile it wrote."""

    def __init__(self, status, stdout, stderr, path):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.path = path
        self._profile = None

    @property
    def profile(self):
        if self._profile is None:
            self._profile = Profile.read(self.path)
        return self._profile

    @property
    def ticks(self):
        """The accounting line of the summary: ticks, samples, idle, unselected, lost."""
        words = ("ticks", "samples", "idle", "unselected", "lost")
        found = {w: re.search(rf"\b{w} (\d+)", self.stderr) for w in words}
        missing = [w for w in words if not found[w]]
        check(not missing, f"the summary doesn't tell {missing}:{shown(self.stderr)}")
        return {w: int(found[w].group(1)) for w in words}


def wick(*args, status=0, timeout=60, prefix=(), cwd=None):
    """Runs wick to its end and checks its exit status. (stdout as bytes, stderr as text)"""
    argv = [*prefix, WICK, *map(str, args)]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, cwd=cwd
    )
    stderr = done.stderr.decode("utf-8", "backslashreplace")
    if status is not None:
        check(done.returncode == status, f"{argv} exits {done.returncode}:{shown(stderr)}")
    return done.stdout, stderr


def arguments(options, command, output, freq):
    argv = ["record", "-F", str(freq), "-o", output, *map(str, options)]
    return argv + (["--", *map(str, command)] if command else [])


def record(*options, command=(), output="out.pb.gz", freq=FREQ, status=0, prefix=(), timeout=60):
    """Records to the end of the command, or as the options say. Checks the result."""
    argv = arguments(options, command, output, freq)
    stdout, stderr = wick(*argv, status=status, prefix=prefix, timeout=timeout)
    r = Recording(status, stdout, stderr, output)
    check_recording(r, freq)
    return r


@contextlib.contextmanager
def recording(*options, output="out.pb.gz", freq=FREQ, command=(), prefix=()):
    """Records while the block runs; yields the process. At its end Ctrl-C is sent and the result is
    in .recording; a block that has waited for the end itself may go without."""
    argv = [*prefix, WICK, *arguments(options, command, output, freq)]
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_until_recording(process)
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    r = Recording(process.returncode, stdout, stderr.decode("utf-8", "backslashreplace"), output)
    check(r.status == 0 or command, f"wick record exits {r.status}:{shown(r.stderr)}")
    check_recording(r, freq)
    process.recording = r


def wait_until_recording(process):
    """It is when it holds a perf event for each CPU. (The descriptor's name in /proc says so.)"""
    deadline = time.monotonic() + 20
    fds = f"/proc/{process.pid}/fd"
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            links = [os.readlink(os.path.join(fds, fd)) for fd in os.listdir(fds)]
            if sum("perf_event" in link for link in links) >= len(os.sched_getaffinity(0)):
                time.sleep(0.05)
                return
        time.sleep(0.01)
    stderr = process.stderr.read().decode() if process.poll() is not None else ""
    raise AssertionError(f"wick record doesn't start:{shown(stderr)}")


@contextlib.contextmanager
def running(*argv, lines=0, prefix=()):
    """A program that runs beside; yields its process, whose .lines are its first lines of output,
    and which can be written to."""
    process = subprocess.Popen(
        [*prefix, *map(str, argv)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        process.lines = [process.stdout.readline().split() for _ in range(lines)]
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def cpu_seconds(pid):
    """What a process has used so far, all its threads together."""
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def let_work(*pids, seconds, timeout=45):
    """Waits until each of these processes has used so much more CPU time: a busy machine makes it
    take longer, and leaves as many samples."""
    ends = {pid: cpu_seconds(pid) + seconds for pid in pids}
    deadline = time.monotonic() + timeout
    while any(cpu_seconds(pid) < end for pid, end in ends.items()):
        check(time.monotonic() < deadline, f"{pids} don't get {seconds} s of CPU in {timeout} s")
        time.sleep(0.02)


def record_work(*options, of, seconds, **how):
    """Records for as long as these processes (of running()) need for so much CPU time each."""
    with recording(*options, **how) as process:
        let_work(*(p.pid for p in of), seconds=seconds)
    return process.recording


# What a container's runtime does: a mount namespace whose root is a copy of a directory, in memory, so that
# nothing in it can be reached from the host by a path.
OWN_ROOT = """
import ctypes, os, shutil, sys
libc = ctypes.CDLL(None, use_errno=True)
def must(r):
    if r:
        raise OSError(ctypes.get_errno(), "no root of its own")
directory = sys.argv[1].encode()
must(libc.unshare(0x20000))                                        # CLONE_NEWNS
must(libc.mount(None, b"/", None, ctypes.c_ulong(0x44000), None))  # MS_REC | MS_PRIVATE
os.mkdir(directory + b".root")
must(libc.mount(b"tmpfs", directory + b".root", b"tmpfs", ctypes.c_ulong(0), None))
shutil.copytree(directory, directory + b".root", dirs_exist_ok=True)
os.chdir(directory + b".root")
must(libc.syscall(155, b".", b"."))                                # pivot_root(2)
must(libc.umount2(b".", 2))                                        # MNT_DETACH
os.execv(sys.argv[2], sys.argv[2:])
"""


def in_own_root(directory, *command):
    """A command that runs with a copy of a directory as its root."""
    if os.uname().machine != "x86_64":
        raise Skip("pivot_root has another number here")
    return ["/usr/bin/python3", "-c", OWN_ROOT, directory, *command]


def child_of(pid):
    """The only child of a process."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return int(f.read())


# ---- what holds for every recording ----


def check_recording(r, freq):
    if not r.path.endswith((".pb", ".pb.gz")) or not os.path.exists(r.path):
        return
    cpu = ("cpu", "nanoseconds") in r.profile.sample_types
    if cpu:
        check_profile(r.profile, freq)
    if "ticks" in r.stderr:
        check_accounting(r, cpu)


def check_accounting(r, cpu=True):
    t = r.ticks
    fates = t["samples"] + t["idle"] + t["unselected"] + t["lost"]
    check(t["ticks"] == fates, f"{t['ticks']} ticks have {fates} fates:{shown(r.stderr)}")
    if cpu:
        total = r.profile.total("samples")
        check(total == t["samples"], f"{total} samples in the file, {t['samples']} in the summary")


def check_profile(p, freq):
    """The rules for CPU profiles: types, period, values, labels, and a name for each frame."""
    period = round(1e9 / freq)
    types = [("samples", "count"), ("cpu", "nanoseconds")]
    check(p.sample_types == types, f"sample types are {p.sample_types}")
    check(p.default_sample_type == "cpu", f"default sample type is '{p.default_sample_type}'")
    check(p.period_type == ("cpu", "nanoseconds"), f"period type is {p.period_type}")
    check(abs(p.period - period) <= 1, f"period is {p.period}, not {period}")
    check(p.time_nanos > 1e18 and p.duration_nanos > 0, "no time or no duration")
    check(p.sequential, "ids are not 1, 2, 3, ...")
    seen = set()
    for s in p.samples:
        count, nanoseconds = s.values
        check(count > 0, f"a sample counts {count}")
        check(nanoseconds == count * p.period, f"{nanoseconds} ns for {count} samples")
        check(s.locations, "a sample has no frames")
        check("comm" in s.labels and "pid" in s.labels, f"a sample has only labels {s.labels}")
        key = (tuple(map(id, s.locations)), tuple(s.all_labels))
        check(key not in seen, f"a stack of {s.labels} comes twice")
        seen.add(key)
    for s in p.samples:
        for f in s.frames:
            check(f.name or f.mapping, f"frame {f.address:x} has neither name nor mapping")
    for m in p.mappings:
        check(re.fullmatch(r"([0-9a-f]{2})*", m.build_id), f"build id '{m.build_id}'")


# ---- counting ----


def under(*names):
    """Samples that have functions of all these names on their stack."""
    return lambda s: set(names) <= {f.name for f in s.frames}


def leaf(name):
    return lambda s: s.frames[0].name == name


def labelled(**labels):
    return lambda s: all(s.labels.get(k) == v for k, v in labels.items())


def count(r, *which):
    """Samples of a recording (or profile) to which all of these apply."""
    profile = r.profile if isinstance(r, Recording) else r
    return sum(s.values[0] for s in profile.samples if all(w(s) for w in which))


def expect_some(r, *which, at_least=40):
    n = count(r, *which)
    check(n >= at_least, f"{n} samples, expected at least {at_least}; the profile has\n{top(r)}")
    return n


def expect_none(r, *which, what="samples of this kind"):
    n = count(r, *which)
    check(n == 0, f"{n} {what}; the profile has\n{top(r)}")


def expect_share(r, part, share, among, at_least=100, sigmas=5):
    """The share of `part` among `among` is what it should be, as far as so few samples can tell:
    within five standard deviations of a binomial distribution (wrong once in 1.7 million)."""
    n = expect_some(r, among, at_least=at_least)
    k = count(r, part, among)
    margin = sigmas * math.sqrt(n * share * (1 - share)) + 1
    check(
        abs(k - n * share) <= margin,
        f"{k} of {n} samples ({100 * k / n:.1f} %), expected {100 * share:.1f} % "
        f"+- {100 * margin / n:.1f}; the profile has\n{top(r)}",
    )


def at_work(s):
    """Not reading the clock: between rounds a test program asks how long it has worked (work.h), which
    takes a share of its time that is the machine's affair."""
    return {f.name for f in s.frames}.isdisjoint(("seconds_worked", "clock_gettime", "__vdso_clock_gettime"))


def expect_most(r, part, among=at_work, share=0.97, at_least=100, sigmas=3):
    """For what a few ticks at the edges (start, exec, exit) may miss: fails when so few are unlikely
    if the true share were this, by the standard deviation of a binomial distribution."""
    n = expect_some(r, among, at_least=at_least)
    k = count(r, part, among)
    least = n * share - sigmas * math.sqrt(n * share * (1 - share))
    check(k >= least, f"{k} of {n} samples, expected {share:.0%}; the profile has\n{top(r)}")


def top(r, rows=25):
    """The heaviest stacks of a recording, for messages."""
    profile = r.profile if isinstance(r, Recording) else r
    lines = []
    for s in sorted(profile.samples, key=lambda s: -s.values[0])[:rows]:
        names = [
            f.name or f"{f.mapping.file if f.mapping else ''}+0x{f.address:x}" for f in s.frames
        ]
        if len(names) > 14:
            names[7:-6] = ["..."]
        lines.append(f"  {s.values[0]:6} {s.labels} {' < '.join(names)}")
    return "\n".join(lines) or "  no samples"


def symbols(path):
    """Functions of an ELF file by nm: name -> (start, end)."""
    need("nm")
    text = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return {
        row[3]: (int(row[0], 16), int(row[0], 16) + int(row[1], 16))
        for row in rows
        if len(row) == 4 and row[2] in "tT"
    }
