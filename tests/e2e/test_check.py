"""wick check --files: the unwind tables of what a process runs."""

import re

import lib
from lib import program, running


def tables(text):
    """{file name: (rows, KiB, % known, source)}"""
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s*(\d+)\s+([\d.]+)\s+[\d.]+\s+([\d.]+)  (.*?)\s+(/.*|\[vdso\])$", line)
        if m:
            name = m.group(5).rsplit("/", 1)[-1]
            found[name] = int(m.group(1)), float(m.group(2)), float(m.group(3)), m.group(4)
    return found


def failures(text):
    """{(reason, file name): % of the truncated stacks}, and the numbers of stacks and of truncated ones."""
    m = re.search(r"(\d+) user stacks, (\d+) of them", text)
    lib.check(m, f"no figures of sampling:{lib.shown(text)}")
    found = {}
    for line in text[m.end() :].splitlines():
        r = re.match(r"\s*([\d.]+) %  (.*?)  +(?:.*/)?(.*)$", line)
        if r:
            found[r.group(2), r.group(3)] = float(r.group(1))
    return found, int(m.group(1)), int(m.group(2))


def check_files(process, *options):
    stdout, _ = lib.wick("check", "--files", process.pid, *options)
    return stdout.decode()


def test_tables():
    with running(program("shares-nofp"), "30") as target:
        found = tables(check_files(target))
    libc = found.get("libc.so.6")
    lib.check(libc and libc[0] > 1000 and libc[2] > 90 and ".eh_frame" in libc[3], f"libc: {libc}")
    own = found.get("shares-nofp")
    lib.check(own and own[0] > 10 and 0 < own[1] < 100, f"the program: {own}")
    lib.check("[vdso]" in found, f"files: {list(found)}")


def test_stacks_that_reach_their_root():
    with running(program("shares-nofp"), "30") as target:
        lib.let_work(target.pid, seconds=0.1)
        text = check_files(target, "-d", "1")
    reasons, stacks, failed = failures(text)
    lib.check(stacks > 10 and failed <= stacks // 20, lib.shown(text))
    lib.check(failed or not reasons, lib.shown(text))


def test_stacks_that_do_not():
    """The file to blame is the one in which the walk ends."""
    with running(program("lost"), "30") as target:
        lib.let_work(target.pid, seconds=0.1)
        text = check_files(target, "-d", "1")
    reasons, stacks, failed = failures(text)
    lib.check(stacks > 10 and failed >= 0.9 * stacks, lib.shown(text))
    lib.check(sum(v for (_, name), v in reasons.items() if name == "lost") > 90, lib.shown(text))
    lib.check(abs(sum(reasons.values()) - 100) < 1, lib.shown(text))


def test_no_such_process():
    _, stderr = lib.wick("check", "--files", 2147483647, status=1)
    lib.check("there is no process 2147483647" in stderr, stderr)
    _, stderr = lib.wick("check", "--files", 2, status=1)
    lib.check("runs no file" in stderr, stderr)


def test_usage():
    _, stderr = lib.wick("check", "-d", "1", status=2)
    lib.check("--files" in stderr, stderr)
