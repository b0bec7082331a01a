"""Programs that are built for the comparison: two programs by every compiler, version of DWARF, linker and
way of keeping debug information that is here. Kept in build/names."""

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests/names")
DIRECTORY = os.path.join(ROOT, "build/names")
LIBRARIES = os.environ.get("LIBRARIES", "").split()     # what the Makefile links with

# name: compiler, flags. C is wick itself as far as it needs no kernel, C++ is real.cc.
C = {
    "c-gcc-2": "gcc -O2 -gdwarf-2",
    "c-gcc-3": "gcc -O2 -gdwarf-3",
    "c-gcc-4": "gcc -O3 -gdwarf-4",
    "c-gcc-5": "gcc -O2 -gdwarf-5",
    "c-gcc-5-64": "gcc -O2 -gdwarf-5 -gdwarf64",
    "c-gcc-O0": "gcc -O0 -g",
    "c-gcc-Os-gc": "gcc -Os -g -ffunction-sections -Wl,--gc-sections",
    "c-gcc-lto": "gcc -O2 -g -flto=2",
    "c-gcc-zlib": "gcc -O2 -g -gz=zlib",
    "c-gcc-zstd": "gcc -O2 -g -Wl,--compress-debug-sections=zstd",
    "c-gcc-no-pie": "gcc -O2 -g -no-pie",
    "c-gcc-gold": "gcc -O2 -g -fuse-ld=gold -Wl,--icf=all -ffunction-sections",
    "c-clang-4": "clang -O2 -gdwarf-4",
    "c-clang-5": "clang -O2 -gdwarf-5",
    "c-clang-lto": "clang -O2 -g -flto -fuse-ld=lld",
    "c-clang-lld-icf": "clang -O2 -g -fuse-ld=lld -ffunction-sections -Wl,--icf=all,--gc-sections",
    "c-clang-mold": "clang -O2 -g -fuse-ld=mold",
}
CXX = {
    "cxx-gcc-4": "g++ -O2 -gdwarf-4",
    "cxx-gcc-5": "g++ -O2 -gdwarf-5",
    "cxx-gcc-O1-types": "g++ -O1 -g -fdebug-types-section",
    "cxx-gcc-split-4": "g++ -O2 -gdwarf-4 -gsplit-dwarf",
    "cxx-gcc-split-5": "g++ -O2 -gdwarf-5 -gsplit-dwarf",
    "cxx-clang-5": "clang++ -O2 -gdwarf-5",
    "cxx-clang-O3-4": "clang++ -O3 -gdwarf-4 -fuse-ld=lld",
    "cxx-clang-split-4": "clang++ -O2 -gdwarf-4 -gsplit-dwarf",
    "cxx-clang-split-5": "clang++ -O2 -gdwarf-5 -gsplit-dwarf",
}

OTHERS = {
    "rust": "rustc -C opt-level=2 -g",
    "rust-v0": "rustc -C opt-level=3 -g -C symbol-mangling-version=v0 -C codegen-units=1",
    "go": "go build",
    "go-pie": "go build -buildmode=pie",
}


def run(command, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)
    if done.returncode:
        print(f"not built: {' '.join(command)[:100]}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return not done.returncode


def build(name, command):
    """The program's path, or None. Compiled in a directory of its own: .dwo files lie there."""
    directory = os.path.join(DIRECTORY, name)
    out = os.path.join(directory, name)
    if os.path.exists(out):
        return out
    if not shutil.which(command.split()[0]):
        return None
    os.makedirs(directory, exist_ok=True)
    if name in OTHERS:
        source = {"rustc": os.path.join(ROOT, "tests/e2e/programs/names.rs"),
                  "go": os.path.join(HERE, "programs/real.go")}[command.split()[0]]
        return out if run(command.split() + ["-o", out, source], cwd=directory) else None
    args = command.split() + ["-w", "-o", out]
    if name.startswith("cxx"):
        args += ["-std=gnu++17", os.path.join(HERE, "programs/real.cc")]
    else:
        args += ["-std=gnu17", "-D_GNU_SOURCE"] + [f"-I{ROOT}/{d}" for d in
                                                   ("include", "src", "bpf", "build/gen")]
        args += [os.path.join(HERE, "addresses.c")] + sources() + LIBRARIES + ["-pthread"]
    return out if run(args, cwd=directory) else None


def sources():
    found = []
    for d in ("base", "elf", "unwind", "symbol", "proc", "profile"):
        d = os.path.join(ROOT, "src", d)
        found += [os.path.join(d, f) for f in sorted(os.listdir(d)) if f.endswith(".c")]
    return found + [os.path.join(ROOT, "build/gen/profile.pb-c.c")]


def derive(name, source, *commands):
    """A copy of a program that was changed by commands; OUT stands for its path."""
    directory = os.path.join(DIRECTORY, name)
    out = os.path.join(directory, name)
    if not source:
        return None
    if not os.path.exists(out):
        os.makedirs(directory, exist_ok=True)
        shutil.copy(source, out)
        for c in commands:
            if not run([out if w == "OUT" else w for w in c.split()], cwd=directory):
                os.remove(out)
                return None
    return out


def dwp(name, source):
    """A program whose .dwo files were gathered in a .dwp and are gone."""
    out = derive(name, source)
    if not out:
        return None
    if not os.path.exists(out + ".dwp"):
        dwos = [f for f in os.listdir(os.path.dirname(source)) if f.endswith(".dwo")]
        if not run(["llvm-dwp", "-o", out + ".dwp"] + dwos, cwd=os.path.dirname(source)):
            return None
    return out


def dwz_multi(name, *sources):
    """A program that shares what dwz found in others, too, with them: .gnu_debugaltlink."""
    directory = os.path.join(DIRECTORY, name)
    out = os.path.join(directory, name)
    if None in sources:
        return None
    if not os.path.exists(out):
        os.makedirs(directory, exist_ok=True)
        copies = [out] + [os.path.join(directory, f"other-{i}") for i in range(1, len(sources))]
        for source, copy in zip(sources, copies):
            shutil.copy(source, copy)
        common = os.path.join(directory, "common")
        if not run(["dwz", "-m", common, "-M", common] + copies, cwd=directory):
            os.remove(out)
            return None
    return out


def make():
    made = {}
    for name, command in {**C, **CXX, **OTHERS}.items():
        made[name] = build(name, command)
    made["c-debuglink"] = derive("c-debuglink", made["c-gcc-5"],
                                 "objcopy --only-keep-debug OUT c-debuglink.debug",
                                 "objcopy --strip-all --add-gnu-debuglink=c-debuglink.debug OUT")
    # The peer can't read zstd: it is asked about a copy (compare.py).
    if made["c-gcc-zstd"]:
        derive("c-gcc-zstd.peer", made["c-gcc-zstd"], "objcopy --decompress-debug-sections OUT")
    made["c-dwz"] = derive("c-dwz", made["c-gcc-5"], "dwz OUT")
    made["cxx-dwz"] = derive("cxx-dwz", made["cxx-gcc-4"], "dwz OUT")
    made["cxx-dwp-4"] = dwp("cxx-dwp-4", made["cxx-gcc-split-4"])
    made["cxx-dwp-5"] = dwp("cxx-dwp-5", made["cxx-clang-split-5"])
    made["c-dwz-multi"] = dwz_multi("c-dwz-multi", made["c-gcc-5"], made["c-gcc-O0"])
    # The peer doesn't read .gnu_debugaltlink: it is asked about the program as it was before.
    derive("c-dwz-multi.peer", made["c-gcc-5"])
    made["c-stripped"] = derive("c-stripped", made["c-gcc-5"], "strip OUT")
    return [p for p in made.values() if p]
