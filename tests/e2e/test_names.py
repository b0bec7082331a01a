"""Names as people write them: C++, Rust, Go, and --demangle."""

import lib
from lib import expect_most, program, record, under


def system_names(r):
    return {f.system_name for s in r.profile.samples for f in s.frames}


def test_cpp_simple():
    r = record(command=[program("names-cc"), "0.5"])
    spin = "outer::(anonymous namespace)::Box::spin"
    expect_most(r, under(spin, "outer::Caller::operator()", "main"))
    mangled = "_ZNK5outer12_GLOBAL__N_13BoxIiE4spinEi"
    lib.check(mangled in system_names(r), "the mangled name isn't kept as the system name")


def test_cpp_full():
    r = record("--demangle", "full", command=[program("names-cc"), "0.5"])
    spin = "outer::(anonymous namespace)::Box<int>::spin(int) const"
    expect_most(r, under(spin, "outer::Caller::operator()(int)", "main"))


def test_cpp_none():
    r = record("--demangle", "none", command=[program("names-cc"), "0.5"])
    expect_most(r, under("_ZNK5outer12_GLOBAL__N_13BoxIiE4spinEi", "_ZN5outer6CallerclEi"))


@lib.each("names-rust", "names-rust-v0")
def test_rust(build):
    r = record(command=[program(build), "0.5"])
    expect_most(r, lambda s: any(n.startswith("names::engine::drive") for n in s.names))
    turns = {n for s in r.profile.samples for n in s.names if n.endswith("::turn")}
    lib.check(len(turns) == 1, f"names of the hot method: {turns}")
    turn = turns.pop()
    lib.check("Wheel<u32> as " in turn and "engine::Turn" in turn, f"'{turn}'")
    expect_most(r, under(turn))


def test_go():
    r = record(command=[program("names-go"), "0.5"])
    expect_most(r, under("main.(*wheel).turn", "main.drive", "main.main.func1"), share=0.95)
    roots = {s.names[0] for s in r.profile.samples if under("main.drive")(s)}
    lib.check(roots == {"runtime.goexit.abi0"} or roots == {"runtime.goexit"}, f"roots: {roots}")
