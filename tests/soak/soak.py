"""A long recording of a host on which nothing lasts, with small limits.

    sudo SOAK_SECONDS=600 python3 tests/soak/soak.py

While processes, files and mappings come and go (churn.py), wick records everything. At the end:
    accounting  ticks = samples + idle + unselected + lost, and the profile has those samples
    names       no sample has a function that can't be there (a stale mapping, file or symbol)
    maps        kernel memory of wick's maps isn't more in the last part than in the first
    memory      resident memory grows by no more than the profile's own growth can explain
    files       descriptors stay within their limit
Prints a line for each and last "N passed, N failed"; exit status 1 if one failed.
"""

import os
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(0, HERE)

import churn  # noqa: E402
import lib  # noqa: E402

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
FREQ = 199
MAX_FILES = 512
LIMITS = ["--max-files", str(MAX_FILES), "--unwind-bytes", "5M", "--window-bytes", "128K"]
SHARE = 6  # the first and the last sixth are compared

MIB = 1 << 20
SLACK = 8 * MIB
# Of resident memory: what a recording keeps of a sample until it has become a profile. A process of its own
# makes each stack a sample of its own.
SAMPLE_BYTES = 1024
FDS_BESIDE = 128  # maps, programs, events; beyond one for each file


def map_bytes(pid):
    """Kernel memory of the BPF maps that a process holds (bpf_map_show_fdinfo), each map once."""
    maps = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                info = dict(line.split(":\t", 1) for line in f if ":\t" in line)
        except OSError:
            continue
        if "map_type" in info:
            maps[info["map_id"]] = int(info["memlock"])
    return sum(maps.values())


class Watch(threading.Thread):
    """Looks at a process once a second: [(resident bytes, map bytes, descriptors)]."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.seen, self.over = pid, [], threading.Event()

    def run(self):
        while not self.over.wait(1):
            try:
                with open(f"/proc/{self.pid}/statm") as f:
                    resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                fds = len(os.listdir(f"/proc/{self.pid}/fd"))
                self.seen.append((resident, map_bytes(self.pid), fds))
            except OSError:
                return

    def parts(self, which):
        """The highest of a figure in the first and in the last part."""
        n = max(1, len(self.seen) // SHARE)
        values = [s[which] for s in self.seen]
        return max(values[n : 2 * n] or values), max(values[-n:])


def expect_accounting(r, watch):
    lib.check_accounting(r)
    return " ".join(f"{name} {n}" for name, n in r.ticks.items())


def expect_names(r, watch):
    wrong, right, seen = churn.wrong_names(r.profile)
    lib.check(not wrong, f"{len(wrong)} samples: " + "; ".join(wrong[:5]))
    lib.check(right > 10 * SECONDS / 6, f"only {right} samples in functions of variants")
    lib.check(len(seen) > churn.VARIANTS, f"only {len(seen)} variants seen")
    return f"{right} samples of {len(seen)} variants, none with another's name"


def expect_maps(r, watch):
    first, last = watch.parts(1)
    lib.check(last <= first + first // 10 + MIB, f"{first / MIB:.1f} MiB at first, {last / MIB:.1f} at last")
    return f"{first / MIB:.1f} MiB at first, {last / MIB:.1f} at last"


def expect_memory(r, watch):
    first, last = watch.parts(0)
    kept = len(r.profile.samples) * SAMPLE_BYTES
    text = f"{first / MIB:.1f} MiB at first, {last / MIB:.1f} at last, with {len(r.profile.samples)} different samples"
    lib.check(last - first <= kept + SLACK, text)
    return text


def expect_files(r, watch):
    _, last = watch.parts(2)
    limit = MAX_FILES + FDS_BESIDE + 2 * MAX_FILES  # a table of rows is a map of its own
    lib.check(last <= limit, f"{last} descriptors")
    return f"{last} descriptors"


CHECKS = [expect_accounting, expect_names, expect_maps, expect_memory, expect_files]


def soak(directory):
    churn.build()
    with lib.recording(*LIMITS, freq=FREQ) as wick:
        watch = Watch(wick.pid)
        watch.start()
        with churn.everything(directory, SECONDS):
            threading.Event().wait(SECONDS)
        watch.over.set()
        watch.join()
    print(wick.recording.stderr.strip())
    return wick.recording, watch


def main(run, checks):
    """Runs in a directory of its own, then each of the checks on what run has returned. Exit status."""
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        result = run(directory)
        for expect in checks:
            name = expect.__name__.removeprefix("expect_")
            try:
                print(f"ok   {name}: {expect(*result)}")
                passed += 1
            except AssertionError as why:
                print(f"FAIL {name}: {why}")
                failed += 1
        os.chdir("/")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(soak, CHECKS))
