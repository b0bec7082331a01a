"""Runtimes that make code: what must be switched on, and that names and callers are then right.

Each runs outer -> middle -> inner, a loop that adds up, as people write it in that language. node and java are
in test_jit.py.
"""

import contextlib
import glob
import os
import struct
import subprocess
import sys
import tarfile
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


# ---- .NET, Mono ----

CSHARP = """
using System; using System.Collections.Generic; using System.Runtime.CompilerServices;
class Work {
  [MethodImpl(MethodImplOptions.NoInlining)]
  static long Inner(int n) { long s = 0; for (int i = 0; i < n; i++) s += (i * 7) & 255; return s; }
  [MethodImpl(MethodImplOptions.NoInlining)] static long Middle(int n) { return Inner(n) + 1; }
  [MethodImpl(MethodImplOptions.NoInlining)] static long Outer(int n) { return Middle(n) + 1; }
  static int Main() {
    int end = Environment.TickCount + 60000; long x = Outer(1);
    LISTED
    while (Environment.TickCount < end) x += Outer(20000);
    return (int)(x & 1);
  }
}
"""
# Mono writes its list when 4 KiB are full: this makes it compile as much.
COMPILES = """
    var d = new Dictionary<string, double>(); var l = new List<float>(); var q = new Queue<short>();
    d["a"] = double.Parse("1.5"); l.Add((float)d["a"]); q.Enqueue((short)l[0]); l.Sort();
    x += string.Format("{0:x} {1} {2}", d.Count, l[0], q.Dequeue()).Length + DateTime.Now.ToString().Length;
"""
CHAIN = ("Main", "Outer", "Middle", "Inner")


def compiled_csharp(path, *flags, listed=""):
    lib.need("mcs")
    with open("work.cs", "w") as f:
        f.write(CSHARP.replace("LISTED", listed))
    subprocess.run(["mcs", *flags, "work.cs", f"-out:{path}"], check=True)


@contextlib.contextmanager
def warm(*argv, env=None, seconds=1):
    """A program that has worked for a while: its runtime has compiled its loops for good."""
    pairs = [f"{k}={v}" for k, v in (env or {}).items()]
    with lib.running("env", *pairs, *argv) as p:
        try:
            lib.let_work(p.pid, seconds=seconds)
            yield p
        finally:
            for path in glob.glob(f"/tmp/perf*-{p.pid}.map") + glob.glob(f"/tmp/jit-{p.pid}.dump"):
                os.unlink(path)


def test_mono():
    """--jitmap is a perf map. No function keeps a frame pointer, so that its callers are found by rows made of
    its code."""
    lib.need("mono")
    compiled_csharp("work.exe", listed=COMPILES)
    with warm("mono", "--jitmap", "work.exe") as p:
        r = lib.record_work("-p", p.pid, of=[p], seconds=1.5)
    chain = has("_start", "mono_main", *(f"Work:{name}" for name in CHAIN))
    expect_most(r, chain, among=leaf("Work:Inner"), share=0.8)  # rows are there after a tenth of a second


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


def expect_dotnet(*command, root, **switches):
    """Optimized methods keep no frame pointer if they can do without."""
    with warm(*command, env={**switches, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}) as p:
        r = lib.record_work("-p", p.pid, of=[p], seconds=1.5)
    optimized = lambda s: "Work::Inner(int32)[Optimized" in (s.frames[0].name or "")  # noqa: E731
    chain = has(*root, *(f"Work::{name}" for name in CHAIN))
    expect_most(r, chain, among=optimized, share=0.8)  # rows are there after a tenth of a second


def test_dotnet_3():
    """COMPlus_PerfMapEnabled=1."""
    program = dotnet()
    compiled_csharp("work.dll")
    with open("work.runtimeconfig.json", "w") as f:
        f.write('{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"}}}')
    expect_dotnet(program, "work.dll", root=["coreclr_execute_assembly"], COMPlus_PerfMapEnabled="1")


# Start of the header of a single-file program (bundle_marker.cpp of dotnet/runtime), eight bytes after its place.
BUNDLE = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
SINGLE_FILE = ("@azure/mcp-template-linux-x64", "0.0.12-alpha.6621500")


def bundled(program, name):
    """Place and size of a file in a single-file program (bundle/header.h, file_entry.h)."""
    (at,) = struct.unpack_from("<q", program, program.index(BUNDLE) - 8)
    major, _, n = struct.unpack_from("<IIi", program, at)
    at += 12
    lib.check(major == 6, f"bundles of version {major}")

    def text():
        nonlocal at
        size = program[at]
        at += 1
        if size & 0x80:
            size |= (program[at] << 7) - 0x80
            at += 1
        at += size
        return bytes(program[at - size : at]).decode()

    text()
    at += 40
    for _ in range(n):
        offset, size, _packed, _kind = struct.unpack_from("<qqqB", program, at)
        at += 25
        if text() == name:
            return offset, size
    raise AssertionError(f"no {name} in the bundle")


def dotnet_10():
    """No registry here has a newer runtime but inside of single-file programs: one whose main assembly is
    another's place to be."""
    lib.need("npm")
    package, version = SINGLE_FILE
    archived = os.path.join(CACHE, f"{package[1:].replace('/', '-')}-{version}.tgz")
    if not os.path.exists(archived):
        os.makedirs(CACHE, exist_ok=True)
        try:
            archive.run(["npm", "pack", "--silent", "--pack-destination", CACHE, f"{package}@{version}"], 120)
        except archive.Unavailable as why:
            raise Skip(f"no .NET 10 runtime can be had: {why}") from why
    with tarfile.open(archived) as f:
        return bytearray(f.extractfile("package/dist/mcptmp").read())


def test_dotnet_10():
    """DOTNET_PerfMapEnabled=1, a single-file program."""
    reference = glob.glob(os.path.join(os.path.dirname(dotnet()), "shared", "*", "*", "System.Private.CoreLib.dll"))
    program = dotnet_10()
    compiled_csharp("mcptmp.dll", "-nostdlib", "-noconfig", f"-r:{reference[0]}")
    at, size = bundled(program, "mcptmp.dll")
    with open("mcptmp.dll", "rb") as f:
        program[at : at + size] = f.read().ljust(size, b"\0")
    with open("mcptmp", "wb") as f:
        f.write(program)
    os.chmod("mcptmp", 0o755)
    expect_dotnet("./mcptmp", root=["__libc_start_main"], DOTNET_PerfMapEnabled="1")


# ---- Java ----

JAVA = """
public class Chain {
    static long inner(int n, long x) { long s = 0; for (int i = 0; i < n; i++) s += x * i ^ (s >> 3); return s; }
    static long middle(int n, long x) { return inner(n, x) + inner(n + 1, x); }
    static long outer(int n, long x) { return middle(n, x) + 1; }
    public static void main(String[] a) {
        long end = System.nanoTime() + 60_000_000_000L, s = 0;
        while (System.nanoTime() < end) s += outer(3000, s);
        System.out.println(s);
    }
}
"""


def test_java_without_frame_pointers():
    """As everybody runs it: rows are made of what the machine lists, once it has been asked."""
    lib.need("java", "javac")
    with open("Chain.java", "w") as f:
        f.write(JAVA)
    subprocess.run(["javac", "Chain.java"], check=True)
    flags = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::*"]
    with warm("java", *flags, "-cp", ".", "Chain", seconds=2) as p:
        lib.record_work("-p", p.pid, "--java-perfmap", of=[p], seconds=0.5, output="first.pb.gz")
        r = lib.record_work("-p", p.pid, of=[p], seconds=1.5)
    chain = has("start_thread", "JavaMain", "Chain.main", "Chain.outer", "Chain.middle", "Chain.inner")
    expect_most(r, chain, among=leaf("Chain.inner"), share=0.8)


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
