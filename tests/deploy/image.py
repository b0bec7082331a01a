"""Builds the image of deploy/Dockerfile for real and profiles this machine from it, as root.

    python3 tests/deploy/image.py [--base IMAGE]

The container has what the DaemonSet gives it: the host's processes, a cgroup namespace of its own with the
host's cgroups mounted, six capabilities, a root file system that is read-only. Without --base, a base image
is made by debootstrap, once. Needs buildah, podman, runc and a Debian archive; skips, and says why,
where they are missing. Exits 1 if a check fails.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from pprof import Profile  # noqa: E402

BASE = "localhost/wick-base:bookworm"
IMAGE = "localhost/wick:test"
PODMAN = ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
CAPABILITIES = ["BPF", "PERFMON", "SYS_PTRACE", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "SYSLOG"]
ADDED_MAX = 64 << 20  # bytes of the image over its base
PORT = 19425
TOKEN = "0123456789abcdef0123456789abcdef"


def run(*argv, **kwargs):
    return subprocess.run(argv, capture_output=True, text=True, **kwargs)


def must(*argv, **kwargs):
    done = run(*argv, **kwargs)
    if done.returncode:
        sys.exit(f"FAIL {' '.join(argv)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def check(condition, message):
    if not condition:
        sys.exit(f"FAIL {message}")
    print(f"ok   {message}")


def make_base():
    if run("podman", "image", "exists", BASE).returncode == 0:
        return
    with tempfile.TemporaryDirectory() as directory:
        root = os.path.join(directory, "root")
        must("debootstrap", "--variant=minbase", "bookworm", root)
        tar = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["podman", "import", "-q", "-", BASE], stdin=tar.stdout, check=True)
        tar.wait()


def size(image):
    return json.loads(must("podman", "image", "inspect", image))[0]["Size"]


def container(name, directory, capabilities=tuple(CAPABILITIES)):
    """Arguments of `podman run` for the DaemonSet's container."""
    # podman's own rlimits can't be raised on every host
    argv = [*PODMAN, "run", "--rm", "--name", name, "--ulimit", "nofile=1024:1024",
            "--ulimit", "nproc=1000:1000", "--network", "host", "--pid", "host",
            "--cgroupns", "private", "--read-only", "--security-opt", "seccomp=unconfined",
            "--security-opt", "no-new-privileges", "--cap-drop", "all",
            "-v", "/sys/fs/cgroup:/sys/fs/cgroup:ro", "-v", f"{directory}:/out"]
    for c in capabilities:
        argv += ["--cap-add", c]
    return argv


def spinning():
    """A process whose name is in profiles."""
    code = "def spin_for_wick():\n while True: pass\nspin_for_wick()"
    return subprocess.Popen([sys.executable, "-c", code])


def record(directory):
    target = spinning()
    try:
        must(*container("wick-test-record", directory), IMAGE, "record", "-q", "-d", "3",
             "-p", str(target.pid), "-o", "/out/profile.pb.gz", timeout=120)
    finally:
        target.kill()
        target.wait()
    profile = Profile.read(os.path.join(directory, "profile.pb.gz"))
    check(profile.samples, f"record in a container: {len(profile.samples)} samples of a host's process")
    names = {f.name for s in profile.samples for f in s.frames}
    check(any("Py" in n for n in names), "its frames have names from the host's file")


def get(path, token=TOKEN):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def agent(directory):
    with open(os.path.join(directory, "token"), "w") as f:
        f.write(TOKEN)
    argv = [*container("wick-test-agent", directory), IMAGE, "agent", "--listen", f":{PORT}",
            "--listen-token-file", "/out/token", "--window", "2s", "--push", "file:///out/pushed"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        status = None
        for _ in range(300):
            try:
                status, _ = get("/readyz")
                if status == 200:
                    break
            except OSError:
                pass
            if process.poll() is not None:
                sys.exit(f"FAIL the agent ended: {process.stderr.read()}")
            time.sleep(0.2)
        check(status == 200, "the agent in a container is ready")
        check(get("/metrics", token=None)[0] == 401, "it wants its token")
        status, body = get("/debug/pprof/profile?seconds=2")
        check(status == 200 and body[:2] == b"\x1f\x8b", "it makes a profile on demand")
    finally:
        run("podman", "stop", "-t", "30", "wick-test-agent")
        process.wait(timeout=60)
    check(process.returncode == 0, "SIGTERM ends it in order")
    check(os.listdir(os.path.join(directory, "pushed")), "it has delivered")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="an image with apt-get, instead of one by debootstrap")
    args = parser.parse_args()
    missing = [p for p in ("buildah", "podman", "runc") if not shutil.which(p)]
    if not args.base and not shutil.which("debootstrap"):
        missing.append("debootstrap")
    if missing or os.geteuid():
        print(f"skip the image: {', '.join(missing) or 'root'} is needed")
        return
    base = args.base or BASE
    if not args.base:
        make_base()
    must("buildah", "bud", "--isolation", "chroot", "--build-arg", f"BASE={base}", "-t", IMAGE,
         "-f", os.path.join(ROOT, "deploy", "Dockerfile"), ROOT)
    added = size(IMAGE) - size(base)
    check(added < ADDED_MAX, f"the image adds {added / 1e6:.1f} MB to its base")
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        said = must(*container("wick-test-version", directory), IMAGE, "version")
        check(said.startswith("wick"), f"it says {said.split(chr(10))[0]}")
        record(directory)
        agent(directory)


if __name__ == "__main__":
    main()
