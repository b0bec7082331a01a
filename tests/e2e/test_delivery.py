"""Delivery to every kind of server, and what is done where a server would refuse, lose or break."""

import glob
import os
import subprocess

import lib
from pprof import Profile
from receivers import SCHEMES, deliver, delivering, expected, finals, receiver

BESIDE = True


def expect(server, marks, what=""):
    lib.check(server.marks == marks, f"{server.protocol} has {server.marks[:20]}, not {marks[:20]} {what}")


@lib.each(*SCHEMES)
def test_arrives(protocol):
    labels = ["service_name=shop", "env=prod \u00e9", "node=n1"]
    with receiver(protocol) as server:
        final = deliver(server.url, windows=3, series=4, samples=5, label=labels)
    expect(server, expected(3, 4, 5))
    lib.check(final["sent"] == 12 and final["requests"] == 12 and not final["retried"], final)
    got = server.stored[0]
    service, node = ("service.name", "k8s.node.name") if protocol == "otlp" else ("service_name", "node")
    want = {"__name__": "process_cpu", service: "shop", node: "n1", "env": "prod \u00e9"}
    lib.check({k: got["labels"].get(k) for k in want} == want, got["labels"])
    kind = "samples:count:cpu:nanoseconds" if protocol == "otlp" else "samples:cpu:cpu:nanoseconds"
    lib.check(got["type"] == kind, got["type"])
    lib.check("function_0" in got["names"], got["names"])


HOSTILE = "a,b}c{d=e%2C+f&g;h\"i\\j k\u00e9"


@lib.each(*SCHEMES)
def test_hostile_labels(protocol):
    """Values with everything that has a meaning somewhere; the form's names have no escapes."""
    labels = [f"service_name={HOSTILE}", f"v={HOSTILE}", "we.ird-name!=x", "__name__=evil"]
    with receiver(protocol) as server:
        deliver(server.url, label=labels)
    expect(server, [1])
    got = server.stored[0]["labels"]
    value = HOSTILE.replace(",", "_").replace("{", "_").replace("}", "_") if protocol == "ingest" else HOSTILE
    service = "service.name" if protocol == "otlp" else "service_name"
    lib.check(got[service] == value and got["v"] == value, got)
    lib.check(got["we_ird_name_"] == "x" and got["__name__"] == "process_cpu", got)


@lib.each(*SCHEMES)
def test_as_many_and_as_long_labels_as_servers_take(protocol):
    """30 names with __name__ and service_name, of which the driver gives one; values are cut."""
    labels = ["service_name=s", "long=" + "\u00e9" * 3000, *(f"n{i}=v" for i in range(26))]
    with receiver(protocol) as server:
        deliver(server.url, label=labels)
    expect(server, [1])
    got = server.stored[0]["labels"]
    lib.check(len(got) == 30 and 2000 < len(got["long"].encode()) < 2048, f"{len(got)} labels")


@lib.each(*SCHEMES)
def test_other_events(protocol):
    """Names with a dash make servers refuse, or fail at every query afterwards."""
    with receiver(protocol) as server:
        deliver(server.url, type="page-faults", samples=3)
    expect(server, [3])
    got = server.stored[0]
    lib.check(got["labels"]["__name__"] == "page_faults", got["labels"])
    lib.check("-" not in got["type"], got["type"])


@lib.each(*SCHEMES)
def test_splits(protocol):
    """Too many samples and bytes for one profile: several with times of their own, nothing lost."""
    with receiver(protocol) as server:
        final = deliver(server.url, samples=40000)
    stored = server.stored
    lib.check(len(stored) >= 3 and final["sent"] == len(stored), final)
    lib.check(sum(s["mark"] for s in stored) == 40000, sum(s["mark"] for s in stored))
    lib.check(max(s["samples"] for s in stored) <= 16000, "too many samples")
    if protocol != "otlp":
        lib.check(max(s["raw"] for s in stored) <= 1 << 20, "too many bytes")
    lib.check(len({s["time"] for s in stored}) == len(stored), "two parts have the same time")


def test_unsendable_sample():
    with receiver("pyroscope") as server:
        final = deliver(server.url, samples=3, profile_bytes=100)
    lib.check(final["unsendable"] > 0 and not final["refused"], final)
    lib.check(sum(s["mark"] for s in server.stored) == 3 - final["unsendable"], final)


def test_old_otlp():
    with receiver("otlp", "--otlp", "1.9") as server:
        deliver(server.url + "?proto=1.9", samples=4)
    expect(server, [4])


def test_otlp_partial_success():
    with receiver("otlp", fault="partial") as server:
        final = deliver(server.url)
    lib.check(final["refused"] == 1 and "not this one" in final["error"], final)


@lib.each("pyroscope", "parca")
def test_batches(protocol):
    with receiver(protocol, fault="slow 0.5") as server:
        final = deliver(server.url + "?batch=10", windows=1, series=40, concurrency=1)
    expect(server, expected(1, 40))
    lib.check(final["sent"] == 40 and final["requests"] <= 8, final)


def test_batches_by_itself_when_many_wait():
    """A batch with a bad one in it is repeated one by one."""
    with receiver("pyroscope", fault="only s.77. status 400 code invalid_argument") as server:
        final = deliver(server.url, series=200)
    expect(server, [m for m in expected(1, 200) if m != 78])
    lib.check(final["sent"] == 199 and final["refused"] == 1, final)
    lib.check(len([r for r in server.requests if r["fault"]]) <= 2, "the bad one was sent again and again")


def test_refused_one_costs_no_other():
    with receiver("pyroscope", fault="only s.3. status 400 code invalid_argument") as server:
        final = deliver(server.url, series=8)
    expect(server, [m for m in expected(1, 8) if m != 4])
    lib.check(final["sent"] == 7 and final["refused"] == 1 and final["requests"] == 8, final)
    lib.check("as the test wants it" in final["error"], final)


def test_refused_batch():
    """Each is sent again alone, with the same time; the server recognises what it has."""
    with receiver("pyroscope", fault="only s.3. status 400 code invalid_argument") as server:
        final = deliver(server.url + "?batch=8", series=8, concurrency=1)
    expect(server, [m for m in expected(1, 8) if m != 4])
    lib.check(final["sent"] == 7 and final["refused"] == 1, final)


def test_keeps_connections():
    with receiver("pyroscope") as server:
        deliver(server.url, windows=5, series=8, window=100, concurrency=3)
        ports = {r["connection"] for r in server.requests}
    lib.check(len(server.requests) == 40 and len(ports) <= 3, f"{len(ports)} connections")


# ---- directories ----


def test_directory():
    final = deliver(f"file://{os.getcwd()}/out%20put", windows=3, series=2, samples=2, label=["service_name=shop/a"])
    files = sorted(glob.glob("out put/*.pb.gz"))
    lib.check(len(files) == 6 and final["sent"] == 6, f"{final} {os.listdir('out put')}")
    lib.check(len(os.listdir("out put")) == 6, os.listdir("out put"))
    lib.check(all("service_name=shop_a" in f for f in files), files)
    marks = sorted(Profile.read(f).total("samples") for f in files)
    lib.check(marks == expected(3, 2, 2), marks)


def test_directory_keeps_within_bytes():
    deliver(f"file://{os.getcwd()}/d?max-bytes=8K", windows=60)
    files = sorted(glob.glob("d/*.pb.gz"))
    lib.check(sum(map(os.path.getsize, files)) <= 8192 and len(files) > 10, files)
    lib.check(max(Profile.read(f).total("samples") for f in files) == 59001, "the newest is gone")


def test_directory_keeps_within_age():
    os.mkdir("d")
    old, foreign = "d/20200101T000000.000000000Z,service_name=x,process_cpu-00000000.pb.gz", "d/other.pb.gz"
    for path in (old, foreign):
        with open(path, "wb") as f:
            f.write(b"x")
    deliver(f"file://{os.getcwd()}/d?max-age=7d")
    lib.check(not os.path.exists(old), "too old, and still there")
    lib.check(os.path.exists(foreign) and len(os.listdir("d")) == 2, os.listdir("d"))


# ---- who may ----


def test_user_and_tenant():
    with receiver("pyroscope", "--user", "me:s3cret", "--tenant", "t1") as server:
        url = server.url.replace("//", "//me:s3cret@")
        final = deliver(url + "?tenant=t1")
        wrong = deliver(url.replace("s3cret", "s4cret") + "?tenant=t1")
    expect(server, [1])
    lib.check(final["sent"] == 1, final)
    lib.check(wrong["refused"] == 1 and "no org id" in wrong["error"], wrong)
    lib.check("cret" not in str(final) + str(wrong), "a password is shown")


@lib.each("pyroscope", "parca")
def test_bearer_is_read_again(protocol):
    for name, text in (("token", "first\n"), ("both", "first\nsecond\n")):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
    with receiver(protocol, "--bearer", "both") as server:
        with delivering(f"{server.url}?bearer-file={os.getcwd()}/token", windows=4, window=500) as process:
            process.stdout.readline()
            with open("token.new", "w", encoding="utf-8") as f:
                f.write("second")
            os.rename("token.new", "token")
            final = finals(process.communicate()[0].strip())
        got = {r["headers"].get("Authorization") or r["headers"].get("authorization") for r in server.requests}
    lib.check(final["sent"] == 4, final)
    lib.check(got == {"Bearer first", "Bearer second"}, got)


def certificate(name, *more, subject="/CN=127.0.0.1"):
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    argv += ["-subj", subject, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
    subprocess.run([*argv, *more], check=True, capture_output=True)


@lib.each("pyroscope", "parca")
def test_tls(protocol):
    """Only with the right authority, or when told not to care."""
    lib.need("openssl")
    certificate("server")
    here = os.getcwd()
    with receiver(protocol, "--cert", "server.pem", "--key", "server.key") as server:
        url = server.url.replace("+http", "+https").replace("+grpc", "+grpcs")
        unknown = deliver(url, grace=500)
        lib.check(not unknown["sent"] and "certificate" in unknown["error"].lower(), unknown)
        known = deliver(f"{url}?ca-file={here}/server.pem")
        careless = deliver(f"{url}?insecure=yes")
    lib.check(known["sent"] == 1 and careless["sent"] == 1, f"{known} {careless}")


def test_wrong_host_and_client_certificate():
    lib.need("openssl")
    certificate("server", subject="/CN=elsewhere")
    certificate("client", subject="/CN=me")
    here = os.getcwd()
    with receiver("pyroscope", "--cert", "server.pem", "--key", "server.key", "--client-ca", "client.pem") as server:
        url = server.url.replace("+http", "+https") + f"?ca-file={here}/server.pem"
        anonymous = deliver(url, grace=500)
        known = deliver(f"{url}&cert-file={here}/client.pem&key-file={here}/client.key")
        other = deliver(f"{url}&cert-file={here}/client.pem&key-file={here}/client.key".replace("127.0.0.1", "localhost"), grace=500)
    lib.check(known["sent"] == 1 and not anonymous["sent"], f"{known} {anonymous}")
    lib.check(not other["sent"] and "localhost" in other["error"], other)
