"""Builds the programs of tests/e2e/programs, each in the ways the tests need, into build/e2e.

    path = build.program("shares-static-pie")

A program is built again when its sources or its command have changed.
"""

import os
import shlex
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCES = os.path.join(HERE, "programs")
OUTPUT = os.path.join(ROOT, "build", "e2e")

# Hot functions stay functions, and frames are found by any walk.
PLAIN = "-O1 -g -fno-inline -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer"
# No frame pointers and no call frame information.
UNDESCRIBED = "-O2 -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables"
CC = os.environ.get("CC", "gcc") + " -std=gnu17 -D_GNU_SOURCE -Wall -Wextra"
CXX = os.environ.get("CXX", "g++") + " -std=gnu++17 -Wall -Wextra"


class Skip(Exception):
    """A test isn't possible here; the text says why."""


def c(source, flags="", base=PLAIN):
    return f"{CC} {base} {flags} -o {{out}} {source} -pthread -ldl"


RECIPES = {
    "shares": c("shares.c"),
    "shares-stripped": c("shares.c", "-s"),
    "shares-nopie": c("shares.c", "-no-pie"),
    "shares-nopie-stripped": c("shares.c", "-no-pie -s"),
    "shares-static": c("shares.c", "-static -no-pie"),
    "shares-static-pie": c("shares.c", "-static-pie"),
    # lld packs segments: file offsets and addresses differ by other amounts in each
    "shares-lld": c("shares.c", "-fuse-ld=lld"),
    "shares-lld-stripped": c("shares.c", "-fuse-ld=lld -s"),
    # as distributions build: no frame pointers
    "shares-nofp": c("shares.c", base="-O2 -g -fomit-frame-pointer"),
    # code that nothing describes but itself
    "shares-nocfi": c("shares.c", base=UNDESCRIBED),
    "shares-nocfi-stripped": c("shares.c", "-s", base=UNDESCRIBED),
    # described by .debug_frame alone
    "shares-debugframe": c("shares.c", "-g", base=UNDESCRIBED),
    "shares-musl": f"musl-gcc -std=gnu17 -D_GNU_SOURCE {UNDESCRIBED} -static -o {{out}} shares.c",
    "deep": c("deep.c"),
    "storm": c("storm.c"),
    **{f"burst-{i}": c("burst.c", f"-DHOT=hot_burst_{i}") for i in range(4)},
    "threads": c("threads.c"),
    "become": c("become.c"),
    "churn": c("churn.c"),
    "plugin-a.so": c("plugin.c", "-DHOT=hot_plugin_a -shared -fPIC"),
    "plugin-b.so": c("plugin.c", "-DHOT=hot_plugin_b -shared -fPIC"),
    "mappings": c("mappings.c", base="-O2 -g -fomit-frame-pointer"),
    "reuse": c("reuse.c"),
    "moved": c("moved.c", base="-O2 -g -fomit-frame-pointer"),
    "hostile": c("hostile.c", "-static -no-pie"),
    "stuckfs": c("stuckfs.c"),
    "fault": c("fault.c"),
    "jit": c("jit.c"),
    "clock": c("clock.c"),
    "lost": c("lost.c"),
    "zero": c("zero.c"),
    "family": c("family.c"),
    "names-cc": f"{CXX} {PLAIN} -o {{out}} names.cc",
    "names-rust": "rustc -C opt-level=2 -C force-frame-pointers=yes -o {out} names.rs",
    "names-rust-v0": "rustc -C opt-level=2 -C force-frame-pointers=yes "
    "-C symbol-mangling-version=v0 -o {out} names.rs",
    "names-go": "go build -o {out} names.go",
    "inlined": c("inlined.c", base="-O2 -g"),
    "inlined-2": c("inlined.c", base="-O2 -gdwarf-2"),
    "inlined-clang": "clang -std=gnu17 -D_GNU_SOURCE -O2 -gdwarf-4 -o {out} inlined.c",
    "inlined-zlib": c("inlined.c", "-gz=zlib", base="-O2 -g"),
    "inlined-zlib-gnu": c("inlined.c", "-gz=zlib-gnu", base="-O2 -g"),
    "inlined-zstd": c("inlined.c", "-Wl,--compress-debug-sections=zstd", base="-O2 -g"),
    "inlined-rust": "rustc -C opt-level=2 -g -o {out} inlined.rs",
    "inlined-go": "go build -o {out} inlined.go",
    "inlined-go-stripped": "go build -ldflags=-s -o {out} inlined.go",
    "inlined-go-pie": "go build -buildmode=pie -ldflags=-s -o {out} inlined.go",
}


def newest(command):
    """When the sources of a command last changed; work.h counts for all."""
    files = [w for w in shlex.split(command) if os.path.exists(os.path.join(SOURCES, w))]
    return max(os.path.getmtime(os.path.join(SOURCES, f)) for f in [*files, "work.h"])


def is_current(out, command):
    try:
        with open(out + ".command") as f:
            return f.read() == command and os.path.getmtime(out) >= newest(command)
    except OSError:
        return False


def program(name):
    """The path of a built program."""
    out = os.path.join(OUTPUT, name)
    command = RECIPES[name].format(out=shlex.quote(out))
    if is_current(out, command):
        return out
    compiler = shlex.split(command)[0]
    if not shutil.which(compiler):
        raise Skip(f"{compiler} is not installed")
    if "-fuse-ld=lld" in command and not shutil.which("ld.lld"):
        raise Skip("ld.lld is not installed")
    os.makedirs(OUTPUT, exist_ok=True)
    done = subprocess.run(shlex.split(command), cwd=SOURCES, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stderr}")
    with open(out + ".command", "w") as f:
        f.write(command)
    return out


if __name__ == "__main__":
    for each in RECIPES:
        try:
            print(program(each))
        except Skip as why:
            print(f"{each}: {why}")
