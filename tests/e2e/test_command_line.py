"""Exit statuses, signals, messages, privileges."""

import os
import re
import signal
import subprocess
import time

import lib
from lib import expect_share, expect_some, program, record, record_work, recording, running, under


def test_status_of_the_command():
    lib.wick("record", "-q", "--", "sh", "-c", "exit 3", status=3)
    lib.wick("record", "-q", "--", "true", status=0)


def test_command_is_killed():
    lib.wick("record", "-q", "--", "sh", "-c", "kill -9 $$", status=137)


def test_command_is_not_there():
    _, stderr = lib.wick("record", "--", "/no/such/program", status=1)
    lib.check("/no/such/program" in stderr, stderr)
    lib.check(not os.listdir("."), f"left {os.listdir('.')}")


def test_output_of_the_command_is_its_own():
    stdout, _ = lib.wick("record", "-q", "--", "echo", "hello")
    lib.check(stdout == b"hello\n", f"stdout is {stdout}")


def test_quiet():
    stdout, stderr = lib.wick("record", "-q", "-d", "0.2")
    lib.check(not stdout and not stderr, f"it says {stdout} {stderr}")
    lib.check(os.listdir(".") == ["profile.pb.gz"], f"files: {os.listdir('.')}")


@lib.each("INT", "TERM")
def test_signal_ends_the_recording(name):
    with running(program("shares"), "30") as target, recording() as wick:
        lib.let_work(target.pid, seconds=0.7)
        wick.send_signal(getattr(signal, "SIG" + name))
        wick.wait(timeout=30)
    r = wick.recording
    lib.check(r.status == 0, f"status {r.status}")
    lib.check(r.profile.duration_nanos > 0.6e9, f"{r.profile.duration_nanos} ns")
    expect_share(r, under("hot_a"), 0.75, among=under("round_of_both"))


def test_signal_ends_the_command():
    """Ctrl-C reaches wick alone here: the command is ended, the result written."""
    with recording(command=[program("shares"), "30"]) as wick:
        lib.let_work(lib.child_of(wick.pid), seconds=0.5)
        wick.send_signal(signal.SIGINT)
        wick.wait(timeout=30)
    expect_some(wick.recording, under("round_of_both"))


def test_time_is_over():
    start = time.monotonic()
    r = record("-d", "500ms", command=[program("shares"), "30"], status=None)
    lib.check(time.monotonic() - start < 15, "the command went on")
    expect_some(r, under("round_of_both"), at_least=5)


USAGE = {
    "-F 0": "from 1 to 1000",
    "-F 1001": "from 1 to 1000",
    "-F ten": "from 1 to 1000",
    "-d 0": "from 10ms to 24h",
    "-d 1y": "from 10ms to 24h",
    "-p 0": "from 1",
    "-p abc": "abc",
    "-p 1,,2": "empty",
    "-t 1 -p 1": "exclude",
    "-a -p 1": "exclude",
    "-e nothing": "cpu-clock",
    "--format xml": "folded",
    "--demangle some": "simple",
    "--window-bytes 1": "from 64K to 4M",
    "--frobnicate": "frobnicate",
    "--durration 1": "did you mean --duration",
    "-o out.xml": "out.xml",
    "--push http://localhost": "pyroscope+http://",
    "--push pyroscope+http://localhost:1 --label a-b=c": "letters, digits",
    "--push pyroscope+http://localhost:1 --label __name__=c": "reserved",
    "--label a=b": "--push",
    "--inherit": "--pid",
}


@lib.each(*USAGE)
def test_usage_error(arguments):
    stdout, stderr = lib.wick("record", *arguments.split(), status=2)
    lib.check(USAGE[arguments] in stderr, f"'{USAGE[arguments]}' is not in{lib.shown(stderr)}")
    lib.check(not stdout and not os.listdir("."), "it left something")


def test_help():
    stdout, stderr = lib.wick("record", "--help")
    text = stdout.decode()
    for option in ("--pid", "--freq", "--duration", "--output", "--push", "--window-bytes"):
        lib.check(option in text, f"{option} is not in the help")
    lib.check(not stderr, stderr)


NEEDED = ["bpf", "perfmon", "sys_ptrace", "syslog", "dac_read_search", "checkpoint_restore"]


def test_capabilities_are_enough():
    """Nobody's user id with six capabilities, and not one more."""
    lib.need("setpriv")
    caps = "-all," + ",".join("+" + c for c in NEEDED)
    setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    setpriv += [f"--inh-caps={caps}", f"--ambient-caps={caps}", f"--bounding-set={caps}"]
    probe = subprocess.run([*setpriv, "true"], capture_output=True, text=True)
    if probe.returncode:
        raise lib.Skip(f"setpriv: {probe.stderr.strip()}")
    os.chown(".", 65534, 65534)
    with running(program("shares"), "30") as target:
        r = record_work("-p", target.pid, of=[target], seconds=0.7, prefix=setpriv)
        expect_share(r, under("hot_a"), 0.75, among=under("round_of_both"))
        how = {"prefix": setpriv, "output": "all.pb.gz"}
        r = record_work("-a", of=[target], seconds=0.3, **how)
        expect_some(r, under("hot_a"))


def test_no_capabilities():
    lib.need("setpriv")
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    _, stderr = lib.wick("record", "-d", "0.1", "-o", "/dev/null", status=1, prefix=prefix)
    lib.check(re.search(r"root|CAP_|privilege|permi", stderr), f"no reason in{lib.shown(stderr)}")
