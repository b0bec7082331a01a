"""--push: to a server that takes profiles, and to some that don't."""

import contextlib
import json
import os
import sys

import lib
from lib import program, record, running, wick
from pprof import Profile

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_pyroscope.py")


@contextlib.contextmanager
def server(*options, directory="stored"):
    """The port of a fake server that stores into a directory."""
    os.mkdir(directory)
    argv = [sys.executable, SERVER, "--directory", directory, *options]
    with running(*argv, lines=1) as process:
        yield process.lines[0][0]


def stored(directory="stored"):
    """What the server has accepted: (what it noted, profile)."""
    out = []
    while os.path.exists(f"{directory}/{len(out)}.json"):
        n = len(out)
        with open(f"{directory}/{n}.json", encoding="utf-8") as f:
            out.append((json.load(f), Profile.read(f"{directory}/{n}.pb.gz")))
    return out


def sample_set(profile):
    return sorted((s.names, sorted(s.labels.items()), s.values) for s in profile.samples)


def test_is_accepted():
    with server() as port:
        push = f"pyroscope+http://me:secret@127.0.0.1:{port}"
        labels = ["--label", "service_name=shop", "--label", "env=prod \u00e9"]
        r = record("--push", push, *labels, command=[program("shares"), "0.5"])
    got = stored()
    lib.check(len(got) == 1, f"{len(got)} profiles arrived")
    note, profile = got[0]
    want = {"__name__": "process_cpu", "service_name": "shop", "env": "prod \u00e9"}
    lib.check(note["labels"] == want, f"labels {note['labels']}")
    lib.check(note["headers"]["Authorization"].startswith("Basic "), "no user and password")
    lib.check(sample_set(profile) == sample_set(r.profile), "it isn't what was written to the file")
    lib.check("secret" not in r.stderr, f"a password is shown:{lib.shown(r.stderr)}")


def test_several_servers():
    with server(directory="a") as a, server("--prefix", "/below", directory="b") as b:
        urls = [f"pyroscope+http://127.0.0.1:{a}", f"pyroscope+http://127.0.0.1:{b}/below/"]
        record("--push", urls[0], "--push", urls[1], command=[program("shares"), "0.3"])
    for directory in ("a", "b"):
        got = stored(directory)
        lib.check(len(got) == 1, f"{len(got)} profiles arrived at {directory}")
        lib.check(got[0][0]["labels"]["service_name"], "no service name")


REFUSALS = {
    "400:invalid_argument:too many cooks": ["400", "invalid_argument", "too many cooks"],
    "429:resource_exhausted:slow down": ["429", "slow down"],
    "500:unknown:not today": ["500", "not today"],
    "401": ["401", "USER:PASSWORD"],
    "404": ["404", "no Pyroscope at this address"],
    "415": ["415", "content type"],
    "503": ["503", "not available"],
}


@lib.each(*REFUSALS)
def test_is_refused(answer):
    """Status 1, the server's own words, and the profile is in the file all the same."""
    with server("--answer", answer) as port:
        argv = ["--push", f"pyroscope+http://127.0.0.1:{port}", "--", program("shares"), "0.2"]
        _, stderr = wick("record", *argv, status=1)
    for words in REFUSALS[answer]:
        lib.check(words in stderr, f"'{words}' is not in{lib.shown(stderr)}")
    lib.check(Profile.read("profile.pb.gz").samples, "no profile in the file")
    lib.check(not stored(), "it was stored")


def test_tenant_is_missing():
    with server("--tenant") as port:
        argv = ["--push", f"pyroscope+http://127.0.0.1:{port}", "--", program("shares"), "0.2"]
        _, stderr = wick("record", *argv, status=1)
    lib.check("no org id" in stderr, stderr)


def test_nobody_listens():
    argv = ["--push", "pyroscope+http://me:secret@127.0.0.1:1", "--", program("shares"), "0.2"]
    _, stderr = wick("record", *argv, status=1)
    lib.check("pyroscope+http://127.0.0.1:1" in stderr, stderr)
    lib.check("secret" not in stderr, stderr)
    lib.check(Profile.read("profile.pb.gz").samples, "no profile in the file")
