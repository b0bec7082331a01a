"""Kernels of other Debian releases, fetched beside the system's own packages.

    a = Archive(directory, ["trixie", "trixie-security"])
    version, image = a.kernel("6.12")       # ("6.12.118+deb13", path of vmlinuz)

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
        raise Unavailable(f"{' '.join(command[:2])}: {lines[-1]}")
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

    def kernel_package(self, series):
        """The newest one of a series, as (package, version). 7 means any 7.x. Where there are
        both, linux-binary-* holds the image and linux-image-* nothing."""
        pattern = re.compile(rf"linux-(image|binary)-({re.escape(series)}\.\S*)-cloud-{self.arch}")
        names = self.apt(["apt-cache", "pkgnames", "linux-"], 60).split()
        found = [(natural(m[2]), m[1] == "binary", m[0], m[2])
                 for m in map(pattern.fullmatch, names) if m]
        if not found:
            raise Unavailable(f"no kernel {series} in {', '.join(self.suites)}")
        newest = max(found, key=lambda f: f[0])[0]
        return max(f for f in found if f[0] == newest)[2:]

    def kernel(self, series, refresh=False):
        """(version, path of the image) of the newest kernel of a series; kept once fetched."""
        kept = sorted(glob.glob(os.path.join(self.directory, "vmlinuz-*")), key=natural)
        if not kept or refresh:
            self.update()
            package, version = self.kernel_package(series)
            image = os.path.join(self.directory, f"vmlinuz-{version}")
            if image not in kept:
                self.extract(package, image)
            return version, image
        return os.path.basename(kept[-1])[len("vmlinuz-"):], kept[-1]

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
        shutil.rmtree(scratch)
