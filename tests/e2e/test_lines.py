"""Source lines and inlined calls: exact chains, by every way of keeping debug information."""

import os
import shutil
import subprocess
import tempfile

import build
import lib
from lib import expect_most, need, program, record

CHAIN = ("innermost", "middle", "outer", "main")


def marked(source):
    """The lines of a source by the comment at their ends."""
    lines = {}
    with open(os.path.join(build.SOURCES, source)) as f:
        for number, text in enumerate(f, 1):
            for name in CHAIN:
                if text.rstrip().endswith((f"/* {name} */", f"// {name}")):
                    lines[name] = number
    return lines


def last(name):
    return name.rsplit("::")[-1].rsplit(".")[-1]


def has_chain(source):
    """Samples whose four innermost frames are the chain, each at its line. Those of the loop itself may
    be at its head, a line or two before the marked one."""
    expected = marked(source)

    def check(s):
        frames = list(s.frames)
        while frames and last(frames[0].name) != "innermost":
            frames.pop(0)   # what it calls, inlined in turn; the kernel
        frames = frames[:4]
        if tuple(last(f.name) for f in frames) != CHAIN:
            return False
        return (0 <= expected["innermost"] - frames[0].line <= 2 and
                all(f.line == expected[last(f.name)] for f in frames[1:]) and
                all(f.file.endswith("/" + source) for f in frames) and
                [f.inlined for f in frames] == [True, True, False, False])
    return check


def expect_chain(r, source, path):
    expect_most(r, has_chain(source), among=lambda s: any(last(f.name) == "outer" for f in s.frames),
                share=0.95, at_least=60)
    mapping = [m for m in r.profile.mappings if m.file == path][0]
    lib.check(mapping.has_filenames and mapping.has_line_numbers and mapping.has_inline_frames,
              f"the mapping says {mapping}")
    outer = {f for s in r.profile.samples for loc in s.locations for f in
             (line.function for line in loc.lines) if last(f.name) == "outer"}
    lib.check(len(outer) == 1, f"functions called outer: {outer}")


@lib.each("inlined", "inlined-2", "inlined-clang", "inlined-zlib", "inlined-zlib-gnu", "inlined-zstd")
def test_c(name):
    path = program(name)
    expect_chain(record(command=[path, "0.5"]), "inlined.c", path)


def test_rust():
    path = program("inlined-rust")
    expect_chain(record(command=[path, "0.5"]), "inlined.rs", path)


@lib.each("inlined-go", "inlined-go-stripped", "inlined-go-pie")
def test_go(name):
    path = program(name)
    expect_chain(record(command=[path, "0.5"]), "inlined.go", path)


@lib.each("inlined-go-stripped", "inlined-go-pie")
def test_go_without_section_headers(name):
    """Its own table is all that there is, and nothing says where."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "headerless")
        shutil.copy(program(name), path)
        with open(path, "r+b") as f:
            f.seek(0x28)
            f.write(bytes(8))   # e_shoff
            f.seek(0x3a)
            f.write(bytes(6))   # e_shentsize, e_shnum, e_shstrndx
        expect_chain(record(command=[path, "0.5"]), "inlined.go", path)


def test_go_table_in_another_section():
    """As GNU ld leaves it in position-independent programs with cgo."""
    need("objcopy")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "merged")
        subprocess.run(["objcopy", "--rename-section", ".gopclntab=.data.rel.ro", program("inlined-go-pie"), path],
                       check=True)
        expect_chain(record(command=[path, "0.5"]), "inlined.go", path)


def test_debug_file_beside_it():
    need("objcopy")
    with tempfile.TemporaryDirectory() as directory:
        path, debug = os.path.join(directory, "stripped"), os.path.join(directory, "stripped.debug")
        shutil.copy(program("inlined"), path)
        subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path], check=True)
        expect_chain(record(command=[path, "0.5"]), "inlined.c", path)


@lib.each("dwo", "dwp")
def test_split_units_in_a_container(kind):
    """In a root of its own, where the host has nothing: the units are looked for in there."""
    need("gcc", *(["llvm-dwp"] if kind == "dwp" else []))
    with tempfile.TemporaryDirectory() as directory:
        root = os.path.join(directory, "made")
        path = os.path.join(root, "split")
        os.mkdir(root)
        # llvm-dwp 14 doesn't come back from gcc's DWARF 5
        subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-gsplit-dwarf", "-c", "-o",
                        path + ".o", "inlined.c", *(["-gdwarf-4"] if kind == "dwp" else [])],
                       cwd=build.SOURCES, check=True)
        subprocess.run(["gcc", "-static", "-o", path, path + ".o"], check=True)
        if kind == "dwp":
            subprocess.run(["llvm-dwp", path + ".dwo", "-o", path + ".dwp"], check=True, timeout=60)
            os.remove(path + ".dwo")
        # its root is there for as long as it runs
        with lib.running(*lib.in_own_root(root, "/split", "60")) as process:
            r = lib.record_work("-p", process.pid, of=[process], seconds=0.7)
        os.rmdir(root + ".root")
        expect_chain(r, "inlined.c", "/split")


def test_no_inlines():
    path = program("inlined")
    r = record("--no-inlines", command=[path, "0.5"])
    line = marked("inlined.c")["innermost"]

    expect_most(r, lambda s: s.names[-2:] == ["main", "outer"] and 0 <= line - s.frames[0].line <= 2)


def test_no_lines():
    path = program("inlined")
    r = record("--no-lines", command=[path, "0.5"])

    expect_most(r, lambda s: s.names[-2:] == ["main", "outer"])
    lib.check(not any(f.line or f.file for s in r.profile.samples for f in s.frames),
              "lines in spite of --no-lines")
    lib.check(not any(m.has_filenames or m.has_line_numbers or m.has_inline_frames
                      for m in r.profile.mappings), "a mapping claims lines")


def test_folded_and_speedscope():
    path = program("inlined")
    r = record(output="out.folded", command=[path, "0.5"])
    with open(r.path) as f:
        text = f.read()
    lib.check("main;outer;middle;innermost " in text, f"no chain in\n{text[:2000]}")


def test_budget_is_told():
    r = record("--lines-bytes", "1M", command=[program("inlined-rust"), "0.5"])
    lib.check("without lines:" in r.stderr and "inlined-rust" in r.stderr and
              "--lines-bytes" in r.stderr, f"the summary doesn't tell:\n{r.stderr}")
