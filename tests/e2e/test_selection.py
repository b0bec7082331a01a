"""What is profiled: everything, processes, threads, cgroups, commands and their children."""

import contextlib
import os
import time

import lib
from lib import (
    expect_most,
    expect_none,
    expect_share,
    expect_some,
    program,
    record,
    record_work,
    recording,
    running,
    under,
)


def test_everything():
    with running(program("shares"), "30") as one, running(program("burst-0"), "30") as two:
        r = record_work("-a", of=[one, two], seconds=0.5)
    expect_share(r, under("hot_a"), 0.75, among=under("round_of_both"))
    expect_some(r, under("hot_burst_0"))


def test_everything_is_the_default():
    with running(program("burst-0"), "30") as target:
        r = record_work(of=[target], seconds=0.3)
    expect_some(r, under("hot_burst_0"))


def test_process():
    with running(program("burst-0"), "30") as one, running(program("burst-1"), "30") as two:
        r = record_work("-p", one.pid, of=[one, two], seconds=0.4)
    expect_some(r, under("hot_burst_0"))
    expect_none(r, lambda s: s.labels["pid"] != one.pid, what="samples of other processes")
    lib.check(r.ticks["unselected"] > 0, "the other process's ticks are nowhere")


def test_processes():
    with (
        running(program("burst-0"), "30") as one,
        running(program("burst-1"), "30") as two,
        running(program("burst-2"), "30") as three,
    ):
        r = record_work("-p", f"{one.pid},{two.pid}", of=[one, two, three], seconds=0.4)
    expect_some(r, under("hot_burst_0"))
    expect_some(r, under("hot_burst_1"))
    expect_none(r, lambda s: s.labels["pid"] not in (one.pid, two.pid))


def test_all_threads_of_a_process():
    with running(program("threads"), "20", lines=2) as target:
        r = record_work("-p", target.pid, of=[target], seconds=0.8)
    expect_some(r, under("hot_steady"))
    expect_some(r, under("hot_first"))


def test_thread():
    with running(program("threads"), "20", lines=2) as target:
        tids = {name: int(tid) for name, tid in target.lines}
        r = record_work("-t", tids["steady"], of=[target], seconds=0.8)
    expect_some(r, under("hot_steady"))
    expect_none(r, lambda s: s.labels["comm"] != "steady", what="samples of the other thread")


@lib.each("alone", "inherit")
def test_children(how):
    options = ["--inherit"] if how == "inherit" else []
    with running(program("family"), "20") as target:
        with recording("-p", target.pid, *options) as wick:
            target.stdin.write("\n")
            target.stdin.flush()
            lib.let_work(target.pid, seconds=0.1)  # it has forked
            lib.let_work(target.pid, lib.child_of(target.pid), seconds=0.4)
    r = wick.recording
    expect_some(r, under("hot_parent"))
    if options:
        expect_some(r, under("hot_child"))
    else:
        expect_none(r, under("hot_child"), what="samples of the child")


def test_command_and_its_children():
    with running(program("burst-3"), "30"):
        script = f"{program('burst-0')} 0.3; {program('burst-1')} 0.3 & wait"
        r = record(command=["sh", "-c", script])
    expect_some(r, under("hot_burst_0"))
    expect_some(r, under("hot_burst_1"))
    expect_none(r, under("hot_burst_3"), what="samples of a process beside")


def test_everything_while_a_command_runs():
    with running(program("burst-3"), "30"):
        r = record("-a", command=[program("burst-0"), "0.5"])
    expect_some(r, under("hot_burst_0"))
    expect_some(r, under("hot_burst_3"))


def hierarchies():
    """Where a cgroup can be made: name -> directory. v1 by a controller that wick can use."""
    found = {}
    with open("/proc/self/mountinfo") as f:
        for line in f:
            mount, _, rest = line.partition(" - ")
            kind, _, options = rest.split()[:3]
            if kind == "cgroup2":
                found["v2"] = mount.split()[4]
            elif kind == "cgroup" and "memory" in options.split(","):
                found["v1"] = mount.split()[4]
    return found


@contextlib.contextmanager
def cgroup(version):
    parent = hierarchies().get(version)
    if not parent:
        raise lib.Skip(f"no cgroup {version} hierarchy")
    path = os.path.join(parent, f"wick-e2e-{os.getpid()}")
    try:
        os.makedirs(os.path.join(path, "inner"))
    except OSError as e:
        raise lib.Skip(f"{path}: {e.strerror}") from None
    try:
        yield path
    finally:
        for directory in (os.path.join(path, "inner"), path):
            for _ in range(100):  # until the kernel has let go of the processes
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
                    break
                time.sleep(0.02)


def move(pid, path):
    with open(os.path.join(path, "cgroup.procs"), "w") as f:
        f.write(str(pid))


@lib.each("v1", "v2")
def test_cgroup(version):
    with (
        cgroup(version) as path,
        running(program("burst-0"), "30") as member,
        running(program("burst-1"), "30") as deeper,
        running(program("burst-2"), "30") as outside,
    ):
        move(member.pid, path)
        move(deeper.pid, os.path.join(path, "inner"))
        r = record_work("--cgroup", path, of=[member, deeper, outside], seconds=0.4)
    expect_some(r, under("hot_burst_0"))
    expect_some(r, under("hot_burst_1"))
    expect_none(r, lambda s: s.labels["pid"] not in (member.pid, deeper.pid))


def test_cgroup_that_is_not_there():
    _, stderr = lib.wick("record", "--cgroup", "/no/such/cgroup", "-d", "0.1", status=1)
    lib.check("/no/such/cgroup" in stderr, stderr)


def test_process_that_is_not_there():
    """A clear message, and no file."""
    _, stderr = lib.wick("record", "-p", "2147483647", "-d", "0.1", status=1)
    lib.check("no process 2147483647" in stderr, stderr)
    lib.check(not os.listdir("."), f"left {os.listdir('.')}")


def test_process_that_ends():
    """The recording ends with its last process, not with its time."""
    start = time.monotonic()
    shell = ["sh", "-c", f"{program('burst-0')} 2 & echo $!; wait"]
    with running(*shell, lines=1) as target:
        r = record("-p", target.lines[0][0], "-d", "600")
    lib.check(time.monotonic() - start < 50, "it went on without the process")
    expect_most(r, under("hot_burst_0"), share=0.9, at_least=20)


def test_process_ids_are_those_of_the_namespace():
    lib.need("unshare")
    prefix = ["unshare", "--pid", "--fork", "--mount-proc"]
    r = record(command=[program("shares"), "0.7"], prefix=prefix)
    expect_share(r, under("hot_a"), 0.75, among=under("round_of_both"))
    pids = {s.labels["pid"] for s in r.profile.samples}
    lib.check(pids and max(pids) < 10, f"process ids {pids}")


def test_process_of_another_namespace():
    """Seen from outside a process has the number it has there."""
    lib.need("unshare")
    prefix = ["unshare", "--pid", "--fork", "--mount-proc"]
    shell = ["sh", "-c", f"echo started; exec {program('shares')} 30"]
    with running(*shell, prefix=prefix, lines=1) as outer:
        inner = lib.child_of(outer.pid)
        with recording("-p", inner) as wick:
            lib.let_work(inner, seconds=0.7)
    r = wick.recording
    expect_share(r, under("hot_a"), 0.75, among=under("round_of_both"))
    lib.check({s.labels["pid"] for s in r.profile.samples} == {inner}, "wrong process ids")
