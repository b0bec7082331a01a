"""make bench, names: what lines and inlined calls cost beside other symbolizers, on the same addresses.

    WICK=build/wick ADDRESSES=build/addresses python3 tests/bench/names.py [--quick]

Prints Markdown. COUNT random addresses of code in each of some files are named with all their inlined
calls by addresses (tests/names), which is wick's symbolizer and no more, and by those peers that
are installed. "All" is addresses a second of CPU time of a fresh process, opening the file included; "one" is the
time of a process that is asked for a single one. Memory is the process's largest resident set.

Then a recording as a whole, with wick's CPU from the start to named stacks and inlined calls in the file
against perf's, recording and perf script with its default inlining: under perl, python3, node, gcc -O2 and
a program with debug information. Needs root and perf.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import bench

NAMES = os.path.join(bench.HERE, "..", "names")
sys.path.insert(0, NAMES)
import builds  # noqa: E402
import compare  # noqa: E402
from elf import Elf  # noqa: E402

ADDRESSES = os.environ.get("ADDRESSES", os.path.join(os.path.dirname(bench.WICK), "addresses"))
COUNT, FEW = 10000, 500
SLOW = 2  # seconds for FEW addresses from which on a peer isn't asked for all

TOOLS = {
    "wick": [ADDRESSES],
    "llvm-symbolizer": ["llvm-symbolizer", "--inlines", "--no-demangle", "-e"],
    "addr2line": ["addr2line", "-i", "-f", "-e"],
    "eu-addr2line": ["eu-addr2line", "-i", "-f", "-e"],
}


def files():
    """What is measured: the file, and what it stands for."""
    found = {"C++, -O2 -g": builds.build("cxx-gcc-5", builds.CXX["cxx-gcc-5"]),
             "C, wick itself": bench.WICK,
             "Go": builds.build("go", builds.OTHERS["go"]),
             "libc.so.6, its debug package": "/lib/x86_64-linux-gnu/libc.so.6"}
    return {what: os.path.realpath(path) for what, path in found.items()
            if path and os.path.exists(path)}


def ask(command, path, addresses, directory):
    """(CPU seconds, MiB) for addresses on standard input."""
    question = os.path.join(directory, "addresses")
    with open(question, "w") as f:
        f.writelines(f"{a:#x}\n" for a in addresses)
    argv = " ".join([*command, path]) + f" < {question}"
    cpu, mib, _, _ = bench.run("sh", "-c", f"{argv} || :")  # eu-addr2line fails for addresses without lines
    return max(cpu, 1e-3), mib


def rates(command, path, addresses, directory):
    """(addresses a second, seconds for the first one, MiB); of FEW addresses for who is too slow for all."""
    one, _ = ask(command, path, addresses[:1], directory)
    few, mib = ask(command, path, addresses[:FEW], directory)
    if few > SLOW:
        return FEW / few, one, mib
    whole, mib = ask(command, path, addresses, directory)
    return len(addresses) / whole, one, mib


def print_rates(directory):
    print(f"Names, lines and inlined calls of {COUNT} random addresses:\n")
    print("| file | symbolizer | all, addresses/s | one, ms | resident, MiB | wick's rate |")
    print("|---|---|---|---|---|---|")
    for what, path in files().items():
        addresses = compare.random_addresses(Elf(path))
        ours = None
        for tool, command in TOOLS.items():
            if not shutil.which(command[0]):
                continue
            whole, one, mib = rates(command, path, addresses, directory)
            ours = ours or whole
            print(f"| {what} | {tool} | {whole:,.0f} | {one * 1e3:.0f} | {mib:.0f} | {ours / whole:.1f} x |",
                  flush=True)


def print_recording(seconds, directory):
    """A recording with inlined calls against perf's."""
    program = builds.build("cxx-gcc-5", builds.CXX["cxx-gcc-5"])
    with open(os.path.join(directory, "load.c"), "w") as f:
        f.write(bench.generated_c())
    loads = [argv for name, (needs, argv) in bench.LOADS.items()
             if name != "openssl" and shutil.which(needs)]
    if program:
        loads.append(["sh", "-c", f"while :; do {program}; done"])
    data, out = os.path.join(directory, "perf.data"), os.path.join(directory, "out.pb.gz")
    with bench.running(*loads, cwd=directory):
        argv = [bench.WICK, "record", "-q", "-a", "-F", str(bench.HZ), "-d", str(seconds), "-o", out]
        wick, _, _, _ = bench.run(*argv)
        no_lines, _, _, _ = bench.run(*argv, "--no-lines")
        perf, _, _, _ = bench.run("perf", "record", "-q", "-a", "-F", str(bench.HZ), "--call-graph", "dwarf",
                                  "-o", data, "--", "sleep", str(seconds))
    script, _, wall, _ = bench.run("perf", "script", "-i", data)
    with_none, _, _, _ = bench.run("perf", "script", "--no-inline", "-i", data)
    print(f"\nA recording of {seconds} s at {bench.HZ} Hz with its inlined calls, CPU seconds: wick {wick:.2f} "
          f"(without lines {no_lines:.2f}); "
          f"perf {perf + script:.2f} (without inlined calls {perf + with_none:.2f}); "
          f"wick / perf {wick / (perf + script):.3f}. perf script took {wall:.1f} s.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="look-ups only")
    parser.add_argument("--record", action="store_true", help="the recording only")
    args = parser.parse_args()
    if not os.path.exists(ADDRESSES):
        sys.exit(f"names.py: there is no {ADDRESSES}")
    with tempfile.TemporaryDirectory() as directory:
        if not args.record:
            print_rates(directory)
        if not args.quick and not os.geteuid() and shutil.which("perf"):
            print_recording(10, directory)


if __name__ == "__main__":
    main()
