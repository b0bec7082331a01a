"""Whole stacks of programs that nothing describes but their own code: rows made from it."""

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
