"""Programs and directories on file systems that somebody serves, and who may not answer.

stuckfs.c is such a somebody. Reading from it in a process means that this process can't even exit. wick does, with
everything else named.
"""

import contextlib
import os
import re
import shutil
import subprocess
import time

import lib
import test_agent
from lib import check, expect_most, expect_none, expect_some, labelled, program, record_work, under
from test_hostile import Elf


def all_but_names(path):
    """Bytes of an ELF file that a process needs to run, but for those by which others know its names."""
    return (Elf(path).get(".symtab")[4] + 4095) & ~4095


@contextlib.contextmanager
def served(directory, path, serve, name="program"):
    """A file system with one file, which isn't answered for beyond so many bytes; yields its process."""
    if not os.path.exists("/dev/fuse"):
        raise lib.Skip("no FUSE here")
    os.makedirs(directory, exist_ok=True)
    with lib.running(program("stuckfs"), directory, path, serve, name, lines=1) as fs:
        check(fs.lines == [["mounted"]], "it can't be mounted")
        try:
            yield fs
        finally:
            subprocess.run(["umount", "-l", directory], check=False)


def silence(fs):
    fs.stdin.write("\n")
    fs.stdin.flush()
    check(fs.stdout.readline() == "silent\n", "it goes on answering")


def mine(process):
    return labelled(pid=process.pid)


def expect_neighbour(r, process):
    lib.expect_share(r, under("hot_a"), 0.75, among=lambda s: mine(process)(s) and under("round_of_both")(s))


def looks(text, what):
    """(timeouts, refused) of a kind, in the summary."""
    found = re.search(rf"{what}: (\d+) not answered in time, (\d+) not tried", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


READS = "reads of files that somebody serves"


def test_answers():
    """It is copied, and has its names; as always if it lies here."""
    good = program("shares-static")
    with served("fs", good, 1 << 30), lib.running("fs/program", "60") as p:
        r = record_work("-p", p.pid, of=[p], seconds=0.5)
        expect_neighbour(r, p)
        check(looks(r.stderr, READS) == (0, 0), r.stderr)
        paths = {f.mapping.file for s in filter(under("hot_a"), r.profile.samples) for f in s.frames}
        check(os.path.abspath("fs/program") in paths, f"it is called {paths}")
        r = record_work("-p", p.pid, "--copy-bytes", "64K", of=[p], seconds=0.3)
        expect_none(r, under("hot_a"))
        check("over half of --copy-bytes" in r.stderr, r.stderr)


def test_does_not_answer():
    """Its samples stay; why they have no names is said; nobody else's are missing."""
    good = program("shares-static")
    with served("fs", good, all_but_names(good)):
        with lib.running("fs/program", "60") as p, lib.running(good, "60") as n:
            r = record_work(of=[p, n], seconds=0.5)
            expect_neighbour(r, n)
            expect_some(r, mine(p))
            expect_none(r, mine(p), under("hot_a"))
            check(re.search(r"fs/program \(who serves its file system.* didn't answer", r.stderr), r.stderr)
            check(looks(r.stderr, READS)[0] >= 1, r.stderr)
            # and to whoever asks about that process alone
            said = subprocess.run([lib.WICK, "check", "--files", str(p.pid)], capture_output=True, text=True, timeout=60)
            check(said.returncode == 0 and "fs/program" in said.stdout, f"{said}")


def test_many_do_not_answer():
    """As many workers are left behind as may be, and no more."""
    good = program("shares-static")
    with contextlib.ExitStack() as stack:
        n = stack.enter_context(lib.running(good, "60"))
        stuck = []
        for i in range(6):
            stack.enter_context(served(f"fs{i}", good, all_but_names(good)))
            stuck.append(stack.enter_context(lib.running(f"fs{i}/program", "60")))
        r = record_work(of=[n, *stuck], seconds=0.3)
        expect_neighbour(r, n)
        timeouts, _ = looks(r.stderr, READS)
        check(1 <= timeouts <= 3, r.stderr)
        for p in stuck:
            expect_some(r, mine(p), at_least=20)
            expect_none(r, mine(p), under("hot_a"))


def test_agent_goes_on():
    """Windows go on coming, also while a worker is stuck, and after it."""
    good = program("shares-static")
    with served("fs", good, all_but_names(good)) as fs, lib.running(good, "60") as n:
        with test_agent.agent("--push", f"file://{os.path.abspath('out')}", window="1s", freq=199) as a:
            with lib.running("fs/program", "60") as p:
                lib.let_work(p.pid, seconds=0.5)
                a.wait_metric('wick_file_timeouts_total{kind="copy"}', 1)
                a.wait_metric("wick_built_windows_total", a.metrics()["wick_built_windows_total"] + 3)
            lib.let_work(n.pid, seconds=0.2)
            m = a.metrics()
            check(m['wick_file_workers_stuck{kind="copy"}'] >= 1, "nobody is stuck")
            test_agent.check_ticks(m)
            fs.kill()  # the server ends, and so does the wait for it
            a.wait("nobody is stuck", lambda: not a.metrics()['wick_file_workers_stuck{kind="copy"}'])


def test_memory_does_not_answer():
    """Code that is listed where reading waits for ever: its process has names as before, and others whole stacks."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(served("fs", program("shares-static"), 4096))
        n = stack.enter_context(lib.running(program("shares"), "60"))
        p = stack.enter_context(lib.running(program("fault"), "60", "fs/program", lines=1))
        check(p.lines == [["ready"]], "it doesn't run")
        r = record_work(of=[p, n], seconds=0.6)
        os.unlink(f"/tmp/perf-{p.pid}.map")
        expect_neighbour(r, n)
        expect_some(r, mine(p), under("work", "made_by_fault"))
        check(looks(r.stderr, "files of processes")[0] >= 1, r.stderr)


PRIVATE_TMP = 'mount --bind "$1" /tmp && shift && exec "$@"'


def test_directory_does_not_answer():
    """Where a process's perf map would lie."""
    with contextlib.ExitStack() as stack:
        fs = stack.enter_context(served("fs", program("jit"), 1 << 30))
        n = stack.enter_context(lib.running(program("shares"), "60"))
        path = f"/var/tmp/wick-jit-{os.getpid()}"  # what is in /tmp isn't seen there
        shutil.copy(program("jit"), path)
        stack.callback(os.unlink, path)
        with lib.running("unshare", "--mount", "sh", "-c", PRIVATE_TMP, "sh", os.path.abspath("fs"), path, "60") as p:
            lib.let_work(p.pid, seconds=0.1)
            silence(fs)
            r = record_work(of=[p, n], seconds=0.5)
            expect_neighbour(r, n)
            expect_some(r, mine(p))
            check(looks(r.stderr, "files of processes")[0] >= 1, r.stderr)


OVERLAY = """
mkdir -p l u w m && mount -t tmpfs none u && mkdir u/u u/w &&
mount -t overlay overlay -o lowerdir=l,upperdir=u/u,workdir=u/w m && cp "$1" m/jit && mkdir m/tmp &&
mount --bind m/tmp /tmp && shift && exec m/jit "$@"
"""


def test_overlay_of_anybody():
    """Its layers can be a user's FUSE, so it is copied; also a list that grows meanwhile."""
    os.chmod(".", 0o777)
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", OVERLAY, "sh", program("jit"), "1.5"]
    done = subprocess.run([*command[:-2], "/bin/true"], capture_output=True, text=True)
    if "mount:" in done.stderr:
        raise lib.Skip("not everybody may mount an overlay here")
    shutil.rmtree("m", ignore_errors=True)
    r = lib.record("--copy-bytes", "32M", command=[*command, "first", "second"])
    both = lambda s: s.frames[0].name in ("first", "second")  # noqa: E731
    expect_most(r, both, among=lambda s: under("call_generated")(s) and s.frames[0].mapping.file in ("//anon", "[jit]"), share=0.8)
    for name in ("first", "second"):
        expect_some(r, lambda s, name=name: s.frames[0].name == name)
