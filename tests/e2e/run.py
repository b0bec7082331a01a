"""Runs the end-to-end tests of wick against the running kernel, as root.

    WICK=build/wick python3 tests/e2e/run.py [-k SUBSTRING]... [--timeout SECONDS] [--list]

A test is a function test_* of a file test_*.py here. Each runs in a process and an empty directory
of its own and is killed, with what it started, when its time is over. Prints a line for each test,
and as the last line "N passed, N failed, N skipped". Exits 1 if one failed.

Tests of files that set BESIDE neither sample nor mind the time: they run beside the others.

What a profile shows is a matter of statistics, on a machine that others use too. A test that fails is
therefore tried a second time, when all others have ended: both outcomes are shown, and that it took two tries
is in the last line. That is for chance: when more than SECOND_TRIES fail at first, they have failed.
"""

import argparse
import contextlib
import ctypes
import glob
import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import lib  # noqa: E402

PASSED, FAILED, SKIPPED = range(3)
WORDS = ("ok", "FAIL", "skip")
PR_SET_CHILD_SUBREAPER = 36
TEXT_MAX = 30000  # fits in a pipe that is read when its writer is gone
SECOND_TRIES = 3  # of a run


def find_tests(substrings):
    """(name, function, whether it runs beside others) in the order of files and lines; those of each() once for
    each value."""
    found = []
    for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        beside = getattr(module, "BESIDE", False)
        tests = [f for n, f in vars(module).items() if n.startswith("test_") and callable(f)]
        for f in sorted(tests, key=lambda f: f.__code__.co_firstlineno):
            name = f"{module.__name__[5:]}.{f.__name__[5:]}"
            if hasattr(f, "values"):
                found += [(f"{name}[{v}]", lambda f=f, v=v: f(v), beside) for v in f.values]
            else:
                found.append((name, f, beside))
    return [t for t in found if not substrings or any(s in t[0] for s in substrings)]


def in_child(function, directory, pipe):
    """The test's own process: runs it and reports outcome and text. Never returns."""
    os.setsid()
    os.chdir(directory)
    outcome, text = PASSED, io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            function()
        except lib.Skip as why:
            outcome = SKIPPED
            text.write(str(why))
        except BaseException:
            outcome = FAILED
            traceback.print_exc(file=text)
    with os.fdopen(pipe, "w") as f:
        f.write(text.getvalue()[-TEXT_MAX:])
    os._exit(outcome)


spared = set()  # our own processes, which no test has started


def descendants(pid):
    """Processes below a process, orphans and other sessions included, since we are subreaper."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            children = [int(word) for word in f.read().split()]
    except OSError:
        return []
    children = [child for child in children if child not in spared]
    return children + [d for child in children for d in descendants(child)]


def kill_all():
    """Ends everything that a test has left behind; all our descendants come from it."""
    while True:
        left = descendants(os.getpid())
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ChildProcessError):  # not ours yet
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def run_test(function, timeout):
    """(outcome, text)"""
    directory = tempfile.mkdtemp(prefix="wick-e2e-")
    os.chmod(directory, 0o755)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read_end)
        in_child(function, directory, write_end)
    os.close(write_end)
    deadline = time.monotonic() + timeout
    status = None
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.02)
    else:
        status = None
    kill_all()
    with os.fdopen(read_end, errors="backslashreplace") as f:
        text = f.read()
    shutil.rmtree(directory, ignore_errors=True)
    if status is None:
        return FAILED, f"killed after {timeout} s"
    if not os.WIFEXITED(status):
        return FAILED, f"the test's process ended with wait status {status}"
    return os.WEXITSTATUS(status), text


def reason_to_skip():
    """Why nothing can run here, or None."""
    if os.geteuid():
        return "not root"
    if not os.access(lib.WICK, os.X_OK):
        return f"{lib.WICK} doesn't exist: make, or set WICK"
    done = subprocess.run([lib.WICK, "check"], capture_output=True, text=True)
    if done.returncode:
        blocked = [line for line in done.stdout.splitlines() if line.startswith("blocked")]
        return "wick check: " + ("; ".join(blocked) or done.stderr.strip() or "failed")
    return None


def run_tests(tests, timeout):
    """([passed, failed, skipped], the failed tests)"""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    counts, failed = [0, 0, 0], []
    for name, function in tests:
        start = time.monotonic()
        outcome, text = run_test(function, timeout)
        counts[outcome] += 1
        reason = f": {text}" if outcome == SKIPPED else ""
        print(f"{WORDS[outcome]:4} {name} ({time.monotonic() - start:.1f} s){reason}")
        if outcome == FAILED:
            failed.append((name, function))
            print("\t" + text.rstrip().replace("\n", "\n\t"))
        sys.stdout.flush()
    return counts, failed


def start_beside(tests, timeout, output):
    """A process that runs these tests: (its id, a pipe that will have the outcomes)."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(read_end)
        os.dup2(output.fileno(), 1)
        counts, failed = run_tests(tests, timeout)
        with os.fdopen(write_end, "w") as f:
            json.dump([counts, [name for name, _ in failed]], f)
        os._exit(0)
    os.close(write_end)
    spared.add(pid)
    return pid, read_end


def end_beside(process, output):
    """Waits for it and prints what it printed: (counts, the names of failed tests)."""
    pid, pipe = process
    with os.fdopen(pipe) as f:
        outcomes = json.load(f)
    os.waitpid(pid, 0)
    spared.discard(pid)
    output.seek(0)
    sys.stdout.write(output.read())
    sys.stdout.flush()
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", metavar="SUBSTRING", action="append", help="only tests named so")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=180, help="for each")
    parser.add_argument("--list", action="store_true", help="print the names of the tests")
    args = parser.parse_args()

    tests = find_tests(args.k)
    if args.list:
        print("\n".join(name for name, *_ in tests))
        return 0
    why = reason_to_skip()
    if why:
        print(f"nothing can be tested: {why}")
        print(f"0 passed, 0 failed, {len(tests)} skipped")
        return 0
    with tempfile.TemporaryFile("w+") as other:
        beside = start_beside([t[:2] for t in tests if t[2]], args.timeout, other)
        counts, failed = run_tests([t[:2] for t in tests if not t[2]], args.timeout)
        more, names = end_beside(beside, other)
    counts = [a + b for a, b in zip(counts, more)]
    failed += [t[:2] for t in tests if t[0] in names]
    tries = ""
    if failed and len(failed) <= SECOND_TRIES:
        print(f"a second try of {', '.join(name for name, _ in failed)}")
        again, _ = run_tests(failed, args.timeout)
        counts = [counts[PASSED] + again[PASSED], again[FAILED], counts[SKIPPED] + again[SKIPPED]]
        tries = f", {again[PASSED]} of them at the second try"
    print("{} passed{}, {} failed, {} skipped".format(counts[PASSED], tries, *counts[1:]))
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
