"""Where a file's names can be had from, and where they must not: one program in many places, each with the exact
names that its stack must have.

All run at once, in one recording of the machine. Elsewhere: test_shares.py (stripped, static, static-pie, lld, no
call frame information), test_processes.py (deleted between two drains, exec in place, libraries that change, text on
huge pages), test_lines.py (compressed sections, split DWARF, dwz), test_jit.py and test_runtimes.py (perf maps,
jitdumps, pid namespaces), test_debuginfod.py, test_hostile.py; unwind/ground_truth.py (gold, mold, .plt, cgo, Go PIE).
"""

import contextlib
import os
import shutil
import subprocess

import lib
from lib import check, expect_most, expect_none, expect_some, labelled, program, recording, under

SECONDS = "0.5"
HOT = ("hot_a", "round_of_both", "main")
WHERE = "usr/lib/debug"


def run(*argv):
    subprocess.run([str(a) for a in argv], check=True)


def build_id(path):
    said = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return said.split("Build ID: ")[1].split()[0]


def linked(name, *flags):
    """shares, linked in a way of its own; its path, or None where the linker isn't there."""
    source = os.path.join(lib.build.SOURCES, "shares.c")
    done = subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-g", "-fno-inline", "-Wl,--build-id", *flags, source, "-o", name],
                          capture_output=True, text=True)
    return os.path.abspath(name) if not done.returncode else None


class Lab:
    """Processes that run until the end of the recording; what to expect of each, by the name of its thread."""

    def __init__(self, stack, after):
        self.stack, self.after, self.named, self.nameless = stack, after, [], []

    def start(self, name, argv, has_names=True, lives=False):
        """lives: until all is named, since what can be seen through its root only can be seen so long."""
        process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL)
        if lives:
            self.stack.callback(lib.let_work, process.pid, seconds=float(SECONDS))
            self.after.callback(process.wait)
            self.after.callback(process.kill)
        else:
            self.stack.callback(process.wait)
        (self.named if has_names else self.nameless).append(name)
        return process

    def place(self, name, source, directory="."):
        path = os.path.abspath(os.path.join(directory, name))
        shutil.copy(source, path)
        return path


def in_mount_namespace(script):
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script]


def files_that_go(lab):
    """Whoever opens the path later finds nothing, or something else."""
    path = lab.place("lab-deleted", program("shares"))
    lab.start("lab-deleted", [path, SECONDS])
    yield lambda: os.unlink(path)
    replaced = lab.place("lab-replaced", program("shares"))
    lab.start("lab-replaced", [replaced, SECONDS])
    shutil.copy(program("burst-0"), "other")
    yield lambda: os.replace("other", replaced)


def files_elsewhere(lab):
    """Not to be found by their path here."""
    source = program("shares")
    fd = os.memfd_create("lab")
    with open(source, "rb") as f:
        os.write(fd, f.read())
    lab.stack.callback(os.close, fd)
    process = subprocess.Popen(["lab-memfd", SECONDS], executable=f"/proc/{os.getpid()}/fd/{fd}", stdin=subprocess.DEVNULL)
    lab.stack.callback(process.wait)
    lab.named.append(str(fd))  # the thread is called by the last part of the path
    os.mkdir("mnt")
    script = f"mount -t tmpfs none mnt; cp {source} mnt/lab-mount-ns; exec mnt/lab-mount-ns {SECONDS}"
    lab.start("lab-mount-ns", in_mount_namespace(script))
    os.makedirs("overlay/lower")
    shutil.copy(source, "overlay/lower/lab-overlay")
    options = "lowerdir=overlay/lower,upperdir=overlay/t/upper,workdir=overlay/t/work"
    script = ("mkdir overlay/t overlay/merged; mount -t tmpfs none overlay/t; mkdir overlay/t/upper overlay/t/work; "
              f"mount -t overlay none -o {options} overlay/merged; exec overlay/merged/lab-overlay {SECONDS}")
    lab.start("lab-overlay", in_mount_namespace(script))


def debug_files(lab):
    """Stripped: by mini debug info, .gnu_debuglink, build id; and not by a file that isn't its own."""
    source = linked("full", "-static")
    run("objcopy", "--only-keep-debug", source, "full.debug")
    run("objcopy", "--strip-debug", "--remove-section=.comment", source, "mini")
    run("xz", "-f", "mini")
    run("objcopy", "--strip-all", "--add-section", ".gnu_debugdata=mini.xz", source, "lab-minidebug")
    lab.start("lab-minidebug", ["./lab-minidebug", SECONDS])

    os.makedirs("right/.debug")
    shutil.copy("full.debug", "right/.debug/lab.debug")
    run("objcopy", "--strip-all", "--add-gnu-debuglink=right/.debug/lab.debug", "--remove-section=.note.gnu.build-id",
        source, "right/lab-debuglink")
    lab.start("lab-debuglink", ["right/lab-debuglink", SECONDS])

    os.mkdir("wrong")
    shutil.copy("right/lab-debuglink", "wrong/lab-wrong-crc")
    with open("full.debug", "rb") as f, open("wrong/lab.debug", "wb") as to:
        to.write(f.read() + b"\0")
    lab.start("lab-wrong-crc", ["wrong/lab-wrong-crc", SECONDS], has_names=False)

    root = os.path.abspath("root")
    identity = build_id(source)
    os.makedirs(f"{root}/{WHERE}/.build-id/{identity[:2]}")
    shutil.copy("full.debug", f"{root}/{WHERE}/.build-id/{identity[:2]}/{identity[2:]}.debug")
    run("objcopy", "--strip-all", source, f"{root}/lab-build-id")

    other = linked("other-id", "-static", "-O2")  # a debug file of another build under this one's id
    run("objcopy", "--strip-all", other, f"{root}/lab-wrong-id")
    identity = build_id(other)
    os.makedirs(f"{root}/{WHERE}/.build-id/{identity[:2]}", exist_ok=True)
    shutil.copy("full.debug", f"{root}/{WHERE}/.build-id/{identity[:2]}/{identity[2:]}.debug")
    os.mkdir("here")
    for name, has_names in ("lab-build-id", True), ("lab-wrong-id", False):
        script = f"mount -t tmpfs none here; cp -a root/. here; exec chroot here /{name} 60"
        lab.start(name, in_mount_namespace(script), has_names=has_names, lives=True)


def linkers(lab):
    """Addresses that aren't file offsets, each in its way."""
    ways = {"lab-text-addr": ["-no-pie", "-Wl,-Ttext-segment=0x70000000"], "lab-gold": ["-fuse-ld=gold"],
            "lab-mold": ["-fuse-ld=mold"], "lab-lld": ["-fuse-ld=lld", "-Wl,-z,separate-loadable-segments"],
            "lab-noseparate": ["-Wl,-z,noseparate-code"], "lab-large-pages": ["-Wl,-z,max-page-size=2097152"]}
    for name, flags in ways.items():
        path = linked(name, *flags)
        if path:
            lab.start(name, [path, SECONDS])


def test_lab():
    lib.need("objcopy", "readelf", "xz", "unshare", "chroot")
    with contextlib.ExitStack() as after, contextlib.ExitStack() as stack:
        lab = Lab(stack, after)
        with recording() as process:
            later = list(files_that_go(lab))
            files_elsewhere(lab)
            debug_files(lab)
            linkers(lab)
            for change in later:
                change()
            stack.close()
    r = process.recording
    check(len(lab.named) >= 10, lab.named)
    for name in lab.named:
        mine = labelled(comm=name[:15])
        expect_most(r, under(*HOT[1:]), among=lambda s, m=mine: m(s) and s.frames[-1].name == "_start", share=0.9,
                    at_least=60)
        expect_some(r, mine, lambda s: s.frames[0].name == "hot_a" and [f.name for f in s.frames[:3]] == [*HOT])
    for name in lab.nameless:
        mine = labelled(comm=name[:15])
        expect_none(r, lambda s, m=mine: m(s) and (under("hot_a")(s) or under("round_of_both")(s)), what=f"names of {name}")
        check(any(mine(s) for s in r.profile.samples), f"{name} wasn't seen")
