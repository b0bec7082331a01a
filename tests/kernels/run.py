"""Runs wick on the kernels of several Debian releases, under emulation. Needs no privileges.

    WICK=build/wick python3 tests/kernels/run.py [--directory DIR] [--refresh] [SERIES...]

Downloads are kept in the directory (build/kernels) and used again; --refresh asks for newer ones.
A kernel that can't be had at the moment is not run: that is said, and fails nothing. Prints a line
for each check, a table, and as the last line "N passed, N failed, N skipped". Exits 1 if one
failed.

How an emulated processor's time falls on the ticks is chance, and the more so on a busy machine. One kernel of
a run whose checks fail is therefore booted a second time, and that counts; both are shown.
"""

import argparse
import collections
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import archive  # noqa: E402
import guest  # noqa: E402

KERNELS = {
    "5.10": ["bullseye", "bullseye-security"],
    "6.1": ["bookworm", "bookworm-security"],
    "6.12": ["trixie", "trixie-security"],
    "7": ["sid", "experimental"],
}
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
BOOT_SECONDS = 300
SAMPLES_MIN = 120  # of 1,500 that 3 s at 499 Hz make; the emulation may be starved
SHARE_A = 0.75     # hot_a of hot_a and hot_b, by spin.c
SIGMAS = 4         # one honest run in 16,000 lies outside
ROOTED_MIN = 0.98
EXCERPT_LINES = 60
LINE_MAX = 200

Ticks = collections.namedtuple("Ticks", "ticks samples idle unselected lost")
Program = collections.namedtuple("Program", "instructions milliseconds")


class Wrong(Exception):
    """What a check found, in a sentence."""


def expect(condition, text):
    if not condition:
        raise Wrong(text)


# ---- what the guest said ----

class Report:
    """The sections of one boot, read. A missing section is a check that fails."""

    def __init__(self, sections, console):
        self.sections, self.console = sections, console

    def ok(self, name):
        section = self.sections.get(name)
        tail = self.console.rstrip().rsplit("\n", EXCERPT_LINES)[1:]
        expect(section, f"no section {name}; the console ends with\n" + "\n".join(tail))
        excerpt = section.text.rsplit("\n", EXCERPT_LINES)
        expect(not section.status,
               f"exit status {section.status}:\n" + "\n".join(excerpt[-EXCERPT_LINES:]))
        return section.text

    def ticks(self, name):
        found = re.search(r"ticks (\d+) = samples (\d+) \+ idle (\d+) \+ unselected (\d+) \+ "
                          r"lost (\d+)", self.ok(name))
        expect(found, "no account of the ticks:\n" + self.ok(name))
        return Ticks(*map(int, found.groups()))

    def stacks(self, name):
        """[(frames, count)], root first; kernel frames end in _[k]. The first is the thread."""
        self.ok(name)
        lines = self.ok(f"{name}.folded").splitlines()
        return [(stack.split(";"), int(n)) for stack, n in (line.rsplit(" ", 1) for line in lines)]

    def programs(self):
        """What verifying cost: {name: Program}."""
        found = re.findall(r"prog '(\w+)'.*\nverification time (\d+) usec\n(?:stack.*\n)?"
                           r"processed (\d+) insns", self.ok("load"))
        return {name: Program(int(n), int(us) / 1000) for name, us, n in found}

    def boot_seconds(self):
        return float(self.ok("kernel").split()[0])


def total(stacks, *frames):
    """Samples with these frames on their stack, as neighbours, caller first."""
    n = len(frames)
    return sum(count for stack, count in stacks
               if any(tuple(stack[i:i + n]) == frames for i in range(len(stack) - n + 1)))


# ---- checks: of a Report, Wrong when it isn't so ----

def accounts(name):
    def check(report):
        """every tick accounted for, none lost"""
        t = report.ticks(name)
        expect(t.ticks == t.samples + t.idle + t.unselected + t.lost, f"doesn't add up: {t}")
        expect(t.samples >= SAMPLES_MIN, f"only {t.samples} samples")
        expect(t.lost * 1000 <= t.ticks, f"{t.lost} of {t.ticks} ticks lost")
        in_file = sum(n for _, n in report.stacks(name))
        expect(in_file == t.samples, f"{t.samples} samples, but {in_file} in the file")
    return check


def roots(name):
    def check(report):
        """stacks reach their root"""
        stacks = report.stacks(name)
        whole = sum(n for stack, n in stacks if stack[1:2] == ["_start"])
        samples = sum(n for _, n in stacks)
        expect(whole >= ROOTED_MIN * samples, f"{whole} of {samples}")
    return check


def shares(name):
    def check(report):
        """hot_a and hot_b 3:1, with their callers"""
        stacks = report.stacks(name)
        a = total(stacks, "main", "work", "hot_a")
        b = total(stacks, "main", "work", "hot_b")
        for function, called in (("hot_a", a), ("hot_b", b)):
            seen = total(stacks, function)
            expect(called >= ROOTED_MIN * seen, f"{called} of {seen} {function} below main, work")
        n = a + b
        expect(n >= SAMPLES_MIN / 4, f"only {n} samples in both")
        width = SIGMAS * math.sqrt(n * SHARE_A * (1 - SHARE_A))
        expect(abs(a - SHARE_A * n) <= width,
               f"{a} of {n}: outside {SHARE_A * n:.0f} +- {width:.0f}")
    return check


def kernel_halves(name):
    def check(report):
        """kernel stacks stand on their user stacks"""
        stacks = report.stacks(name)
        kernel = [(s, n) for s, n in stacks if "vfs_read_[k]" in s]
        samples = sum(n for _, n in kernel)
        expect(samples >= SAMPLES_MIN / 20, f"only {samples} samples in the kernel's read")
        whole = total(kernel, "main", "work", "ask_kernel")
        expect(whole >= ROOTED_MIN * samples, f"{whole} of {samples}")
    return check


def starts(report):
    """wick check finds nothing that blocks"""
    expect("Profiling can start" in report.ok("check"), report.ok("check"))


def loads(report):
    """the kernel accepts the BPF programs"""
    report.ok("load")


def short_lives(report):
    """processes of milliseconds have names"""
    stacks = report.stacks("storm")
    seen, called = total(stacks, "short_life"), total(stacks, "main", "short_life")
    expect(seen >= SAMPLES_MIN / 20, f"only {seen} samples in short_life")
    expect(called >= ROOTED_MIN * seen, f"{called} of {seen} below main")


def figures(report):
    """What label_samples counted: {labels or name: number}."""
    found = {}
    for line in report.ok("labels").splitlines():
        a, _, b = line.partition(" ")
        found.update({b: int(a)} if a.isdigit() else {a: int(b)} if b.isdigit() else {})
    return found


def labelled(report):
    """a container that has gone keeps its labels, a process its executable"""
    found = {name: n for name, n in figures(report).items() if 'container="web"' in name}
    expect(sum(found.values()) >= 20 and not figures(report).get("cgroup_unseen"),
           report.ok("labels"))
    named = sum(n for name, n in figures(report).items() if 'exe="/bin/' in name)
    unnamed = sum(n for name, n in figures(report).items() if 'service_name="unknown"' in name)
    expect(named > 10 * unnamed, report.ok("labels"))


def turned_down(report):
    """what a rule turns down is decided before its stack is walked"""
    f = figures(report)
    expect(f.get("skipped_processes", 0) >= 1 and f.get("unselected", 0) > f.get("unwanted", 0) > 0,
           report.ok("labels"))
    t = [f.get(n, 0) for n in ("ticks", "recorded", "idle", "unselected")]
    expect(t[0] == sum(t[1:]), f"doesn't add up: {t}")


CHECKS = [("check", starts), ("load", loads)]
for run_name in ("pointers", "tables"):
    CHECKS += [(run_name, make(run_name)) for make in (accounts, roots, shares, kernel_halves)]
CHECKS += [("storm", accounts("storm")), ("storm", short_lives)]
CHECKS += [("labels", labelled), ("labels", turned_down)]


# ---- building and running ----

def machine_of(program):
    """The architecture of an ELF file: e_machine, the half word at 18 (gABI, ELF header)."""
    with open(program, "rb") as f:
        head = f.read(20)
    return {62: "x86_64", 183: "aarch64"}[int.from_bytes(head[18:20], "little")]


def missing(arch, sysroot):
    """What has to be installed first, or None."""
    emulator = guest.MACHINES[arch][0]
    if not shutil.which(emulator):
        return f"{emulator} is not installed"
    if not os.path.exists(f"{sysroot}/bin/busybox"):
        return f"{sysroot}/bin/busybox doesn't exist: package busybox-static"
    return None


def build_programs(directory):
    """The programs under test, static: {path in the guest: file}."""
    os.makedirs(directory, exist_ok=True)
    made = {}
    for name, source, flag in (("spin", "spin", "-fno-omit-frame-pointer"),
                               ("spin-tables", "spin", "-fomit-frame-pointer"),
                               ("storm", "storm", "-fno-omit-frame-pointer")):
        out = os.path.join(directory, name)
        command = [*shlex.split(os.environ.get("CC", "gcc")), "-std=gnu17", "-D_GNU_SOURCE",
                   "-Wall", "-Wextra", "-O2", "-static", flag, "-o", out,
                   os.path.join(HERE, "programs", f"{source}.c")]
        subprocess.run(command, check=True)
        made[f"/bin/{name}"] = out
    return made


def build_initramfs(directory, wick, label_samples, sysroot):
    path = os.path.join(directory, "initramfs")
    guest.write_initramfs(path, {
        "/init": os.path.join(HERE, "init"), "/bin/wick": wick,
        "/bin/label_samples": label_samples,
        "/bin/busybox": f"{sysroot}/bin/busybox",
        **build_programs(os.path.join(directory, "programs")), **guest.libraries(wick, sysroot),
        **guest.libraries(label_samples, sysroot)})
    return path


def judge(series, report):
    """Runs every check, prints a line for each: (passed, failed)."""
    counts = [0, 0]
    for name, check in CHECKS:
        try:
            check(report)
            outcome, text = 0, ""
        except Wrong as e:
            outcome, text = 1, f": {e}"
        counts[outcome] += 1
        head, *rest = text.split("\n")
        print(f"{'FAIL' if outcome else 'ok  '} {series} {name}: {check.__doc__}{head}")
        for line in rest:
            print(f"\t{line[:LINE_MAX]}")
    return counts


def row(version, report, counts, seconds):
    """A line of the final table; what couldn't be found out is a dash."""
    def tried(function):
        try:
            return function()
        except (Wrong, IndexError, ValueError):
            return "-"

    def verified():
        programs = report.programs().values()
        expect(programs, "no statistics")
        return (f"{sum(p.instructions for p in programs)} "
                f"in {sum(p.milliseconds for p in programs):.0f} ms")

    def rooted(name):
        return re.search(r"(\S+) % of user stacks", report.ok(name))[1]

    shown = ("tables", "storm")
    return (version, f"{counts[0]}/{sum(counts)}", tried(lambda: f"{report.boot_seconds():.1f}"),
            tried(verified), *(tried(lambda n=n: str(report.ticks(n).samples)) for n in shown),
            *(tried(lambda n=n: rooted(n)) for n in shown), f"{seconds:.0f}")


HEAD = ("kernel", "checks", "boot s", "instructions verified", "samples", "storm", "rooted %",
        "storm %", "all s")


def print_table(rows):
    widths = [max(len(r[i]) for r in [HEAD, *rows]) for i in range(len(HEAD))]
    for r in [HEAD, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip())


def print_programs(series, report):
    for name, p in report.programs().items():
        print(f"     {series} {name}: {p.instructions} instructions verified in "
              f"{p.milliseconds:.0f} ms")


def run_kernel(series, directory, initramfs, arch, refresh):
    """(table row, [passed, failed]); archive.Unavailable if there is no such kernel now."""
    version, image = archive.Archive(os.path.join(directory, series), KERNELS[series],
                                     DEBIAN_NAMES[arch]).kernel(series, refresh)
    print(f"---- {series}: {version} {arch}", flush=True)
    start = time.monotonic()
    sections, console = guest.boot(image, initramfs, arch, BOOT_SECONDS)
    seconds = time.monotonic() - start
    with open(os.path.join(directory, series, "console"), "w", encoding="utf-8") as f:
        f.write(console)
    report = Report(sections, console)
    counts = judge(series, report)
    try:
        print_programs(series, report)
    except Wrong:
        pass  # said already, by the check of loading
    return row(version, report, counts, seconds), counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("series", nargs="*", help=f"of {', '.join(KERNELS)}; default all")
    parser.add_argument("--directory", default="build/kernels", help="default %(default)s")
    parser.add_argument("--refresh", action="store_true", help="look for newer kernels")
    args = parser.parse_args()
    series = args.series or list(KERNELS)
    unknown = set(series) - set(KERNELS)
    if unknown:
        parser.error(f"no such series: {', '.join(unknown)}; there are {', '.join(KERNELS)}")

    wick, sysroot = os.environ.get("WICK", "build/wick"), os.environ.get("SYSROOT", "")
    label_samples = os.path.join(os.path.dirname(wick), "workload", "label_samples")
    arch = machine_of(wick)
    directory = os.path.abspath(os.path.join(args.directory, arch))
    why = missing(arch, sysroot)
    initramfs = None
    if not why:
        os.makedirs(directory, exist_ok=True)
        initramfs = build_initramfs(directory, wick, label_samples, sysroot)
    passed = failed = skipped = 0
    rows = []
    second_try = ""
    for name in series:
        try:
            if why:
                raise archive.Unavailable(why)
            line, counts = run_kernel(name, directory, initramfs, arch, args.refresh)
            if counts[1] and not second_try:
                second_try = f", {name} at the second try"
                print(f"---- {name}: a second try", flush=True)
                line, counts = run_kernel(name, directory, initramfs, arch, False)
        except archive.Unavailable as reason:
            print(f"**** {name}: NOT RUN: {reason}", flush=True)
            skipped += len(CHECKS)
            rows.append((name, "not run") + ("-",) * (len(HEAD) - 2))
            continue
        rows.append(line)
        passed += counts[0]
        failed += counts[1]
        sys.stdout.flush()
    print_table(rows)
    print(f"{passed} passed{second_try}, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
