"""--push: to servers of every kind that take profiles, and to some that don't."""

import glob
import os

import lib
from lib import program, record, recording, wick
from pprof import Profile
from receivers import SCHEMES, receiver

SHORT = [program("shares"), "0.2"]


def sample_set(profile):
    return sorted((s.names, sorted(s.labels.items()), s.values) for s in profile.samples)


def only(server):
    lib.check(len(server.stored) == 1, f"{len(server.stored)} profiles arrived at {server.protocol}")
    return server.stored[0]


@lib.each(*SCHEMES)
def test_is_accepted(protocol):
    labels = ["--label", "service_name=shop", "--label", "env=prod \u00e9"]
    with receiver(protocol) as server:
        r = record("--push", server.url, *labels, command=[program("shares"), "0.5"])
        got = only(server)
    service = "service.name" if protocol == "otlp" else "service_name"
    want = {"__name__": "process_cpu", service: "shop", "env": "prod \u00e9"}
    lib.check(got["labels"] == want, f"labels {got['labels']}")
    lib.check(got["mark"] == r.ticks["samples"], f"{got['mark']} samples arrived of {r.ticks}")
    if protocol != "otlp":
        lib.check(sample_set(server.profile(got)) == sample_set(r.profile), "it isn't what was written to the file")


def test_password_is_not_shown():
    with receiver("pyroscope", "--user", "me:secret") as server:
        url = server.url.replace("//", "//me:secret@")
        with lib.running(lib.program("zero"), "60") as busy, recording("--push", url) as process:
            lib.let_work(busy.pid, seconds=0.3)  # an idle machine has nothing to push
            with open(f"/proc/{process.pid}/cmdline", "rb") as f:
                shown = f.read()
        only(server)
    lib.check(b"//me:******@127.0.0.1" in shown and b"secret" not in shown, f"the command line is {shown}")
    lib.check("secret" not in process.recording.stderr, f"a password is shown:{lib.shown(process.recording.stderr)}")


def test_several_servers():
    with receiver("pyroscope", directory="a") as a, receiver("pyroscope", "--prefix", "/below", directory="b") as b:
        out = f"file://{os.getcwd()}/out"
        r = record("--push", a.url, "--push", f"{b.url}/below/", "--push", out, command=SHORT)
    for server in (a, b):
        lib.check(only(server)["labels"]["service_name"], "no service name")
    (path,) = glob.glob("out/*.pb.gz")
    lib.check(sample_set(Profile.read(path)) == sample_set(r.profile), "the directory has something else")


REFUSALS = {
    "400 code invalid_argument": ["400", "invalid_argument", "as the test wants it"],
    "429 code resource_exhausted": ["429", "as the test wants it"],
    "500 code unknown": ["500", "as the test wants it"],
    "401 code none": ["401", "USER:PASSWORD"],
    "404 code none": ["404", "no Pyroscope at this address"],
    "415 code none": ["415", "content type"],
    "503 code none": ["503", "not available"],
}


@lib.each(*REFUSALS)
def test_is_refused(answer):
    """Status 1, the server's own words, and the profile is in the file all the same."""
    with receiver("pyroscope", fault=f"status {answer}") as server:
        _, stderr = wick("record", "--push", server.url, "--", *SHORT, status=1)
    for words in REFUSALS[answer]:
        lib.check(words in stderr, f"'{words}' is not in{lib.shown(stderr)}")
    lib.check(Profile.read("profile.pb.gz").samples, "no profile in the file")
    lib.check(not server.stored, "it was stored")


def test_tenant_is_missing():
    with receiver("pyroscope", "--tenant", "t") as server:
        _, stderr = wick("record", "--push", server.url, "--", *SHORT, status=1)
        lib.check("no org id" in stderr, stderr)
        wick("record", "--push", f"{server.url}?tenant=t", "--", *SHORT)


def test_nobody_listens():
    argv = ["--push", "pyroscope+http://me:secret@127.0.0.1:1", "--", *SHORT]
    _, stderr = wick("record", *argv, status=1)
    lib.check("pyroscope+http://127.0.0.1:1" in stderr, stderr)
    lib.check("secret" not in stderr, stderr)
    lib.check(Profile.read("profile.pb.gz").samples, "no profile in the file")
