"""Processes as they come and go: exec, fork, threads, libraries, storms."""

import os
import shutil
import subprocess

import lib
from lib import (
    count,
    expect_most,
    expect_none,
    expect_share,
    expect_some,
    labelled,
    program,
    record,
    under,
)


def test_exec_in_place():
    """One process id, two programs: each sample has the functions of its own."""
    r = record(command=[program("become"), "0.5", program("burst-0"), "0.5"])
    before, after = under("hot_before"), under("hot_burst_0")
    expect_some(r, before)
    expect_some(r, after)
    lib.check(len({s.labels["pid"] for s in r.profile.samples}) == 1, "several process ids")
    expect_most(r, labelled(comm="become"), among=before)
    expect_most(r, labelled(comm="burst-0"), among=after)
    for s in r.profile.samples:
        files = {f.mapping.file for f in s.frames if f.mapping}
        both = {program("become"), program("burst-0")} <= files
        lib.check(not both, f"one stack in both programs: {s.names}")
    expect_share(r, before, 0.5, among=lambda s: before(s) or after(s), sigmas=8)


def test_thread_is_renamed():
    """Samples carry the name that the thread had at that time."""
    r = record(command=[program("threads"), "1"])
    for name in ("steady", "first", "second"):
        expect_most(r, labelled(comm=name), among=under("hot_" + name), share=0.99)
    either = lambda s: s.labels["comm"] in ("first", "second")  # noqa: E731
    expect_share(r, labelled(comm="first"), 0.25, among=either)
    lib.check(all("tid" not in s.labels for s in r.profile.samples), "tid without --threads")


def test_threads_are_told_apart():
    r = record("--threads", command=[program("threads"), "0.6"])
    tids = {s.labels["tid"] for s in r.profile.samples if under("hot_steady")(s)}
    other = {s.labels["tid"] for s in r.profile.samples if under("hot_second")(s)}
    lib.check(len(tids) == 1 and len(other) == 1 and tids != other, f"tids {tids} and {other}")


def test_libraries_at_the_same_address():
    """dlopen and dlclose in turn: a frame belongs to the library that was there at the tick."""
    argv = [program("churn"), "1", program("plugin-a.so"), program("plugin-b.so")]
    r = record(command=argv)
    expect_most(r, under("hot_plugin_a"), among=under("via_a"), share=0.9)
    expect_most(r, under("hot_plugin_b"), among=under("via_b"), share=0.9)
    expect_none(r, under("hot_plugin_a", "via_b"), what="samples in the wrong library")
    expect_none(r, under("hot_plugin_b", "via_a"), what="samples in the wrong library")


def test_process_id_is_used_again():
    argv = [program("reuse"), "0.4", program("burst-0"), program("burst-1")]
    r = record(command=argv)
    pids = {s.labels["pid"] for s in r.profile.samples if s.labels["comm"].startswith("burst")}
    lib.check(len(pids) == 1, f"process ids {pids}: it was not used again")
    for i in (0, 1):
        expect_most(
            r,
            under(f"hot_burst_{i}"),
            among=labelled(comm=f"burst-{i}"),
            share=0.9,
        )
        expect_none(r, under(f"hot_burst_{1 - i}"), labelled(comm=f"burst-{i}"))


def test_short_process_is_named():
    """30 ms, and gone long before its file is looked at."""
    r = record(command=[program("burst-2"), "0.03"], freq=997)
    expect_some(r, under("hot_burst_2", "main", "_start"), at_least=20)
    expect_most(r, under("hot_burst_2"), share=0.8, at_least=20)


def test_short_process_of_many_mappings():
    """Its first stacks are copied until its unwind rows are there, with the few mappings that matter."""
    r = record(command=[program("mappings"), "0.15"], freq=997)
    whole = under("hot_compare", "main", "_start")
    expect_most(r, whole, among=under("hot_compare"), share=0.95, at_least=20)


def test_deleted_program():
    """The file is gone from its directory but still runs."""
    shutil.copy(program("shares"), "gone")
    with lib.running(os.path.abspath("gone"), "30") as target:
        os.unlink("gone")
        r = lib.record_work("-p", target.pid, of=[target], seconds=0.7)
    expect_share(r, under("hot_a"), 0.75, among=under("round_of_both"))


def test_storm():
    """Two thousand processes of a few milliseconds: every tick has a fate, every sample a name."""
    bursts = [program(f"burst-{i}") for i in range(4)]
    r = record(command=[program("storm"), "2000", "4", "0.003", *bursts])
    t = r.ticks
    lib.check(t["lost"] <= t["ticks"] * 0.001, f"lost {t['lost']} of {t['ticks']} ticks")
    mine = lambda s: s.labels["comm"].startswith("burst-")  # noqa: E731
    expect_some(r, mine, at_least=1000)
    for i in range(4):
        expect_none(r, labelled(comm=f"burst-{i}"), under(f"hot_burst_{(i + 1) % 4}"))
    hot = lambda s: any(n.startswith("hot_burst_") for n in s.names)  # noqa: E731
    expect_some(r, hot, at_least=1000)
    for i in range(4):
        n = lib.count(r, under(f"hot_burst_{i}"))
        lib.check(n > 100, f"{n} samples of program {i}")
    unknown = [n for s in r.profile.samples for n in s.names if n == "[unknown]"]
    lib.check(not unknown, f"{len(unknown)} frames are [unknown]")
    whole = lib.count(r, hot, under("main", "_start"))
    lib.check(whole >= 0.98 * lib.count(r, hot), f"{whole} whole stacks of {lib.count(r, hot)}")


MOVED = ("hot_moved", "caller_of_moved", "main")


def test_text_moved_to_anonymous_memory():
    """As onto huge pages: names, and whole stacks without frame pointers, from the first sample on."""
    r = record(command=[program("moved"), "0.6"])
    expect_most(r, under(*MOVED), share=0.97)
    whole = lambda s: s.frames[-1].name == "_start"  # noqa: E731
    expect_most(r, whole, among=under("hot_moved"), share=0.97)
    lib.check({f.mapping.file for s in r.profile.samples for f in s.frames if f.name == "hot_moved"} ==
              {program("moved")}, lib.top(r))


def test_text_moved_and_changed():
    """Then it isn't that file's code any more: no name rather than a wrong one."""
    r = record(command=[program("moved"), "0.6", "spoil"])
    expect_none(r, under("hot_moved"))
    expect_some(r, lambda s: s.frames[0].mapping and s.frames[0].mapping.file == "//anon")


def test_node_on_huge_pages():
    """The same by a real program, if this node was built for it."""
    lib.need("node")
    with open("work.js", "w") as f:
        f.write("const end = Date.now() + 1500; let n = 0;"
                "while (Date.now() < end) n += JSON.stringify({a: n, b: [n, 'c']}).length;")
    show = "console.log(require('fs').readFileSync('/proc/self/maps', 'utf8'))"
    maps = subprocess.run(["node", "--use-largepages=on", "-e", show], capture_output=True, text=True).stdout
    lines = [line.split() for line in maps.splitlines() if line.strip()]
    moved = [a for a, b in zip(lines, lines[1:]) if a[1] == b[1] == "r-xp" and len(a) == 5 and b[-1].endswith("node")]
    if not moved:
        raise lib.Skip("this node leaves its code where it is")
    start, end = (int(x, 16) for x in moved[0][0].split("-"))
    r = record(command=["node", "--use-largepages=on", "work.js"])

    def there(file):
        return lambda s: any(f.mapping and f.mapping.file.endswith(file) and start <= f.address < end for f in s.frames)

    expect_some(r, there("/node"), at_least=100)
    moving = count(r, there("//anon"))  # while it is being copied, code isn't there yet
    lib.check(moving <= 0.05 * count(r, there("/node")), f"{moving} samples in anonymous memory:\n{lib.top(r)}")
    expect_some(r, lambda s: there("/node")(s) and s.frames[-1].name == "_start", at_least=100)
