"""Where the time goes: known proportions, whole stacks, true names, for each way to link."""

import lib
from lib import count, expect_most, expect_share, leaf, program, record, under

BUILDS = [
    "shares",
    "shares-nopie",
    "shares-static",
    "shares-static-pie",
    "shares-lld",
    "shares-nofp",
]


@lib.each(*BUILDS)
def test_three_to_one(build):
    r = record(command=[program(build), "1"])
    expect_share(r, under("hot_a"), 0.75, among=lambda s: under("hot_a")(s) or under("hot_b")(s))
    # the time is theirs: what is above them are interrupts, what is beside them is start-up
    expect_most(r, lambda s: under("hot_a")(s) or under("hot_b")(s))


@lib.each(*BUILDS)
def test_stacks_are_whole(build):
    """To the root; and a stack that isn't says so by a frame of its own."""
    r = record(command=[program(build), "0.7"])
    for s in r.profile.samples:
        if {"hot_a", "hot_b"} & set(s.names):
            root = s.names[0]
            marked = root == "_start" or root.startswith("[truncated: ")
            lib.check(marked, f"the root is '{root}', without a mark:\n{lib.top(r)}")
    expect_most(r, under("round_of_both", "main"), among=under("hot_a"), share=0.99)
    hot = [s for s in r.profile.samples if under("hot_a", "main")(s)]
    for s in hot:
        names = [f.name for f in s.frames]
        at = names.index("hot_a")
        chain = ["hot_a", "round_of_both", "main"]
        lib.check(names[at : at + 3] == chain, f"{names} doesn't hold {chain}")
        lib.check(names.count("hot_a") == 1, f"{names} holds hot_a twice")


@lib.each("shares", "shares-nopie", "shares-lld", "shares-static-pie")
def test_addresses_are_those_of_the_file(build):
    """Addresses in the profile lie within the symbol that names them, as nm tells them."""
    path = program(build)
    r = record(command=[path, "0.5"])
    symbols = lib.symbols(path)
    seen = set()
    for s in r.profile.samples:
        for f in s.frames:
            if f.mapping and f.mapping.file == path and f.name in symbols:
                start, end = symbols[f.name]
                inside = start <= f.address < end
                lib.check(inside, f"{f.name} at {f.address:x}, not in {start:x}-{end:x}")
                m = f.mapping
                inside = m.start <= f.address < m.limit
                lib.check(inside, f"{f.address:x} is outside its mapping {m.start:x}-{m.limit:x}")
                seen.add(f.name)
    lib.check({"hot_a", "hot_b", "main"} <= seen, f"only {seen} were seen")


@lib.each("shares", "shares-nopie", "shares-lld")
def test_stripped(build):
    """Frames are module+0xfunction, the start of the function by the unwind tables that stripping
    leaves; the twin that has symbols tells whether that is right."""
    symbols = lib.symbols(program(build))
    path = program(build + "-stripped")
    module = path.rsplit("/", 1)[1]
    r = record(command=[path, "0.7"])

    def within(name):
        start, end = symbols[name]
        return lambda s: any(
            f.mapping and f.mapping.file == path and start <= f.address < end for f in s.frames
        )

    either = lambda s: within("hot_a")(s) or within("hot_b")(s)  # noqa: E731
    expect_share(r, within("hot_a"), 0.75, among=either)
    mine = [f for s in filter(either, r.profile.samples) for f in s.frames]
    for f in [f for f in mine if f.mapping and f.mapping.file == path]:
        lib.check(not f.mapping.has_functions, "its mapping claims to have functions")
        start = next((a for a, end in symbols.values() if a <= f.address < end), f.address)
        right = f"{module}+0x{start:x}"
        lib.check(f.name == right, f"{f.address:x} has the name '{f.name}', not '{right}'")

    folded = record(command=[path, "0.5"], output="out.folded")
    with open(folded.path) as f:
        text = f.read()
    lib.check(f"{module}+0x" in text, f"no {module}+0x... in{lib.shown(text)}")
    lib.check("without symbols" in r.stderr, f"the summary doesn't tell:{lib.shown(r.stderr)}")


def test_kernel_and_user_in_one_stack():
    r = record(command=[program("zero"), "1"])
    expect_most(r, under("read_zeros", "main"), share=0.95)

    def in_kernel(s):
        return s.frames[0].address >> 63 and "read_zeros" in [f.name for f in s.frames]

    expect_most(r, in_kernel, share=0.8)
    for s in filter(in_kernel, r.profile.samples):
        sides = [f.address >> 63 for f in s.frames]
        lib.check(sides == sorted(sides, reverse=True), "a kernel frame below a user frame")
    named = [f for s in r.profile.samples for f in s.frames if f.address >> 63 and f.name]
    lib.check(named, "no kernel function has a name")


def test_deep_recursion_is_cut_in_the_middle():
    r = record(command=[program("deep"), "2000", "1"], freq=199)
    lib.expect_some(r, leaf("bottom"))
    whole = 0
    for s in filter(under("bottom"), r.profile.samples):
        names = [f.name for f in s.frames]
        cuts = [i for i, n in enumerate(names) if n == "[truncated: middle of the stack left out]"]
        lib.check(len(cuts) <= 1, f"cut {len(cuts)} times")
        if cuts:
            lib.check(cuts[0] >= 1000, f"only {cuts[0]} frames at the leaf")
            lib.check(len(names) - cuts[0] > 200, f"{len(names) - cuts[0] - 1} frames at the root")
        else:  # the first ones are walked from a copy, in userspace, and have all
            steps = names.count("descend") + names.count("left")
            lib.check(steps == 2001, f"{steps} steps of 2001, and no mark")
        whole += s.values[0] if names[-1] == "_start" else 0
        lib.check("main" in names, f"the root is {names[-3:]}")
    # too deep for a copy while the rows of libc are on their way: the first may end there, marked
    lib.check(whole >= 0.9 * lib.count(r, under("bottom")), f"{whole} reach their root")
    text = r.stderr
    lib.check("middle" in text, f"the summary doesn't tell of the cut:{lib.shown(text)}")


def test_depth_below_the_limit_is_whole():
    r = record(command=[program("deep"), "900", "0.7"], freq=199)
    for s in filter(under("bottom"), r.profile.samples):
        names = [f.name for f in s.frames]
        steps = names.count("descend") + names.count("left")
        lib.check(steps == 901, f"{steps} steps of 900")
        lib.check(not any(n.startswith("[") for n in names), "it was cut")
    lib.expect_some(r, leaf("bottom"), at_least=60)


def test_generated_code():
    """Anonymous executable memory: addresses as they are, and the callers below them."""
    r = record(command=[program("jit"), "0.7"])

    def generated(s):
        f = s.frames[0]
        return "call_generated" in [g.name for g in s.frames] and f.mapping is not None and (
            "anon" in f.mapping.file
        )

    expect_most(r, generated, share=0.9)
    for s in filter(generated, r.profile.samples):
        names = [f.name for f in s.frames]
        lib.check(names[-1] == "_start", f"not walked to its root: {names}")


def test_vdso():
    r = record(command=[program("clock"), "0.7"])

    def in_vdso(s):
        return any(f.mapping and f.mapping.file == "[vdso]" for f in s.frames)

    if not count(r, in_vdso):
        lib.expect_some(r, lambda s: s.frames[0].address >> 63)
        raise lib.Skip("the clock of this machine is read by a system call, not in the vDSO")
    expect_most(r, under("ask_for_time"), among=in_vdso)
