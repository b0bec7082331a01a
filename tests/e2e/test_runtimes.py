"""Runtimes that make code: what must be switched on, and that names and callers are then right.

Each runs outer -> middle -> inner, a loop that adds up, as people write it in that language. node and java are
in test_jit.py.
"""

import contextlib
import glob
import os
import subprocess
import sys
import zipfile

import build
import lib
from lib import Skip, expect_most, expect_some, record
from test_jit import recorded

sys.path.insert(0, os.path.join(build.ROOT, "tests", "kernels"))

import archive  # noqa: E402

CACHE = os.path.join(build.OUTPUT, "runtimes")


def has(*names):
    """Samples with these frames on the stack, one calling the next; other frames may lie between."""

    def which(s):
        frames = iter(reversed([f.name or "" for f in s.frames]))  # root first
        return all(any(name in f for f in frames) for name in names)

    return which


def leaf(name):
    return lambda s: name in (s.frames[0].name or "")


# ---- PHP ----

PHP = """<?php
function inner($n) { $s = 0; for ($i = 0; $i < $n; $i++) { $s += ($i * 7) & 255; } return $s; }
function middle($n) { return inner($n) + 1; }
function outer($n) { return middle($n) + 1; }
$end = microtime(true) + (float)$argv[1]; $x = 0;
while (microtime(true) < $end) $x += outer(20000);
"""


def test_php():
    """opcache.jit_debug=0x10 is a perf map. The code lies in shared anonymous memory, and keeps no frame
    pointer: the function is all that can be known."""
    lib.need("php")
    with open("work.php", "w") as f:
        f.write(PHP)
    flags = [f"-dopcache.{f}" for f in ("enable_cli=1", "file_update_protection=0", "jit_buffer_size=64M", "jit=function",
                                       "jit_debug=0x10")]
    if "opcache" not in subprocess.run(["php", *flags, "-v"], capture_output=True, text=True).stdout.lower():
        raise Skip("php has no opcache here")
    with recorded(command=["php", *flags, "work.php", "1.5"], comm="php") as r:
        expect_most(r, leaf("JIT$inner"), among=lambda s: s.labels["comm"] == "php", share=0.9)


# ---- Erlang ----

ERLANG = """
-module(work).
-export([main/1]).
inner(0, S) -> S;
inner(N, S) -> inner(N - 1, (S + N * 7) band 65535).
middle(N) -> inner(N, 1) + 1.
outer(N) -> middle(N) + 1.
loop(End, S) ->
    case erlang:monotonic_time(millisecond) < End of true -> loop(End, S + outer(20000)); false -> S end.
main([A]) -> loop(erlang:monotonic_time(millisecond) + list_to_integer(atom_to_list(A)), 0), halt(0).
"""


def test_erlang():
    """+JPperf true: a perf map, and frame pointers on Erlang's own stack, which ends with the process."""
    lib.need("erl", "erlc")
    with open("work.erl", "w") as f:
        f.write(ERLANG)
    subprocess.run(["erlc", "work.erl"], check=True)
    flags = ["+JPperf", "true", "-noshell", "-s", "work", "main", "1500"]
    said = subprocess.run(["erl", "+JPperf", "true", "-noshell", "-s", "init", "stop"], capture_output=True, text=True)
    if said.returncode:
        raise Skip(f"this Erlang has no JIT: {said.stderr.strip()[:100]}")
    r = record(command=["erl", *flags])
    try:
        expect_most(r, has("work:main/1", "work:loop/2", "work:outer/1", "work:middle/1"), among=leaf("work:inner/2"))
        rooted = lambda s: not any((f.name or "").startswith("[truncated") for f in s.frames)  # noqa: E731
        expect_most(r, rooted, among=leaf("work:inner/2"))
    finally:
        forget_maps(r)


def forget_maps(r):
    for pid in {s.labels["pid"] for s in r.profile.samples}:
        for path in glob.glob(f"/tmp/perf*-{pid}.map") + glob.glob(f"/tmp/jit-{pid}.dump"):
            os.unlink(path)


# ---- .NET ----

CSHARP = """
using System; using System.Diagnostics; using System.Runtime.CompilerServices;
class Work {
  [MethodImpl(MethodImplOptions.NoInlining)]
  static long Inner(int n) { long s = 0; for (int i = 0; i < n; i++) s += (i * 7) & 255; return s; }
  [MethodImpl(MethodImplOptions.NoInlining)] static long Middle(int n) { return Inner(n) + 1; }
  static void Main(string[] a) {
    var w = Stopwatch.StartNew(); long x = 0;
    while (w.ElapsedMilliseconds < int.Parse(a[0])) x += Middle(20000);
  }
}
"""


def compiled_csharp(path):
    lib.need("mcs")
    with open("work.cs", "w") as f:
        f.write(CSHARP)
    subprocess.run(["mcs", "work.cs", f"-out:{path}"], check=True)


def test_mono():
    """--jitmap is a perf map. Callers that keep no frame pointer are missing between."""
    lib.need("mono")
    compiled_csharp("work.exe")
    with recorded(command=["mono", "--jitmap", "work.exe", "1500"], comm="mono") as r:
        expect_some(r, leaf("Work:Inner"), at_least=100)
        expect_most(r, has("_start", "mono_main", "Work:Inner"), among=leaf("Work:Inner"))


def dotnet():
    """.NET isn't in Debian; this wheel holds a whole runtime."""
    root = os.path.join(CACHE, "dotnet")
    program = os.path.join(root, "dotnetcore2", "bin", "dotnet")
    if not os.path.exists(program):
        os.makedirs(CACHE, exist_ok=True)
        try:
            archive.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", CACHE, "dotnetcore2==3.1.23"], 120)
        except archive.Unavailable as why:
            raise Skip(f"no .NET runtime can be had: {why}") from why
        with zipfile.ZipFile(glob.glob(os.path.join(CACHE, "dotnetcore2-*.whl"))[0]) as wheel:
            wheel.extractall(root)
        os.chmod(program, 0o755)
    return program


def test_dotnet():
    """DOTNET_PerfMapEnabled=1 (COMPlus_ before .NET 6). As with Mono, optimized code may hide its caller."""
    program = dotnet()
    compiled_csharp("work.dll")
    with open("work.runtimeconfig.json", "w") as f:
        f.write('{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"}}}')
    switches = {"COMPlus_PerfMapEnabled": "1", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    command = ["env", *(f"{k}={v}" for k, v in switches.items()), program, "work.dll", "1500"]
    r = record(command=command)
    try:
        expect_some(r, leaf("Work::Inner"), at_least=100)
        chain = has("coreclr_execute_assembly", "Work::Middle", "Work::Inner")
        expect_most(r, chain, among=leaf("Work::Inner"))
    finally:
        forget_maps(r)


# ---- Python ----

PYTHON = """
import sys, time
def inner(n):
    s = 0
    for i in range(n): s += i * 7 & 255
    return s
def middle(n): return inner(n) + 1
def outer(n): return middle(n) + 1
end = time.time() + float(sys.argv[1]); x = 0
while time.time() < end: x += outer(20000)
"""


def trixie():
    """A directory with Debian 13's Python and what it needs, fetched once."""
    root = os.path.join(CACHE, "trixie")
    if not os.path.exists(os.path.join(root, "usr/bin/python3.13")):
        wanted = ["python3.13-minimal", "libpython3.13-minimal", "libpython3.13-stdlib"]
        try:
            archive.Archive(os.path.join(CACHE, "apt"), ["trixie"]).unpack(wanted, root)
        except archive.Unavailable as why:
            raise Skip(f"no Python of Debian 13: {why}") from why
        for name in ("bin", "lib", "lib64"):
            with contextlib.suppress(FileExistsError):
                os.symlink(f"usr/{name}", os.path.join(root, name))
        os.makedirs(os.path.join(root, "tmp"), exist_ok=True)
    return root


@lib.each("perf", "perf_jit")
def test_python(way):
    """Debian's own build, which keeps no frame pointers, in a root of its own: its functions between those of
    the interpreter, all the way down. perf_jit writes a jitdump."""
    lib.need("chroot")
    root = trixie()
    with open(os.path.join(root, "tmp", "work.py"), "w") as f:
        f.write(PYTHON)
    made = [os.path.join(root, "tmp", n) for n in os.listdir(os.path.join(root, "tmp"))]
    r = record(command=["chroot", root, "/usr/bin/python3.13", "-X", way, "/tmp/work.py", "1.5"])
    for path in made + glob.glob(os.path.join(root, "tmp", "*.map")) + glob.glob(os.path.join(root, "tmp", "*.dump")):
        with contextlib.suppress(OSError):
            os.unlink(path)
    at_work = has("py::inner:/tmp/work.py")
    expect_some(r, at_work, at_least=100)
    chain = has("_start", "Py_BytesMain", "py::<module>:/tmp/work.py", "py::outer:/tmp/work.py",
                "py::middle:/tmp/work.py", "py::inner:/tmp/work.py")
    expect_most(r, chain, among=at_work, share=0.9)  # a copied stack ends at the first such function
