#!/usr/bin/env python3
"""Names, files, lines and inlined calls of Go code against Go's own tracebacks, for toolchains of many years.

    go.py [VERSION...]      default: the machine's own (local), VERSIONS and SUITES

The judge is the program itself (programs/gotable): it is asked what Go's runtime knows of its addresses, so that
stripped programs and those without section headers have a truth, too. ADDRESSES: the program that answers for
wick (addresses.c). COUNT: addresses a program, 10000. Toolchains come as modules (golang.org/toolchain) by the
machine's own go, 1.21 or later; those called SUITE/VERSION are Debian's packages, unpacked. Kept in build/go. Differences are explained by the rules below or printed; exit
status 1.
"""

import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../kernels"))

import archive  # noqa: E402
import builds
from compare import SHOWN, ask, random_addresses, table
from elf import Elf

VERSIONS = """1.15.15 1.16.15 1.17.13 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.11 1.25.0""".split()
SUITES = ["bullseye/1.15", "bookworm/1.19", "trixie/1.24"]
SOURCE = os.path.join(builds.HERE, "programs/gotable")
DIRECTORY = os.path.join(builds.ROOT, "build/go")

# name: flags of the build, flags of the linker, with cgo
BUILDS = {
    "plain": ([], "", False),
    "stripped": ([], "-s -w", False),
    "pie": (["-buildmode=pie"], "", False),
    "pie-stripped": (["-buildmode=pie"], "-s -w", False),
    "cgo": ([], "", True),
    "cgo-pie-stripped": (["-buildmode=pie"], "-s -w", True),
}
HEADERLESS = ["stripped", "pie-stripped", "cgo-pie-stripped"]   # of which there is one without section headers


def unpacked(suite, version):
    """GOROOT of a Debian package's files."""
    directory = os.path.join(DIRECTORY, f"{suite}-{version}")
    root = os.path.join(directory, "root")
    if not os.path.exists(root):
        packages = os.path.join(directory, "packages")
        try:
            archive.Archive(packages, [suite]).unpack([f"golang-{version}-go"], root + ".new")
        except archive.Unavailable as e:
            raise RuntimeError(f"{suite}: {e}") from e
        os.rename(root + ".new", root)
        shutil.rmtree(packages)
    return os.path.join(root, f"usr/lib/go-{version}")


class Toolchain:
    """What `go` is of a version; RuntimeError if it can't be had."""

    def __init__(self, version):
        self.environment = dict(os.environ, GOFLAGS="", GO111MODULE="on", GOWORK="off",
                                GOCACHE=os.path.join(DIRECTORY, "cache"))
        self.environment.pop("GOROOT", None)
        if "/" in version:
            self.environment["GOROOT"] = root = unpacked(*version.split("/"))
        else:
            self.environment["GOTOOLCHAIN"] = "local" if version == "local" else "go" + version
            root = self.run(["go", "env", "GOROOT"], DIRECTORY)
        self.go = os.path.join(root, "bin/go")
        # Flags of the machine may be unknown to it; 1.19 takes itself for a module, being where they are kept.
        self.environment.update(GOTOOLCHAIN="local", GOENV="off", GODEBUG="goindex=0")
        said = self.run([self.go, "version"], DIRECTORY)    # "go version go1.19.8 linux/amd64"
        self.numbers = [int(n) for n in re.findall(r"\d+", said.split()[2])]
        self.name = said.split()[2][2:] if version == "local" else version.replace("/", "-")

    def run(self, command, where):
        try:
            done = subprocess.run(command, cwd=where, env=self.environment, capture_output=True, text=True,
                                  check=False)
        except OSError as e:
            raise RuntimeError(f"{command[0]}: {e.strerror}") from e
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
        return done.stdout.strip()

    def build(self, name):
        """The program's path."""
        flags, link, cgo = BUILDS[name]
        out = os.path.join(DIRECTORY, f"{self.name}-{name}")
        if not os.path.exists(out):
            if self.numbers[:2] >= [1, 23]:     # or only the runtime's friends may use its functions
                link += " -checklinkname=0"
            self.environment["CGO_ENABLED"] = str(int(cgo))
            self.run([self.go, "build", *flags, "-ldflags", link, "-o", out, "."], SOURCE)
        return out


def without_section_headers(path):
    out = path + "-headerless"
    shutil.copy(path, out)
    with open(out, "r+b") as f:
        f.seek(0x28)
        f.write(bytes(8))       # e_shoff
        f.seek(0x3a)
        f.write(bytes(6))       # e_shentsize, e_shnum, e_shstrndx
    return out


def base(path):
    """The lowest address of the segments that are loaded."""
    with open(path, "rb") as f:
        header = f.read(4096)
    (phoff,) = struct.unpack_from("<Q", header, 0x20)
    size, n = struct.unpack_from("<HH", header, 0x36)
    entries = [struct.unpack_from("<IIQQ", header, phoff + i * size) for i in range(n)]
    return min(vaddr for kind, _, _, vaddr in entries if kind == 1) & ~0xfff


# ---- differences that are understood ----

def symbol_names(our, their):
    """The symbol table has ".abi0" behind functions that take their arguments on the stack, and a dot for "·". 1.18
    and 1.19 took the length of an array for a type argument when they wrote the function table."""
    def alike(name):
        return re.sub(r"^(type\.\.[^[]*)\[.*\]", r"\1[...]", name.replace("·", "."))

    name = re.sub(r"\.abi(0|internal)$", "", our[-1][0])
    if alike(name) == alike(their[-1][0]):
        name = their[-1][0]
    return our[:-1] + [(name,) + our[-1][1:]]


def elided_wrappers(our, their):
    """Tracebacks leave out wrappers that the compiler made (and reflect.callMethod, callReflect): the judge knows
    their name only."""
    if len(our) == len(their) > 1 and their[-1][1:] == ("", 0, 0):
        return our[:-1] + [(our[-1][0], "", 0, 0)]
    return our


RULES = [
    ("names of the symbol table", symbol_names),
    ("wrappers that tracebacks leave out", elided_wrappers),
]


def explain(our, their):
    reasons = []
    for reason, undo in RULES:
        undone = undo(our, their)
        if undone != our:
            reasons.append(reason)
            our = undone
        if our == their:
            return " + ".join(reasons)
    return None


# ---- the comparison ----

class Result:
    def __init__(self, name):
        self.name = name
        self.addresses = self.named = self.lined = self.inlined = 0
        self.explained = {}
        self.unexplained = []

    def row(self):
        share = 100 * (1 - len(self.unexplained) / max(self.addresses, 1))
        return [self.name, self.addresses, self.named, self.lined, self.inlined,
                sum(self.explained.values()), len(self.unexplained), f"{share:.2f} %"]


def compare(path, addresses):
    result = Result(os.path.basename(path))
    ours = ask([os.environ["ADDRESSES"], "-d", path], addresses)
    theirs = ask([path, f"{base(path):#x}"], addresses)
    for address, our, their in zip(addresses, ours, theirs):
        if their[0][0] == "??":     # C's, between functions
            continue
        result.addresses += 1
        result.named += our[-1][0] != "??"
        result.lined += our[0][2] > 0
        result.inlined += len(their) > 1
        if our == their:
            continue
        reason = explain(our, their)
        if reason:
            result.explained[reason] = result.explained.get(reason, 0) + 1
        else:
            result.unexplained.append((address, our, their))
    if result.addresses < len(addresses) / 2:
        raise RuntimeError(f"{path}: Go knows of {result.addresses} addresses of {len(addresses)}")
    return result


def show(result):
    for address, our, their in result.unexplained[:SHOWN]:
        print(f"\n{result.name} {address:#x}")
        for i in range(max(len(our), len(their))):
            a = our[i] if i < len(our) else None
            b = their[i] if i < len(their) else None
            print(f"  {'  ' if a == b else '! '}wick {a}")
            if a != b:
                print(f"    go   {b}")


def compare_toolchain(version):
    """The results, and what went wrong."""
    results, errors = [], []
    try:
        toolchain = Toolchain(version)
    except RuntimeError as e:
        return [], [str(e)]
    for name in BUILDS:
        try:
            path = toolchain.build(name)
            addresses = random_addresses(Elf(path))
            results.append(compare(path, addresses))
            if name in HEADERLESS:
                results.append(compare(without_section_headers(path), addresses))
        except RuntimeError as e:
            errors.append(f"{version} {name}: {e}")
    return results, errors


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    results, errors = [], []
    for version in sys.argv[1:] or ["local"] + VERSIONS + SUITES:
        r, e = compare_toolchain(version)
        for one in r:
            show(one)
        results += r
        errors += e
    print()
    table([r.row() for r in results])
    reasons = {}
    for r in results:
        for reason, n in r.explained.items():
            reasons[reason] = reasons.get(reason, 0) + n
    for reason, n in sorted(reasons.items(), key=lambda x: -x[1]):
        print(f"explained: {n} x {reason}")
    for e in errors:
        print(f"not compared: {e}")
    bad = sum(len(r.unexplained) for r in results)
    print(f"{len(results)} programs, {sum(r.addresses for r in results)} addresses, {bad} differences")
    return 1 if bad or errors or not results else 0


if __name__ == "__main__":
    sys.exit(main())
