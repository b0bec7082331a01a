"""--vmlinux: lines of the running kernel's file, and clear words where it isn't that."""

import os
import re
import subprocess

import lib
from lib import check, need, program, record


def kernel():
    """(build id, {symbol: address}) of the running kernel."""
    with open("/sys/kernel/notes", "rb") as f:
        notes = f.read()
    found = re.search(rb"\x04\0\0\0(.)\0\0\0\x03\0\0\0GNU\0", notes, re.S)
    if not found:
        raise lib.Skip("the kernel has no build id")
    build_id = notes[found.end():found.end() + found.group(1)[0]].hex()
    with open("/proc/kallsyms") as f:
        words = (line.split() for line in f)
        marks = {w[2]: int(w[0], 16) for w in words if len(w) == 3 and w[2] in ("_stext", "_etext")}
    if not marks.get("_stext"):
        raise lib.Skip("kallsyms is unreadable")
    return build_id, marks


def make_vmlinux(path, build_id, size, flags=("-g",)):
    """All of the kernel's code is one line, the third, of fake.s; linked elsewhere than it runs."""
    need("gcc", "ld")
    with open("fake.s", "w") as f:
        f.write(f".globl _stext, _text\n_stext: _text:\n\tnop\n\t.skip {size}\n\t.section .note.GNU-stack\n")
    subprocess.run(["gcc", *flags, "-c", "fake.s", "-o", "fake.o"], check=True)
    subprocess.run(["ld", "-static", "-z", "max-page-size=4096", "-Ttext=0xffffffff90000000",
                    f"--build-id=0x{build_id}", "-e", "_text", "-o", path, "fake.o"], check=True)


def test_lines_of_the_kernel():
    build_id, marks = kernel()
    make_vmlinux("vmlinux", build_id, marks["_etext"] - marks["_stext"])
    r = record("--vmlinux", "vmlinux", command=["sh", "-c", "head -c 2G /dev/zero > /dev/null"])
    core = [f for s in r.profile.samples for f in s.frames
            if f.mapping and f.mapping.file == "[kernel.kallsyms]" and f.name]
    check(len(core) > 20, f"{len(core)} kernel frames\n{lib.top(r)}")
    check(all(f.file.endswith("/fake.s") and f.line == 3 for f in core),
          {(f.name, f.file, f.line) for f in core if f.line != 3})
    check(any(f.name == "do_syscall_64" or f.name.startswith("el0") for f in core), lib.top(r))


def test_refused():
    build_id, marks = kernel()
    size = marks["_etext"] - marks["_stext"]
    make_vmlinux("other", os.urandom(20).hex(), 64)
    make_vmlinux("empty", build_id, size, flags=())
    for path, words in (("other", "other is of another kernel: its build id is"),
                        ("empty", "empty has no debug information"),
                        ("fake.s", "not an ELF file"),
                        (program("inlined"), "is of another kernel|has no build id")):
        _, stderr = lib.wick("record", "--vmlinux", path, "-d", "0.1", status=1)
        check(re.search(words, stderr), stderr)
        _, stderr = lib.wick("agent", "--lines", "--vmlinux", path, "--listen", "none", status=1)
        check(re.search(words, stderr), stderr)
    _, stderr = lib.wick("record", "--vmlinux", "other", "--no-lines", "-d", "0.1", status=2)
    check("exclude each other" in stderr, stderr)
    _, stderr = lib.wick("agent", "--vmlinux", "other", status=2)
    check("--lines" in stderr, stderr)
    _, stderr = lib.wick("record", "--vmlinux", "absent", "-d", "0.1", status=2)
    check("No such file" in stderr, stderr)
