"""Packages of other Debian releases and architectures, fetched beside the system's own packages.

    a = Archive(directory, ["trixie", "trixie-security"])
    version, image = a.kernel("6.12")       # ("6.12.118+deb13", path of vmlinuz)
    Archive(other, ["trixie"], "arm64").unpack(["libelf-dev"], "sysroot")

An apt root of its own: no package is installed and no source of the system changes. The mirror is
the one that this machine uses, with the system's own settings of how to reach it. Raises
Unavailable with the reason when there is no mirror, suite or package.
"""

import glob
import os
import re
import shutil
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
UPDATE_SECONDS = 180
PACKAGE_SECONDS = 240
TRIES = 8  # versions of a kernel: an index may be ahead of its pool


class Unavailable(Exception):
    pass


def run(command, seconds, **options):
    """Its standard output; Unavailable, with the last line of its complaint, when it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=seconds, text=True, **options)
    except OSError as e:
        raise Unavailable(f"{command[0]}: {e.strerror}") from e
    except subprocess.TimeoutExpired as e:
        raise Unavailable(f"{command[0]}: not done after {seconds} s") from e
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Unavailable(f"{command[0]}: {lines[-1]}")
    return done.stdout


def mirror(name):
    """Where this machine finds the archive called debian, or debian-security."""
    listing = run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], 30)
    for uri in listing.split():
        if uri.rstrip("/").rsplit("/", 1)[-1] == name:
            return uri
    raise Unavailable(f"this machine has no apt source of {name}")


def natural(text):
    """Sort key in which 6.12 comes after 6.9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


class Archive:
    def __init__(self, directory, suites, arch="amd64"):
        self.directory = os.path.abspath(directory)
        self.arch = arch
        self.suites = suites
        self.environment = dict(os.environ, APT_CONFIG=os.path.join(self.directory, "apt.conf"))
        self.is_updated = False

    def apt(self, command, seconds, **options):
        return run(command, seconds, env=self.environment, **options)

    def write_configuration(self):
        """Settings first that say how to reach a mirror (proxy, checks), then our directories."""
        for folder in ("lists/partial", "cache/archives/partial", "parts"):
            os.makedirs(os.path.join(self.directory, folder), exist_ok=True)
        settings = [line for line in run(["apt-config", "dump"], 30).splitlines()
                    if line.startswith("Acquire::")]
        for name, value in (
                ("Dir", ""), ("Dir::State", ""), ("Dir::State::status", "status"),
                ("Dir::State::lists", "lists"), ("Dir::Cache", "cache"), ("Dir::Etc", ""),
                ("Dir::Etc::sourcelist", "sources.list"), ("Dir::Etc::sourceparts", "parts"),
                ("Dir::Etc::parts", "parts")):
            settings.append(f'{name} "{os.path.join(self.directory, value)}";')
        settings += [f'APT::Architecture "{self.arch}";', "#clear APT::Architectures;",
                     f'APT::Architectures {{ "{self.arch}"; }};', 'APT::Sandbox::User "root";',
                     'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";']
        self.write("apt.conf", settings)
        self.write("status", [])
        signed = f"signed-by={KEYRING}" if os.path.exists(KEYRING) else ""
        self.write("sources.list", [
            f"deb [{signed}] {mirror('debian-security' if '-security' in s else 'debian')} {s} main"
            for s in self.suites])

    def write(self, name, lines):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in lines)

    def update(self):
        if self.is_updated:
            return
        self.write_configuration()
        self.apt(["apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update"], UPDATE_SECONDS)
        self.is_updated = True

    def kernel_packages(self, series):
        """Those of a series, newest first, as (package, version). 7 means any 7.x. Where there are
        both, linux-binary-* holds the image and linux-image-* nothing."""
        pattern = re.compile(rf"linux-(image|binary)-({re.escape(series)}\.\S*)-cloud-{self.arch}")
        names = self.apt(["apt-cache", "pkgnames", "linux-"], 60).split()
        found = sorted(m.groups() for m in map(pattern.fullmatch, names) if m)
        packages = {version: f"linux-{kind}-{version}-cloud-{self.arch}"
                    for kind, version in reversed(found)}
        if not packages:
            raise Unavailable(f"no kernel {series} in {', '.join(self.suites)}")
        return [(packages[v], v) for v in sorted(packages, key=natural, reverse=True)]

    def kernel(self, series, refresh=False):
        """(version, path of the image) of the newest kernel of a series that can be had; kept once
        fetched."""
        kept = sorted(glob.glob(os.path.join(self.directory, "vmlinuz-*")), key=natural)
        if kept and not refresh:
            return os.path.basename(kept[-1])[len("vmlinuz-"):], kept[-1]
        self.update()
        packages = self.kernel_packages(series)[:TRIES]
        for package, version in packages:
            image = os.path.join(self.directory, f"vmlinuz-{version}")
            try:
                if image not in kept:
                    self.extract(package, image)
                return version, image
            except Unavailable as e:
                reason = e
        raise reason

    def extract(self, package, image):
        scratch = os.path.join(self.directory, "package")
        shutil.rmtree(scratch, ignore_errors=True)
        os.makedirs(scratch)
        self.apt(["apt-get", "-q", "download", package], PACKAGE_SECONDS, cwd=scratch)
        (deb,) = glob.glob(os.path.join(scratch, "*.deb"))
        run(["dpkg-deb", "-x", deb, os.path.join(scratch, "tree")], PACKAGE_SECONDS)
        images = [os.path.join(top, name) for top, _, files in os.walk(scratch) for name in files
                  if name.startswith("vmlinuz")]
        if len(images) != 1:
            raise Unavailable(f"{package} holds {len(images)} kernel images")
        os.replace(images[0], image)
        for folder in (scratch, *(os.path.join(self.directory, d) for d in ("lists", "cache"))):
            shutil.rmtree(folder)  # hundreds of megabytes of index
        self.is_updated = False

    def unpack(self, packages, root):
        """Packages, with all that they depend on, as files below root; nothing is configured."""
        self.update()
        self.apt(["apt-get", "-q", "-y", "--no-install-recommends", "--download-only", "install",
                  *packages], PACKAGE_SECONDS)
        os.makedirs(root, exist_ok=True)
        for deb in glob.glob(os.path.join(self.directory, "cache/archives/*.deb")):
            run(["dpkg-deb", "-x", deb, root], PACKAGE_SECONDS)
