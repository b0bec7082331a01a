"""Whole stacks of programs that nothing describes but their own code: rows made from it."""

import os
import re
import shutil
import subprocess

import lib
from lib import expect_most, leaf, program, record, under


def is_whole(s):
    return s.frames[-1].name == "_start"


def expect_whole(name):
    r = record(command=[program(name), "1"])
    expect_most(r, under("hot_a", "round_of_both", "main", "_start"), among=leaf("hot_a"), share=0.99)
    expect_most(r, is_whole, among=under("main"), share=0.99)


def test_without_call_frame_information():
    expect_whole("shares-nocfi")


def test_static_musl():
    lib.need("musl-gcc")
    expect_whole("shares-musl")


def test_stripped():
    """Functions are found by calls, pointers and what lies behind padding; their frames have no names."""
    name = "shares-nocfi-stripped"
    r = record(command=[program(name), "1"])

    def own(s):
        return s.frames[0].mapping and s.frames[0].mapping.file.endswith(name)

    expect_most(r, under("__libc_start_main"), among=own, share=0.97)
    expect_most(r, lambda s: not s.frames[-1].name.startswith("["), among=own, share=0.97)


def sources(path):
    """Where the rows of a program come from, with the shares of its text: as `wick check --files` has it."""
    with lib.running(path, "30") as process:
        stdout, _ = lib.wick("check", "--files", process.pid)
    row = [line for line in stdout.decode().splitlines() if line.endswith(path)][0]
    return re.findall(r"(\.eh_frame|\.debug_frame|code) ([\d.]+) %", row)


@lib.each("none", "zlib", "zlib-gnu")
def test_debug_frame_of_a_debug_file(compression):
    """A separate file's .debug_frame says as much as the program's own did, however it is compressed."""
    lib.need("objcopy")
    path, debug = os.path.abspath("stripped"), os.path.abspath("stripped.debug")
    shutil.copy(program("shares-debugframe"), path)
    whole = dict(sources(path))
    lib.check(float(whole.get(".debug_frame", 0)) > 0, f"the program's own: {whole}")
    subprocess.run(["objcopy", "--only-keep-debug", f"--compress-debug-sections={compression}", path, debug],
                   check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path], check=True)
    apart = dict(sources(path))
    lib.check(apart.get(".debug_frame") == whole[".debug_frame"], f"{apart}, before {whole}")
    r = record(command=[path, "1"])
    expect_most(r, under("hot_a", "round_of_both", "main", "_start"), among=leaf("hot_a"), share=0.99)
    os.remove(debug)   # it was that file
    lib.check(".debug_frame" not in dict(sources(path)), "rows of .debug_frame without it")
