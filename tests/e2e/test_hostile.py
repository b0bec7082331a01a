"""A container (runc) whose files, names and mappings are made to harm whoever looks at them.

hostile.c runs it all at once, beside a well-behaved program. In the end the host is unharmed: wick has ended in
time, within a fixed amount of memory, every tick is accounted for, the neighbour's names are right, and nothing of
a file of the host that the container's links point to is in the profile.
"""

import contextlib
import gzip
import json
import lzma
import os
import random
import shutil
import socket
import struct
import subprocess
import time
import zlib

import lib
import test_agent
from lib import check, expect_most, expect_share, expect_some, program, recording, under

SECRET = "host_secret_function"
DATA_MAX = 256 << 20  # bytes of memory that wick may have of its own
PAGE = 4096
USER = 200_000  # who root is on the host, in a user namespace
# What a label's value could break out of: pprof's text forms, /metrics, Pyroscope's names, a terminal.
CGROUP = 'wick-e2e"},a{b="c\\ ;\x1b[31m\u00e9'
LOOP = bytes([0xB9, 0x40, 0x0D, 0x03, 0x00, 0xFF, 0xC9, 0x75, 0xFC, 0xC3])
CODE = 0x7E0000000000  # as in hostile.c


class Elf:
    """A 64-bit ELF file in memory, to be spoilt (System V ABI, chapters 4 and 5)."""

    SECTION = "<IIQQQQIIQQ"  # sh_name type flags addr offset size link info addralign entsize

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = bytearray(f.read())
        self.shoff, self.shnum = self.u64(40), self.u16(60)
        names = self.section(self.u16(62))
        self.names = []
        for i in range(self.shnum):
            at = names[4] + self.section(i)[0]
            self.names.append(self.data[at : self.data.index(b"\0", at)].decode())

    def u64(self, at):
        return struct.unpack_from("<Q", self.data, at)[0]

    def u16(self, at):
        return struct.unpack_from("<H", self.data, at)[0]

    def section(self, i):
        return list(struct.unpack_from(self.SECTION, self.data, self.shoff + 64 * i))

    def change(self, name, **fields):
        i = self.names.index(name)
        s = self.section(i)
        for key, value in fields.items():
            s[["name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entsize"].index(key)] = value
        struct.pack_into(self.SECTION, self.data, self.shoff + 64 * i, *s)

    def get(self, name):
        return self.section(self.names.index(name))

    def put(self, fmt, at, value):
        struct.pack_into(fmt, self.data, at, value)

    def write(self, path, size=None):
        with open(path, "wb") as f:
            f.write(self.data)
            if size:
                f.truncate(size)
        os.chmod(path, 0o755)


def objcopy(*args):
    subprocess.run(["objcopy", *map(str, args)], check=True)


def make_programs(progs, secret):
    good = program("shares-static")
    shutil.copy(good, os.path.join(progs, "neighbour"))

    def spoilt(name, size=None):
        e = Elf(good)
        yield e
        e.write(os.path.join(progs, name), size)

    for e in spoilt("shoff"):
        e.put("<Q", 40, 1 << 63)
    for e in spoilt("shnum"):
        e.put("<H", 60, 0xFFFF)
    for e in spoilt("symsize"):
        e.change(".symtab", size=(1 << 62) // 24 * 24)
    for e in spoilt("symlink"):
        e.change(".symtab", link=0xFFFFFFFF)
    for e in spoilt("entsize"):
        e.change(".symtab", entsize=0)
        e.change(".eh_frame", size=1 << 62)
    for e in spoilt("names"):
        symtab = e.get(".symtab")
        for at in range(symtab[4], symtab[4] + symtab[5], 24):
            e.put("<I", at, 0xFFFFFFF0)
    for e in spoilt("billion", size=1 << 40):  # 40 billion symbols, in a hole of the file
        e.change(".symtab", offset=1 << 30, size=((1 << 40) - (1 << 30)) // 24 * 24)
    for e in spoilt("frames"):
        s = e.get(".eh_frame")
        e.data[s[4] + 64 : s[4] + s[5]] = random.Random(7).randbytes(s[5] - 64)
    for e in spoilt("random"):
        end = max(s[4] + s[5] for s in map(e.section, range(e.shnum)) if s[2] & 2 and s[1] != 8)
        e.data[end:] = random.Random(8).randbytes(len(e.data) - end)
    for e in spoilt("zbomb"):  # Elf64_Chdr: 200 MB, said to be a terabyte
        bomb = struct.pack("<IIQQ", 1, 0, 1 << 40, 1) + zlib.compress(bytes(200 << 20), 9)
        e.change(".debug_info", flags=0x800, offset=len(e.data), size=len(bomb))
        e.data += bomb
    for e in spoilt("zstdbomb"):  # RFC 8878, 3.1.1: one window of 128 KiB, 1,600 blocks of one byte repeated
        frame = bytes.fromhex("28b52ffd0038") + 1600 * (struct.pack("<I", 1 << 1 | 1 << 17 << 3)[:3] + b"\0")
        bomb = struct.pack("<IIQQ", 2, 0, 1 << 40, 1) + frame
        e.change(".debug_line", flags=0x800, offset=len(e.data), size=len(bomb))
        e.data += bomb
    with open("bomb.xz", "wb") as f:
        packer = lzma.LZMACompressor(preset=0)
        for _ in range(64):
            f.write(packer.compress(bytes(4 << 20)))
        f.write(packer.flush())
    with open("altlink", "wb") as f:
        f.write(b"/proc/self/mem\0" + bytes(20))
    objcopy("--strip-all", "--add-section", ".gnu_debugdata=bomb.xz", good, os.path.join(progs, "xzbomb"))
    objcopy("--add-section", ".gnu_debugaltlink=altlink", good, os.path.join(progs, "altlink"))
    for name in ("/proc/self/mem", "../../proc/self/mem", "../../../../dev/zero", "a" * 5000):
        with open("link", "wb") as f:
            f.write(name.encode().ljust((len(name) + 4) & ~3, b"\0") + bytes(4))
        to = os.path.join(progs, "link" + str(len(name)))
        objcopy("--strip-all", "--add-section", ".gnu_debuglink=link", good, to)
    # Its debug file is to be had on the host only: through links that lead out of the container.
    objcopy("--only-keep-debug", f"--redefine-sym=hot_a={SECRET}", good, secret)
    objcopy("--strip-all", f"--add-gnu-debuglink={secret}", good, os.path.join(progs, "linked"))


def build_id(path):
    said = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return said.split("Build ID: ")[1].split()[0] if "Build ID: " in said else ""


def make_debug_traps(root, secret):
    """All the places where the debug file of /progs/linked may lie."""
    name = os.path.basename(secret)
    os.makedirs(f"{root}/progs/.debug")
    os.symlink(secret, f"{root}/progs/{name}.absolute")
    os.symlink(secret, f"{root}/progs/.debug/{name}")
    os.makedirs(f"{root}/usr/lib/debug/progs")
    os.symlink("../" * 20 + secret.lstrip("/"), f"{root}/usr/lib/debug/progs/{name}")
    identity = build_id(os.path.join(root, "progs", "linked"))
    if identity:
        os.makedirs(f"{root}/usr/lib/debug/.build-id/{identity[:2]}")
        os.symlink(secret, f"{root}/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug")


def make_maps(maps):
    page = LOOP.ljust(PAGE, b"\xcc")
    foreign = bytearray(b"\x7fELF" + bytes([2, 2, 1]) + bytes(9) + struct.pack(">HHI", 3, 183, 1)).ljust(PAGE, b"\1")
    files = {
        "foreign": bytes(foreign) + page,
        "thirtytwo": (b"\x7fELF" + bytes([1, 1, 1]) + bytes(9) + struct.pack("<HHI", 3, 3, 1)).ljust(PAGE, b"\2") + page,
        "junk": random.Random(9).randbytes(PAGE) + page,
        "cut": bytes(PAGE) + page * 4,
        "rewritten": bytes(PAGE) + page,
        "terabyte": (b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack("<HHI", 3, 62, 1)).ljust(PAGE, b"\3") + page,
        "new\nline;[31m": bytes(PAGE) + page,
        "[vdso]": bytes(PAGE) + page,
        "[heap]": bytes(PAGE) + page,
        "x (deleted)": bytes(PAGE) + page,
        "anon": bytes(PAGE) + page,
    }
    for name, data in files.items():
        with open(os.path.join(maps, name), "wb") as f:
            f.write(data)
            if name == "terabyte":
                f.truncate(1 << 40)


def make_traps(traps, secret_map):
    os.mkfifo(f"{traps}/fifo")
    s = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(traps)  # the path of a socket is short
    s.bind("socket")
    os.chdir(here)
    s.close()
    with contextlib.suppress(OSError):
        os.mknod(f"{traps}/zero", 0o20666, os.makedev(1, 5))
    os.symlink(secret_map, f"{traps}/outside")
    os.symlink("../" * 20 + secret_map.lstrip("/"), f"{traps}/upwards")
    os.symlink("/traps/circle", f"{traps}/circle")
    os.symlink("/proc/self/mem", f"{traps}/memory")
    os.symlink("/progs", f"{traps}/directory")
    with open(f"{traps}/honest", "w") as f:
        f.write(f"{CODE:x} 100 honest_function\n")
    with open(f"{traps}/sparse", "wb") as f:
        f.write(b"%x 100 first_of_many\n" % CODE)
        f.truncate(1 << 40)
    with open(f"{traps}/lines", "wb") as f:
        for _ in range(100):
            f.write(b"1000 10 a\n" * 100_000)
    with open(f"{traps}/oneline", "wb") as f:
        f.write(b"%x 100 " % CODE + b"x" * (32 << 20))
    with open(f"{traps}/control", "wb") as f:
        f.write(b"%x 100 \x1b[31mred\xff\xfe\x00;x\n" % CODE)


def own(path, uid):
    for directory, names, files in os.walk(path):
        for name in [".", *names, *files]:
            os.chown(os.path.join(directory, name), uid, uid, follow_symlinks=False)


def make_bundle(seconds, user=False, cgroup=None):
    """Each process gets so many seconds of CPU time. user: in a user namespace."""
    lib.need("runc", "objcopy", "readelf")
    secret, secret_map = os.path.abspath("host/linked.debug"), os.path.abspath("host/map")
    root = os.path.abspath("bundle/rootfs")
    for name in ("progs", "maps", "traps", "tmp", "proc", "dev", "sys"):
        os.makedirs(os.path.join(root, name))
    os.mkdir("host")
    with open(secret_map, "w") as f:
        f.write(f"{CODE:x} 1000 {SECRET}\n")
    shutil.copy(program("hostile"), os.path.join(root, "hostile"))
    make_programs(os.path.join(root, "progs"), secret)
    make_debug_traps(root, secret)
    make_maps(os.path.join(root, "maps"))
    make_traps(os.path.join(root, "traps"), secret_map)
    subprocess.run(["runc", "spec"], cwd="bundle", check=True)
    with open("bundle/config.json", encoding="utf-8") as f:
        spec = json.load(f)
    spec["process"].update(args=["/hostile", str(seconds)], terminal=False, rlimits=[])
    spec["root"]["readonly"] = False
    if user:
        own("bundle/rootfs", USER)
        os.chmod(".", 0o755)
        spec["linux"]["namespaces"].append({"type": "user"})
        for kind in ("uidMappings", "gidMappings"):
            spec["linux"][kind] = [{"containerID": 0, "hostID": USER, "size": 65536}]
    if cgroup:
        spec["linux"]["cgroupsPath"] = cgroup
    with open("bundle/config.json", "w", encoding="utf-8") as f:
        json.dump(spec, f)


def run_container():
    name = f"wick-e2e-hostile-{os.getpid()}"
    with subprocess.Popen(["runc", "run", "-b", "bundle", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
        try:
            said = p.communicate(timeout=120)[1].decode(errors="replace")
            check(p.returncode == 0, f"runc exits {p.returncode}:{lib.shown(said)}")
        finally:
            subprocess.run(["runc", "delete", "-f", name], capture_output=True)


def seen(samples):
    return {s.labels["comm"] for s in samples}


@lib.each("root", "user")
def test_hostile_container(whose):
    """One recording of it all."""
    make_bundle(0.3, user=whose == "user")
    with recording(prefix=["prlimit", f"--data={DATA_MAX}"]) as process:
        run_container()
        begun = time.monotonic()
    took = time.monotonic() - begun
    r = process.recording
    check(took < 30, f"{took:.0f} s after the end of the recording{lib.shown(r.stderr)}")
    with gzip.open(r.path) as f:
        raw = f.read()
    check(SECRET.encode() not in raw and SECRET not in r.stderr, "a file of the host was read through a container's link")
    check("\x1b" not in r.stderr and b"\x1b[31mred" not in r.stdout, f"control characters:{lib.shown(r.stderr)}")
    mine = lambda s: s.labels["comm"] == "neighbour"  # noqa: E731
    expect_share(r, under("hot_a"), 0.75, among=lambda s: mine(s) and under("round_of_both")(s), at_least=60)
    wanted = {"shoff", "shnum", "symsize", "symlink", "entsize", "names", "billion", "frames", "random", "zbomb",
              "xzbomb", "altlink", "linked", "foreign", "thirtytwo", "junk", "cut", "rewritten", "terabyte", "fifo",
              "socket", "outside", "upwards", "circle", "memory", "directory", "sparse", "lines", "oneline", "control",
              "mappings", "endless", "mover", "zstdbomb", "link14", "link19", "link5000", "deep", "[vdso]", "x (deleted)"}
    missing = wanted - seen(r.profile.samples)
    check(not missing, f"not sampled: {missing}; seen {seen(r.profile.samples)}")
    expect_some(r, lambda s: s.labels["comm"] == "mover" and under("round_of_both")(s))
    expect_most(r, lambda s: s.frames[0].name == "honest_function", lambda s: s.labels["comm"] == "honest", at_least=40)


def test_hostile_container_and_the_agent():
    """Windows go on coming."""
    make_bundle(0.1, cgroup=f"/{CGROUP}-{os.getpid()}")
    with test_agent.agent("--push", f"file://{os.path.abspath('out')}", "--lines", window="1s", freq=199) as a:
        run_container()
        built = a.metrics()["wick_built_windows_total"]
        a.wait_metric("wick_built_windows_total", built + 3)
        m = a.metrics()
        test_agent.check_ticks(m)
        check(m["process_resident_memory_bytes"] < DATA_MAX, m["process_resident_memory_bytes"])
        text = a.get("/metrics")[2].decode()
        check("\x1b" not in text and 'b="c' not in text, "a cgroup's name is in the metrics as it is")
    for path, _, names in os.walk("out"):
        for name in names:
            with gzip.open(os.path.join(path, name)) as f:
                check(SECRET.encode() not in f.read(), f"{name} has what only the host knows")

