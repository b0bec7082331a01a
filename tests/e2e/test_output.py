"""Files and formats."""

import gzip
import json
import os
import re
import subprocess

import lib
from lib import expect_share, program, record, under
from pprof import Profile


def test_standard_output():
    stdout, stderr = lib.wick("record", "-o", "-", "-d", "0.4", "-F", "499")
    profile = Profile.decode(stdout)
    lib.check(stdout[:2] == b"\x1f\x8b", "not gzip")
    lib.check_profile(profile, 499)
    lib.check("ticks" in stderr, f"no summary on stderr:{lib.shown(stderr)}")


def test_plain_pprof():
    r = record(command=[program("shares"), "0.5"], output="out.pb")
    with open(r.path, "rb") as f:
        lib.check(f.read(2) != b"\x1f\x8b", "it is gzip")
    lib.expect_some(r, under("hot_a"))


def test_folded():
    r = record(command=[program("shares"), "0.7"], output="out.folded")
    total = hot_a = both = 0
    with open(r.path, encoding="utf-8") as f:
        for line in f:
            match = re.fullmatch(r"([^;]+(?:;[^;]+)*) (\d+)\n", line)
            lib.check(match, f"'{line}' is not a folded stack")
            frames, n = match.group(1).split(";"), int(match.group(2))
            total += n
            hot_a += n if "hot_a" in frames else 0
            both += n if "round_of_both" in frames else 0
            lib.check(frames[0] in ("shares", "wick"), f"the thread is '{frames[0]}'")
    lib.check(total == r.ticks["samples"], f"{total} in the file, {r.ticks['samples']} samples")
    lib.check(both > 200 and 0.6 < hot_a / both < 0.9, f"{hot_a} of {both}")


def test_speedscope():
    r = record(command=[program("shares"), "0.7"], output="out.speedscope.json")
    with open(r.path, encoding="utf-8") as f:
        data = json.load(f)
    lib.check(data["$schema"] == "https://www.speedscope.app/file-format-schema.json", "schema")
    frames = data["shared"]["frames"]
    total = 0
    for p in data["profiles"]:
        lib.check(p["type"] == "sampled" and p["unit"] == "nanoseconds", f"{p['type']} {p['unit']}")
        lib.check(len(p["samples"]) == len(p["weights"]), "samples and weights differ in number")
        lib.check(all(0 <= i < len(frames) for s in p["samples"] for i in s), "no such frame")
        total += sum(p["weights"])
    period = round(1e9 / lib.FREQ)
    samples = r.ticks["samples"]
    lib.check(abs(total - samples * period) <= samples, f"{total} ns for {samples} samples")
    lib.check("hot_a" in [f["name"] for f in frames], "no hot_a")


def test_text():
    r = record(command=[program("shares"), "0.5"], output="out.txt")
    with open(r.path, encoding="utf-8") as f:
        text = f.read()
    lib.check(re.search(r"hot_a$", text, re.M) and "%" in text, f"not a table:{lib.shown(text)}")


def test_format_overrides_ending():
    record("--format", "folded", command=[program("shares"), "0.3"], output="out.pb.gz.x")
    with open("out.pb.gz.x") as f:
        lib.check(";round_of_both" in f.read(), "not folded")


def test_top_is_printed():
    r = record(command=[program("shares"), "0.5"])
    lib.check(b"hot_a" in r.stdout, f"no top on stdout: {r.stdout}")
    r = record("-n", "0", command=[program("shares"), "0.3"])
    lib.check(b"hot_a" not in r.stdout, f"a top on stdout: {r.stdout}")


def test_go_tool_pprof():
    lib.need("go")
    r = record(command=[program("shares"), "0.7"])
    expect_share(r, under("hot_a"), 0.75, among=under("round_of_both"))
    env = {**os.environ, "PPROF_BINARY_PATH": "/nonexistent", "PPROF_TMPDIR": os.getcwd()}
    done = subprocess.run(
        ["go", "tool", "pprof", "-top", r.path], capture_output=True, text=True, env=env
    )
    lib.check(done.returncode == 0, done.stderr)
    # it also names the file, and on some versions the binary that it looked for
    lib.check(not re.search(r"warning|error|fail", done.stderr, re.I), done.stderr)
    lib.check(re.search(r"hot_a\b", done.stdout), done.stdout)
    lib.check("Type: cpu" in done.stdout, done.stdout)


def test_report_reads_it():
    r = record(command=[program("shares"), "0.5"])
    stdout, _ = lib.wick("report", r.path)
    lib.check(b"hot_a" in stdout, f"{stdout}")


def test_merge_adds_up():
    a = record(command=[program("shares"), "0.4"], output="a.pb.gz")
    b = record(command=[program("shares"), "0.4"], output="b.pb.gz")
    lib.wick("merge", "a.pb.gz", "b.pb.gz", "-o", "sum.pb.gz")
    total = Profile.read("sum.pb.gz").total("samples")
    lib.check(total == a.ticks["samples"] + b.ticks["samples"], f"{total}")


def test_replaces_a_file():
    with open("out.pb.gz", "w") as f:
        f.write("something older")
    record("-d", "0.3")
    with gzip.open("out.pb.gz") as f:
        lib.check(f.read(1), "empty")
    lib.check(os.listdir(".") == ["out.pb.gz"], f"files: {os.listdir('.')}")


def test_directory_that_is_not_there():
    _, stderr = lib.wick("record", "-d", "0.1", "-o", "no/such/out.pb.gz", status=1)
    lib.check("no/such/out.pb.gz" in stderr, stderr)


def test_full_disk():
    """A clear error, and neither a file under the name nor anything half beside it."""
    lib.need("unshare", "mount")
    os.mkdir("disk")
    script = (
        "mount -t tmpfs -o size=16k none disk && dd if=/dev/zero of=disk/filler 2>/dev/null; "
        f"{lib.WICK} record -q -d 0.3 -o disk/out.pb.gz; echo status $?; ls -A disk"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True
    )
    words = done.stdout.split()
    lib.check(words == ["status", "1", "filler"], f"{words} {done.stderr}")
    lib.check("disk/out.pb.gz" in done.stderr and "space" in done.stderr, done.stderr)
