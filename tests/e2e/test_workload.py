"""Whose sample it is: containers of every runtime's layout, real ones, pods, systemd's units; and what the
rules turn down. By build/workload/label_samples: the agent's way from sample to labels."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import time

import lib
from fake_kube import NODE, FakeKube, pod, uid_of
from lib import check, program, running
from receivers import receiver
from test_agent import agent

BESIDE = True

DRIVER = os.path.join(os.path.dirname(lib.WICK), "workload", "label_samples")
SECONDS = 0.12  # of CPU time for each program that is to be seen: 24 samples
PODMAN = ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
ULIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]


def digest(name):
    """A container's id, as an engine might have made it up."""
    return hashlib.sha256(name.encode()).hexdigest()


class Labelled:
    """What label_samples printed: series as (count, labels), and figures by name."""

    def __init__(self, text):
        self.text, self.series, self.figures = text, [], {}
        for line in text.splitlines():
            head, _, rest = line.partition(" ")
            if head.isdigit():
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', rest))
                self.series.append((int(head), labels if rest.startswith("{") else {"": rest}))
            elif rest:
                self.figures[head] = int(rest) if rest.isdigit() else rest

    def count(self, **labels):
        return sum(n for n, l in self.series if labels.items() <= l.items())

    def expect(self, at_least=5, **labels):
        check(self.count(**labels) >= at_least, f"too few samples with {labels} in\n{self.text}")

    def expect_none(self, **labels):
        check(not self.count(**labels), f"samples with {labels} in\n{self.text}")


@contextlib.contextmanager
def labelling(*args, prefix=()):
    """Samples while the block runs; the result is in .result afterwards."""
    lib.check(os.access(DRIVER, os.X_OK), f"{DRIVER} is missing: make e2e builds it")
    process = subprocess.Popen(
        [*prefix, DRIVER, "60", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        check(process.stdout.readline() == "ready\n", "label_samples doesn't start")
        yield process
        text, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    check(process.returncode == 0, f"label_samples exits {process.returncode}:\n{text}")
    process.result = Labelled(text)
    f = process.result.figures
    told = f.get("recorded", 0) + f.get("idle", 0) + f.get("unselected", 0)
    told += sum(f.get(n, 0) for n in ("window_full", "no_window", "internal"))
    check(f.get("ticks", 0) == told, f"ticks don't add up:\n{text}")


# ---- cgroups ----


def hierarchy():
    """The mount of the one that wick goes by, as src/proc/cgroup.h orders them, and "v1" or "v2"."""
    v1, v2 = {}, None
    with open("/proc/self/mountinfo") as f:
        for line in f:
            mount, _, rest = line.partition(" - ")
            kind, _, options = rest.split()[:3]
            if kind == "cgroup2":
                v2 = v2 or mount.split()[4]
            elif kind == "cgroup":
                v1.update({o: mount.split()[4] for o in options.split(",")})
    if v2:
        with open(os.path.join(v2, "cgroup.controllers")) as f:
            if "memory" in f.read().split():
                return v2, "v2"
    for controller in ("memory", "cpu", "pids"):
        if controller in v1:
            return v1[controller], "v1"
    raise lib.Skip("no cgroup hierarchy with the memory, cpu or pids controller")


def make_cgroup(path):
    """The directories that had to be made, outermost first."""
    made = []
    while not os.path.isdir(path):
        made.insert(0, path)
        path = os.path.dirname(path)
    for directory in made:
        try:
            os.mkdir(directory)
        except OSError as e:
            raise lib.Skip(f"{directory}: {e.strerror}") from None
    return made


def remove(directories):
    for directory in reversed(directories):
        for _ in range(200):  # until the kernel has let go of the processes
            try:
                os.rmdir(directory)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.02)


@contextlib.contextmanager
def cgroups(*paths):
    """Makes cgroups below the hierarchy's root; yields their directories."""
    top, _ = hierarchy()
    made = []
    try:
        for path in paths:
            made += make_cgroup(os.path.join(top, path.strip("/")))
        yield [os.path.join(top, path.strip("/")) for path in paths]
    finally:
        remove(made)


def run_in(directory, *argv):
    """Runs a program to its end in a cgroup: moved before exec, so that all of it counts."""

    def enter():
        with open(os.path.join(directory, "cgroup.procs"), "w") as f:
            f.write("0")

    subprocess.run([str(a) for a in argv], preexec_fn=enter, check=True)


A, B = digest("a"), digest("b")
UID = uid_of("web")
SLICE_UID = UID.replace("-", "_")
TOP = f"wick-e2e-{os.getpid()}"
LAYOUTS = {
    "docker cgroupfs": f"/{TOP}/docker/{{}}",
    "docker systemd": f"/{TOP}/system.slice/docker-{{}}.scope",
    "containerd cgroupfs": f"/{TOP}/kubepods/burstable/pod{UID}/{{}}",
    "containerd systemd": f"/{TOP}/kubepods.slice/kubepods-pod{SLICE_UID}.slice/cri-containerd-{{}}.scope",
    "containerd mixed": f"/{TOP}/system.slice/containerd.service/kubepods-pod{SLICE_UID}.slice:cri-containerd:{{}}",
    "crio": f"/{TOP}/kubepods.slice/kubepods-pod{SLICE_UID}.slice/crio-{{}}.scope/container",
    "podman cgroupfs": f"/{TOP}/libpod_parent/libpod-{{}}",
    "podman systemd": f"/{TOP}/machine.slice/libpod-{{}}.scope/container",
    "podman quadlet": f"/{TOP}/system.slice/web.service/libpod-payload-{{}}",
    "kind": f"/{TOP}/docker/{B}/kubelet.slice/kubelet-kubepods-pod{SLICE_UID}.slice/cri-containerd-{{}}.scope",
    "ecs": f"/{TOP}/ecs/0123456789abcdef0123456789abcdef/{{}}",
}


def test_layouts():
    """Each runtime's cgroup paths, with made-up containers of which nothing else is known."""
    paths = {name: path.format(digest(name)) for name, path in LAYOUTS.items()}
    with labelling() as driver, cgroups(*paths.values()) as directories:
        for directory in directories:
            run_in(directory, program("burst-0"), SECONDS)
    for name in paths:
        driver.result.expect(container_id=digest(name), container=digest(name)[:12])


def test_named_containers_and_units():
    unit = f"wicke2e{os.getpid()}"
    paths = {
        f"/lxc.payload.{unit}": {"container": unit, "service_name": unit},
        f"/{TOP}/machine-my\\x2dbox.scope": {"container": "my-box"},
        f"/{unit}.slice/{unit}-web.service/worker": {"unit": f"{unit}-web.service", "service_name": f"{unit}-web"},
        f"/{unit}.slice/run-u1.scope": {"unit": "run-u1.scope", "service_name": "burst-0", "exe": program("burst-0")},
        f"/{unit}.slice/user@7.service/app.slice/mail.service": {
            "unit": "user@7.service",
            "user_unit": "mail.service",
            "service_name": "mail",
        },
    }
    with labelling("node=n1") as driver, cgroups(*paths) as directories:
        for directory in directories:
            run_in(directory, program("burst-0"), SECONDS)
    for labels in paths.values():
        driver.result.expect(**labels, node="n1")


def test_one_second():
    """Made, run, ended and removed while sampling goes on, with nothing left to look at afterwards; and a
    process outside of containers that is as short, by its executable."""
    with labelling() as driver:
        for i in range(5):
            with cgroups(f"/{TOP}/docker/{digest(f'short-{i}')}") as (directory,):
                run_in(directory, program("burst-1"), 0.1)
        subprocess.run([program("burst-2"), "0.1"], check=True)
    for i in range(5):
        driver.result.expect(container_id=digest(f"short-{i}"), at_least=3)
    driver.result.expect(exe=program("burst-2"), service_name="burst-2", at_least=3)
    check(driver.result.figures["unknown_cgroups"] == 0, driver.result.text)


def test_existing_containers():
    """Those that ran before, by the scan; one that ends before anybody asks."""
    with cgroups(f"/{TOP}/docker/{A}", f"/{TOP}/docker/{B}") as (one, two), labelling() as driver:
        run_in(one, program("burst-0"), SECONDS)
        run_in(two, program("burst-0"), SECONDS)
        remove([two])
    driver.result.expect(container_id=A)
    driver.result.expect(container_id=B)


def test_cgroup_namespace():
    """As in a pod that isn't privileged: its own part of the hierarchy is the root that it sees, and
    everybody else's path is told by the kernel or by /proc alone."""
    lib.need("unshare")
    mount, version = hierarchy()
    kind = "cgroup2" if version == "v2" else "cgroup -o memory"
    if version == "v1" and os.path.basename(mount) != "memory":
        raise lib.Skip(f"the hierarchy is {mount}")
    script = f'echo $$ >{mount}/{TOP}/agent/cgroup.procs; exec unshare -C -m sh -c \'mount --make-rprivate /; '
    script += f'umount {mount} && mount -t {kind} none {mount} && exec "$@"\' sh "$@"'
    with cgroups(f"/{TOP}/agent", f"/{TOP}/docker/{A}", f"/{TOP}/docker/{B}") as (_, before, after):
        with running("sh", "-c", f'echo $$ >{before}/cgroup.procs; exec {program("burst-0")} 60') as one:
            with labelling(prefix=["sh", "-c", script, "sh"]) as driver:
                lib.let_work(one.pid, seconds=SECONDS)
                with cgroups(f"/{TOP}/docker/{digest('new')}") as (new,):
                    run_in(new, program("burst-1"), SECONDS)
                run_in(after, program("burst-1"), SECONDS)
    for container in (A, digest("new")):
        driver.result.expect(container_id=container)


# ---- real containers ----


def static_burst():
    """burst, linked statically: an image of one file."""
    source = os.path.join(lib.build.SOURCES, "burst.c")
    subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-O1", "-static", "-DHOT=hot", "-o", "burst", source], check=True
    )
    return os.path.abspath("burst")


def test_runc():
    lib.need("runc")
    name = f"wick-e2e-{os.getpid()}"
    os.makedirs("bundle/rootfs")
    shutil.copy(static_burst(), "bundle/rootfs/burst")
    subprocess.run(["runc", "spec"], cwd="bundle", check=True)
    with open("bundle/config.json") as f:
        spec = json.load(f)
    spec["process"].update(args=["/burst", "0.4"], terminal=False, rlimits=[])
    spec["linux"]["cgroupsPath"] = f"/docker-{A}.scope"  # runc leaves parents behind, in all hierarchies
    with open("bundle/config.json", "w") as f:
        json.dump(spec, f)
    with labelling() as driver:
        subprocess.run(["runc", "run", "-b", "bundle", name], check=True)
    driver.result.expect(container_id=A, service_name=A[:12])


def test_podman():
    """By name; one that removes itself when it has ended; both told apart."""
    lib.need("podman", "runc")
    image = f"localhost/wick-e2e-{os.getpid()}:1"
    os.mkdir("image")
    shutil.copy(static_burst(), "image/burst")
    archive = subprocess.run(["tar", "-C", "image", "-c", "."], stdout=subprocess.PIPE, check=True)
    done = subprocess.run(["podman", "import", "-", image], input=archive.stdout, capture_output=True)
    if done.returncode:
        raise lib.Skip(f"podman import: {done.stderr.decode()}")
    names = [f"wick-e2e-{os.getpid()}-{i}" for i in range(2)]
    try:
        with labelling() as driver:
            for name, extra in zip(names, ([], ["--rm"])):
                run = [*PODMAN, "run", *extra, "--name", name, "--network", "none", *ULIMITS, image]
                done = subprocess.run([*run, "/burst", "0.4"], capture_output=True, text=True)
                check(done.returncode == 0, done.stderr)
    finally:
        subprocess.run(["podman", "rm", "-f", names[0]], capture_output=True)
        subprocess.run(["podman", "rmi", "-f", image], capture_output=True)
    for name in names:
        driver.result.expect(container=name, service_name=name)
    ids = {labels["container_id"] for _, labels in driver.result.series if "container_id" in labels}
    check(len(ids) >= 2, driver.result.text)


# ---- Kubernetes ----


def pod_path(name, container):
    return f"/{TOP}/kubepods/burstable/pod{uid_of(name)}/{container}"


def kube_labels(name, **more):
    return {"pod": name, "namespace": "shop", "node": NODE, **more}


def until(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"{what}: not within {seconds} s")
        time.sleep(0.02)


def test_pods():
    """Known before; told while they run; two containers; owner, names, chosen labels; a static pod."""
    hash_ = "0123456789abcdef0123456789abcdef"
    web = pod(
        "web-7d9-x",
        containers={"api": A, "proxy": B},
        labels={"pod-template-hash": "7d9", "tier": "front"},
        annotations={"team": "red"},
        owner=("ReplicaSet", "web-7d9"),
    )
    job = pod("once", labels={"app": "batch"}, annotations={"pyroscope.io/service_name": "sum"})
    static = pod(
        "etcd",
        containers={"etcd": digest("etcd")},
        annotations={"kubernetes.io/config.hash": hash_, "kubernetes.io/config.mirror": hash_},
    )
    args = ("label=tier", "annotation=team", "token=token", "node=n1")
    with open("token", "w") as f:
        f.write("secret\n")
    with FakeKube(token="secret") as kube:
        kube.put(web)
        kube.put(static)
        with (
            labelling(f"api={kube.url}", *args) as driver,
            cgroups(
                pod_path("web-7d9-x", A),
                pod_path("web-7d9-x", B),
                pod_path("web-7d9-x", digest("sandbox")),
                pod_path("once", digest("job")),
                f"/{TOP}/kubepods/pod{hash_}/{digest('etcd')}",
            ) as directories,
        ):
            until(lambda: any("watch" in q for _, q in kube.requests), "a watch")
            kube.put(job)
            for directory in directories:
                run_in(directory, program("burst-0"), SECONDS)
            # the status comes when the container has ended, and the pod is gone soon after
            done = {"terminated": {"containerID": f"containerd://{digest('job')}"}}
            job["status"]["containerStatuses"] = [{"name": "main", "state": done}]
            kube.put(job)
            kube.delete(job)
            time.sleep(0.3)
    r = driver.result
    common = kube_labels("web-7d9-x", workload="web", workload_kind="Deployment", tier="front", team="red")
    r.expect(**common, container="api", container_id=A, service_name="web")
    r.expect(**common, container="proxy", container_id=B, service_name="web")
    r.expect(**common, container_id=digest("sandbox"))
    r.expect(**kube_labels("once", container="main", container_id=digest("job"), service_name="sum"))
    r.expect(**kube_labels("etcd", container="etcd", service_name="etcd"))
    check(r.figures["kube_synced"] == 1 and r.figures["kube_errors"] == 0, r.text)
    check(kube.requests[0][1].get("resourceVersion") == "0", kube.requests)


@lib.each("500", "429", "malformed", "truncated", "close", "redirect", "hang", "huge", "gone", "garbage")
def test_api_faults(fault):
    """Whatever goes wrong once, the labels arrive, nothing of the token is said, nobody else is asked."""
    with open("token", "w") as f:
        f.write("secret")
    with FakeKube(token="secret", watch_seconds=2) as kube:
        (kube.watch_faults if fault in ("gone", "garbage") else kube.faults).append(fault)
        with (
            labelling(f"api={kube.url}", "token=token", "node=n1") as driver,
            cgroups(pod_path("web", A)) as (directory,),
        ):
            run_in(directory, program("burst-0"), SECONDS)
            until(lambda: any("watch" in q for _, q in kube.requests), "a watch")
            kube.put(pod("web", containers={"api": A}))
            until(lambda: len(kube.requests) > 2, "another request")
            time.sleep(0.5)
            until(lambda: kube.requests[-1][1].get("watch"), "a watch again")
            time.sleep(0.2)
    r = driver.result
    r.expect(**kube_labels("web", container="api", service_name="api"))
    check("secret" not in r.text, "the token is shown")
    check(all(path == "/api/v1/pods" for path, _ in kube.requests), kube.requests)
    errors = r.figures["kube_errors"]
    check(errors >= 1, r.text)
    check(r.figures["kube_expired"] == (fault == "gone"), r.text)


def test_tls():
    """A server that the given authority doesn't vouch for isn't asked, nor sent the token."""
    lib.need("openssl")
    with open("token", "w") as f:
        f.write("secret")
    for name in ("good", "bad"):
        command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -keyout {name}.key -out {name}.pem"
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*command.split(), *subject], check=True, capture_output=True)
    with FakeKube(token="secret", certificate=("good.pem", "good.key")) as kube:
        with labelling(f"api={kube.url}", "token=token", "node=n1", "ca=bad.pem") as driver:
            time.sleep(1.5)
        check(not kube.requests and driver.result.figures["kube_errors"] >= 1, driver.result.text)
        check("certificate" in driver.result.figures["kube_error"], driver.result.text)
        with labelling(f"api={kube.url}", "token=token", "node=n1", "ca=good.pem") as driver:
            until(lambda: any("watch" in q for _, q in kube.requests), "a watch")
        check(driver.result.figures["kube_synced"] == 1, driver.result.text)


def test_token_is_renewed():
    with open("token", "w") as f:
        f.write("old")
    with FakeKube(token="new") as kube:
        kube.put(pod("web", containers={"api": A}))
        with labelling(f"api={kube.url}", "token=token", "node=n1") as driver:
            until(lambda: kube.requests, "a request")
            with open("token", "w") as f:
                f.write("new")
            until(lambda: any("watch" in q for _, q in kube.requests), "a watch")
    check(driver.result.figures["pods"] == 1, driver.result.text)


def test_kubelet():
    """Polled; sooner when there is a container that nothing is known of, whose name may still be to come."""
    with FakeKube() as kube:
        kube.put(pod("web", containers={"api": A}))
        with (
            labelling(f"kubelet={kube.url}", "node=n1") as driver,
            cgroups(pod_path("web", A), pod_path("late", B)) as (one, two),
        ):
            run_in(one, program("burst-0"), SECONDS)
            kube.put(pod("late"))
            run_in(two, program("burst-0"), SECONDS)
            asked = len(kube.requests)
            until(lambda: len(kube.requests) > asked, "another look at kubelet's pods", 10)
            kube.put(pod("late", containers={"main": B}))
            asked = len(kube.requests)
            until(lambda: len(kube.requests) > asked, "yet another look", 10)
            time.sleep(0.3)
    driver.result.expect(**kube_labels("web", container="api"))
    driver.result.expect(**kube_labels("late", container="main"))
    check({path for path, _ in kube.requests} == {"/pods"}, kube.requests)


# ---- rules ----


def rounds(directories, times=6):
    """Each works again and again, so that a verdict has something to spare."""
    for _ in range(times):
        for directory in directories:
            run_in(directory, program("burst-0"), 0.15)


def expect_skipped(r, kind):
    """BPF has left out what was turned down: far more ticks than the few that came before the verdict."""
    turned_down = r.count(**{"": "unwanted"})
    unselected = r.figures.get("unselected", 0)
    check(r.figures[f"skipped_{kind}"] >= 1 and unselected > turned_down, r.text)


def test_excluded_container():
    with cgroups(f"/{TOP}/docker/{A}", f"/{TOP}/docker/{B}") as directories:
        with labelling(f"-container={A}") as driver:
            rounds(directories)
    driver.result.expect(container_id=B)
    driver.result.expect_none(container_id=A)
    check(not driver.result.count(**{"": "unwanted"}), "decided at the start, before any sample")
    expect_skipped(driver.result, "cgroups")


def test_included_unit_only():
    unit = f"wicke2e{os.getpid()}"
    with cgroups(f"/{unit}.slice/{unit}.service", f"/{TOP}/docker/{B}") as directories:
        with labelling(f"+unit={unit}.service") as driver:
            rounds(directories, 2)
    labels = [l for _, l in driver.result.series if l != {"": "unwanted"}]
    check(labels and all(l["unit"] == f"{unit}.service" for l in labels), driver.result.text)


@lib.each("exe", "comm", "uid")
def test_excluded_processes(by):
    """Of one cgroup, by what only the process itself can tell."""
    value = {"exe": "burst-1", "comm": "burst-1", "uid": "65534"}[by]
    prefix = ["setpriv", "--reuid", "65534", "--clear-groups"] if by == "uid" else []
    with labelling(f"-{by}={value}") as driver:
        with running(program("burst-1"), "60", prefix=prefix) as one, running(program("burst-2"), "60") as two:
            lib.let_work(one.pid, two.pid, seconds=1.5)
    driver.result.expect(exe=program("burst-2"))
    driver.result.expect_none(exe=program("burst-1"))
    expect_skipped(driver.result, "processes")


@lib.each("opt-out", "opt-in")
def test_annotations(mode):
    """A pod asks not to be profiled, or another one asks for it where nobody is by default."""
    key = "profiles.grafana.com/cpu.ebpf.enabled"
    quiet = pod("quiet", containers={"main": A}, annotations={key: "false"})
    loud = pod("loud", containers={"main": B}, annotations={key: "true"})
    args = ["opt-in"] if mode == "opt-in" else []
    with FakeKube() as kube:
        kube.put(quiet)
        kube.put(loud)
        with cgroups(pod_path("quiet", A), pod_path("loud", B)) as directories:
            with labelling(f"api={kube.url}", "node=n1", *args) as driver:
                until(lambda: any("watch" in q for _, q in kube.requests), "a watch")
                with running(program("burst-3"), "60") as beside:
                    rounds(directories)
                    lib.let_work(beside.pid, seconds=0.2)
    driver.result.expect(pod="loud")
    driver.result.expect_none(pod="quiet")
    expect_skipped(driver.result, "cgroups")
    if args:
        driver.result.expect_none(exe=program("burst-3"))
    else:
        driver.result.expect(exe=program("burst-3"))


def test_annotation_changes():
    """Turned down while it runs, and taken back: BPF follows."""
    key = "pyroscope.io/scrape"
    with FakeKube() as kube:
        kube.put(pod("web", containers={"main": A}))
        with cgroups(pod_path("web", A)) as (directory,):
            with labelling(f"api={kube.url}", "node=n1") as driver:
                until(lambda: any("watch" in q for _, q in kube.requests), "a watch")
                rounds([directory], 2)
                kube.put(pod("web", containers={"main": A}, annotations={key: "false"}))
                time.sleep(1.5)
                rounds([directory], 4)
                kube.put(pod("web", containers={"main": A}, labels={"app": "again"}))
                time.sleep(1.5)
                rounds([directory], 3)
    r = driver.result
    # labels are asked for at the end: what was sampled in the first and the last part
    r.expect(pod="web", service_name="again")
    check(r.figures["unselected"] >= 10 and r.figures["skipped_cgroups"] == 0, r.text)


# ---- the agent ----


def test_agent():
    """All the way: pods' containers to series of a server, one of them left out as it asks for."""
    key = "profiles.grafana.com/cpu.ebpf.enabled"
    with (
        FakeKube() as kube,
        receiver("pyroscope") as server,
        cgroups(pod_path("web", A), pod_path("quiet", B)) as (web, quiet),
    ):
        kube.put(pod("web", containers={"api": A}, labels={"app": "shop"}))
        kube.put(pod("quiet", containers={"main": B}, annotations={key: "false"}))
        options = ("--kubernetes-mode", "api", "--kubernetes-api-url", kube.url, "--node-name", NODE)
        with agent("--push", server.url, *options) as a:
            a.wait_metric("wick_kubernetes_synced", 1)
            rounds([web, quiet], 4)
            a.wait_metric('wick_skipped{kind="cgroup"}', 1)
            rounds([web, quiet], 2)
            check(a.metrics()["wick_unselected_ticks_total"] > 0, "nothing was left out in BPF")
    found = [s["labels"] for s in server.stored if s["labels"].get("container_id") == A]
    want = kube_labels("web", container="api", service_name="shop")
    check(found and all(want.items() <= labels.items() for labels in found), found)
    marks = sum(s["mark"] for s in server.stored if s["labels"].get("container_id") == A)
    check(marks >= 20, f"only {marks} samples of the container")
    check(not any(s["labels"].get("container_id") == B for s in server.stored), "the quiet pod")
