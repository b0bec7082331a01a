#!/usr/bin/env python3
"""Names, lines and inlined calls against llvm-symbolizer, over random addresses of real files.

    compare.py [FILE...]        default: what is on this machine (FILES) and what is built (builds.py)

ADDRESSES: the program that answers for wick (addresses.c). COUNT: addresses a file, 10000. Each answer is
compared whole: every frame's name, file, line and column. Where they differ a rule of
known_differences.py may say why; anything else is printed, and the exit status is 1.
"""

import os
import posixpath
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import builds
import known_differences
from elf import Elf

COUNT = int(os.environ.get("COUNT", "10000"))
SHOWN = int(os.environ.get("SHOWN", "5"))   # differences of a file that are printed
PEER = os.environ.get("PEER", "llvm-symbolizer")

# Of Debian, of toolchains that people install by hand, with separate debug files and without any.
FILES = """
    /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/libm.so.6 /lib64/ld-linux-x86-64.so.2
    /lib/x86_64-linux-gnu/libresolv.so.2 /lib/x86_64-linux-gnu/libnsl.so.1
    /lib/x86_64-linux-gnu/libthread_db.so.1 /lib/x86_64-linux-gnu/libmvec.so.1
    /usr/bin/perl /usr/bin/python3.11 /usr/bin/bash /usr/bin/openssl /usr/bin/git /usr/bin/node
    /usr/lib/x86_64-linux-gnu/libcrypto.so.3 /usr/lib/x86_64-linux-gnu/libssl.so.3
    /usr/lib/x86_64-linux-gnu/libstdc++.so.6 /usr/lib/x86_64-linux-gnu/libsqlite3.so.0
    /usr/lib/x86_64-linux-gnu/libcurl.so.4 /usr/lib/x86_64-linux-gnu/libgnutls.so.30
    /usr/lib/gcc/x86_64-linux-gnu/12/cc1 /usr/lib/x86_64-linux-gnu/libdw.so.1
    ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo
    ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/rustfmt
""".split()


def random_addresses(elf):
    """COUNT addresses in code, the same ones each time."""
    rng = random.Random(elf.path)
    ranges = elf.code()
    if not ranges:
        raise RuntimeError("no sections with code")
    weights = [size for _, size in ranges]
    picks = rng.choices(ranges, weights, k=COUNT)
    return [start + rng.randrange(size) for start, size in picks]


def ask(command, addresses):
    """The answers of a program that speaks llvm-symbolizer's language: lists of frames."""
    text = "".join(f"{a:#x}\n" for a in addresses)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False,
                          errors="replace")
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
    answers = []
    for block in done.stdout.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if lines != [""]:
            answers.append([frame(*lines[i:i + 2]) for i in range(0, len(lines) - 1, 2)])
    if len(answers) != len(addresses):
        raise RuntimeError(f"{command[0]}: {len(answers)} answers to {len(addresses)} questions")
    return answers


def peer_path(path):
    """A copy that the peer can read, where it can't read the file."""
    name = os.path.basename(path) + ".peer"
    copy = os.path.join(os.path.dirname(os.path.dirname(path)), name, name)
    return copy if os.path.exists(copy) else path


def frame(name, place):
    """(name, file, line, column). A file without a line may come from a symbol table's STT_FILE: not
    a place."""
    path, line, column = place.rsplit(":", 2)
    if path == "??" or (line == "0" and "/" not in path):
        path = ""
    return name, posixpath.normpath(path) if path else "", int(line), int(column)


class Result:
    def __init__(self, path):
        self.path = path
        self.addresses = self.frames = self.named = self.lined = self.inlined = 0
        self.explained = {}
        self.unexplained = []
        self.error = None

    def row(self):
        share = 100 * (1 - len(self.unexplained) / max(self.addresses, 1))
        return [os.path.relpath(self.path, builds.DIRECTORY) if
                self.path.startswith(builds.DIRECTORY) else self.path,
                self.addresses, self.named, self.lined, self.inlined,
                sum(self.explained.values()), len(self.unexplained), f"{share:.2f} %"]


def compare(path):
    result = Result(path)
    try:
        elf = Elf(path)
        addresses = random_addresses(elf)
        ours = ask([os.environ["ADDRESSES"], path], addresses)
        theirs = ask([PEER, "--inlines", "--no-demangle", "-e", peer_path(path)], addresses)
    except (RuntimeError, OSError) as e:
        result.error = str(e)
        return result
    for address, our, their in zip(addresses, ours, theirs):
        result.addresses += 1
        result.frames += len(our)
        result.named += our[-1][0] != "??"
        result.lined += our[0][2] > 0
        result.inlined += len(our) > 1
        if our == their:
            continue
        reason = known_differences.explain(elf, address, our, their)
        if reason:
            result.explained[reason] = result.explained.get(reason, 0) + 1
        else:
            result.unexplained.append((address, our, their))
    return result


def show(result):
    if result.error:
        print(f"\n{result.path}: {result.error}")
    for address, our, their in result.unexplained[:SHOWN]:
        print(f"\n{result.path} {address:#x}")
        for i in range(max(len(our), len(their))):
            a = our[i] if i < len(our) else None
            b = their[i] if i < len(their) else None
            print(f"  {'  ' if a == b else '! '}wick {a}")
            if a != b:
                print(f"    peer {b}")


def table(rows):
    head = ["file", "addresses", "named", "lines", "inlined", "explained", "differ", "agree"]
    rows = [head] + [[str(c) for c in r] for r in rows]
    widths = [max(len(r[i]) for r in rows) for i in range(len(head))]
    for r in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                        for i, (c, w) in enumerate(zip(r, widths))))


def main():
    paths = sys.argv[1:]
    if not paths:
        paths = [p for p in map(os.path.expanduser, FILES) if os.path.exists(p)] + builds.make()
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(compare, map(os.path.realpath, paths)))
    for r in results:
        show(r)
    print()
    table([r.row() for r in results if not r.error])
    reasons = {}
    for r in results:
        for reason, n in r.explained.items():
            reasons[reason] = reasons.get(reason, 0) + n
    for reason, n in sorted(reasons.items(), key=lambda x: -x[1]):
        print(f"explained: {n} x {reason}")
    bad = sum(len(r.unexplained) for r in results) + sum(r.error is not None for r in results)
    print(f"{len(results)} files, {sum(r.addresses for r in results)} addresses, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
