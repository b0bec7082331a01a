"""Code that programs make while they run, named by their runtimes."""

import contextlib
import os
import shutil
import subprocess

import lib
from lib import count, expect_most, expect_none, expect_some, labelled, program, record, under

calls = under("call_generated")


def generated(s):
    """Its leaf is anonymous memory, called by the test's program."""
    f = s.frames[0]
    return calls(s) and f.mapping is not None and f.mapping.file in ("//anon", "[jit]")


@contextlib.contextmanager
def perf_map_of(pid):
    """Removes what the process leaves in /tmp."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(f"/tmp/perf-{pid}.map")


def pid_of(r, comm):
    return next(s.labels["pid"] for s in r.profile.samples if s.labels["comm"] == comm)


@contextlib.contextmanager
def recorded(*options, command, comm, **how):
    """A recording of a command that leaves a perf map behind."""
    r = record(*options, command=command, **how)
    with perf_map_of(pid_of(r, comm)):
        yield r


def test_perf_map():
    """Also of a process that has come and gone between two drains."""
    command = [program("jit"), "0.6", "made by jit"]
    with recorded(command=command, comm="jit") as r:
        expect_most(r, under("made by jit"), among=generated, share=0.9)
        for s in filter(under("made by jit"), r.profile.samples):
            f = next(f for f in s.frames if f.name == "made by jit")
            lib.check(f.mapping.file == "[jit]", f"in {f.mapping.file}")
            # not always call_generated: at its first instruction the caller's frame isn't saved
            lib.check("main" in s.names, f"called by {s.names}")


def test_code_changes():
    """One address, one function after the other: samples keep the one of their time."""
    with recorded(command=[program("jit"), "2.5", "first", "second"], comm="jit") as r:
        expect_none(r, under("first", "second"))
        expect_most(r, lambda s: s.frames[0].name in ("first", "second"), among=generated)
        # told apart by drains, one a second
        a, b = count(r, under("first")), count(r, under("second"))
        lib.check(0.2 < a / (a + b) < 0.8, f"{a} samples of the first, {b} of the second")


def test_perf_map_in_namespaces():
    """By the process's own number, in the /tmp that it sees."""
    lib.need("unshare")
    path = f"/var/tmp/wick-jit-{os.getpid()}"
    shutil.copy(program("jit"), path)
    own = "/tmp/perf-1.map"
    lib.check(not os.path.exists(own), f"{own} is in the way")
    try:
        script = f"mount -t tmpfs none /tmp && exec {path} 2.2 contained"
        r = record(command=["unshare", "--pid", "--fork", "--mount", "sh", "-c", script])
    finally:
        os.unlink(path)
    lib.check(not os.path.exists(own), f"{own} was written here")
    expect_most(r, under("contained"), among=generated, share=0.9)


def test_somebody_elses_map():
    """A map that another user has planted names nothing."""
    with lib.running(program("jit"), "30") as p, perf_map_of(p.pid):
        path = f"/tmp/perf-{p.pid}.map"
        with open(path, "w") as f:
            f.write("1000 7fffffff0000 planted\n")
        os.chown(path, 12345, 12345)
        r = lib.record_work("-p", p.pid, of=[p], seconds=1.2)
        expect_some(r, generated)
        expect_none(r, under("planted"))


NODE = """
function leafOfAll(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i ^ s); return s }
function callerOfLeaf(n) { return leafOfAll(n) + leafOfAll(n + 1) }
const end = process.cpuUsage().user + 1.8e6
while (process.cpuUsage().user < end) callerOfLeaf(3000)
"""
NODE_NAMES = ("--interpreted-frames-native-stack", "--no-turbo-inlining", "--no-maglev-inlining")


def accepted(*flags):
    """Those that this version of node has."""
    done = subprocess.run(["node", "--v8-options"], capture_output=True, text=True)
    return [f for f in flags if f.replace("--no-", "--") in done.stdout]


@lib.each("--perf-basic-prof", "--perf-prof")
def test_node(flag):
    """A perf map, or a jitdump, which tells more but late."""
    lib.need("node")
    with open("work.js", "w") as f:
        f.write(NODE)
    command = ["node", flag, *accepted(*NODE_NAMES), "work.js"]
    with recorded(command=command, comm="node") as r:
        frames = [f.name for s in r.profile.samples for f in s.frames]
        leaf = {n for n in frames if "leafOfAll" in n}
        lib.check(any("work.js" in n for n in leaf), f"leafOfAll is called {leaf}")
        named = lambda s: any("leafOfAll" in f.name for f in s.frames)  # noqa: E731
        expect_some(r, named, labelled(comm="node"), at_least=300)
        both = lambda s: any("callerOfLeaf" in f.name for f in s.frames)  # noqa: E731
        expect_most(r, both, among=named, share=0.9)
        anon = lambda s: any(f.name == "[unknown]" for f in s.frames)  # noqa: E731
        lib.check(count(r, anon) <= 0.02 * count(r), f"nameless frames:\n{lib.top(r)}")


JAVA = """
public class Work {
    static long leafOfAll(long x) { long s = 0; for (int i = 0; i < 3000; i++) s += x * i ^ (s >> 3); return s; }
    public static void main(String[] a) {
        long end = System.nanoTime() + 60_000_000_000L, s = 0;
        while (System.nanoTime() < end) s += leafOfAll(s);
        System.out.println(s);
    }
}
"""


def test_java():
    """A machine that lists nothing by itself is asked to, and only with the flag."""
    lib.need("java", "javac")
    with open("Work.java", "w") as f:
        f.write(JAVA)
    subprocess.run(["javac", "Work.java"], check=True)
    named = lambda s: any("Work." in f.name for f in s.frames)  # noqa: E731
    with lib.running("java", "-XX:+PreserveFramePointer", "-cp", ".", "Work") as java:
        lib.let_work(java.pid, seconds=1)
        path = f"/tmp/perf-{java.pid}.map"
        try:
            lib.record_work("-p", java.pid, of=[java], seconds=0.5)
            lib.check(not os.path.exists(path), "it was asked without the flag")
            r = lib.record_work("-p", java.pid, "--java-perfmap", of=[java], seconds=1)
            expect_some(r, named, at_least=200)
        finally:
            if os.path.exists(path):
                os.unlink(path)
