"""Compares wick's stacks with libdwfl's over real programs and prints a Markdown table.

    GROUND_TRUTH=build/ground_truth python3 tests/unwind/ground_truth.py [-k SUBSTRING]... [-v]

As root. Each workload runs for SECONDS under tests/unwind/ground_truth.c, which explains the columns. A
workload passes if at least AGREE of its stacks agree with libdwfl's and ROOTED of its user samples end
at an outermost frame, both over STACKS_MIN stacks or more. One whose programs aren't installed is
skipped. The last line is "N passed, N failed, N skipped"; exit status 1 if one failed.
"""

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOOL = os.path.abspath(os.environ.get("GROUND_TRUTH", os.path.join(ROOT, "build", "ground_truth")))
PROGRAMS = os.path.join(HERE, "programs")

SECONDS = 4
FREQ = 997
AGREE, ROOTED = 0.999, 0.995
STACKS_MIN = 200
PORT = 18273

WORKLOADS = []


class Skip(Exception):
    pass


def workload(name):
    """Decorates a function of a work directory that returns the command, or a context that yields it."""

    def decorate(function):
        WORKLOADS.append((name, function))
        return function

    return decorate


def need(*programs):
    for name in programs:
        if not shutil.which(name):
            raise Skip(f"{name} is not installed")


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def run(*command, cwd=None, env=None):
    r = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"{' '.join(command)}: {r.stderr.strip()}")


def source(name):
    return os.path.join(PROGRAMS, name)


def built(directory, name, *flags, compiler="gcc", libs=("-lm",)):
    """The command that runs a program of PROGRAMS for SECONDS."""
    need(compiler)
    out = os.path.join(directory, os.path.splitext(name)[0])
    run(compiler, "-O2", "-g", *flags, "-o", out, source(name), *libs)
    return [out, str(SECONDS)]


def system_binary(name):
    """Not a version manager's shim, which would be a shell script."""
    path = os.path.join("/usr/bin", name)
    if not os.path.exists(path):
        raise Skip(f"{path} is not installed")
    return path


# ---- interpreters and tools ----

PYTHON = """
import json, re, time
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
end = time.time() + %d
data = {str(i): list(range(i %% 20)) for i in range(300)}
while time.time() < end:
    fibonacci(18)
    json.loads(json.dumps(data))
    sorted(data, key=lambda k: len(data[k]))
    re.findall(r"(a+)+b?", "aaaaaaaaaaaaaa" * 20)
"""


@workload("python3")
def python3(directory):
    return [system_binary("python3"), write(directory, "w.py", PYTHON % SECONDS)]


PERL = """
my $end = time + %d;
sub f { my $n = shift; return $n < 2 ? $n : f($n - 1) + f($n - 2) }
while (time < $end) {
    f(18);
    my %%h = map { $_ => $_ * 7919 %% 101 } 1 .. 500;
    my @k = sort { $h{$a} <=> $h{$b} || "$a" cmp "$b" } keys %%h;
    (join ",", @k) =~ s/(\\d+),(\\d+)/$2;$1/gr;
}
"""


@workload("perl")
def perl(directory):
    return [system_binary("perl"), write(directory, "w.pl", PERL % SECONDS)]


@workload("bash, deep recursion")
def bash(directory):
    text = f"""
f() {{ local n=$1; if ((n > 0)); then f $((n - 1)); else local i; for ((i = 0; i < 300; i++)); do :; done; fi; }}
end=$((SECONDS + {SECONDS}))
while ((SECONDS < end)); do f 40; done
"""
    return [system_binary("bash"), write(directory, "w.sh", text)]


@workload("cc1")
def cc1(directory):
    need("gcc")
    body = "".join(
        f"int f{i}(int *a, int n) {{ int s = {i}; for (int j = 0; j < n; j++) switch (a[j] % 7) {{"
        f" case 0: s += a[j]; break; case 1: s ^= f{i}(a + 1, n - 1); break; case 2: a[j] = s * {i + 3};"
        f" default: s += a[(j * {i + 1}) % n]; }} return s; }}\n"
        for i in range(400)
    )
    path = write(directory, "w.c", body)
    line = f"end=$(($(date +%s) + {SECONDS})); while [ $(date +%s) -lt $end ]; do gcc -O2 -g -S -o /dev/null {path}; done"
    return ["/bin/sh", "-c", line]


def openssl(algorithm):
    return [system_binary("openssl"), "speed", "-seconds", "1", *algorithm]


@workload("openssl speed rsa2048")
def openssl_rsa(directory):
    return openssl(["rsa2048"])


@workload("openssl speed ecdsap256")
def openssl_ecdsa(directory):
    return openssl(["ecdsap256"])


@workload("openssl speed sha1 sha256 sha512")
def openssl_sha(directory):
    return ["/bin/sh", "-c", f"for a in sha1 sha256 sha512; do {system_binary('openssl')} speed -seconds 1 -bytes 8192 $a; done"]


@workload("openssl speed: aes-gcm, chacha20-poly1305, aes-cbc-hmac")
def openssl_ciphers(directory):
    algorithms = "aes-256-gcm chacha20-poly1305 aes-128-cbc-hmac-sha256 camellia-128-cbc"
    return [
        "/bin/sh",
        "-c",
        f"for a in {algorithms}; do {system_binary('openssl')} speed -seconds 1 -bytes 8192 -evp $a; done",
    ]


@workload("sqlite3")
def sqlite3(directory):
    sql = """
with recursive c(x) as (select 1 union all select x + 1 from c where x < 60000)
  select count(*), max(y) from (select x % 977 as k, group_concat(printf('%05d', x)) as y from c group by k order by y);
create table t(a integer primary key, b text);
insert into t with recursive c(x) as (select 1 union all select x + 1 from c where x < 60000)
  select x, hex(x * 7919 % 60013) from c;
create index i on t(b);
select sum(length(b)) from t join (select b as k from t where a % 3 = 0) on t.b = k where t.b like '%3%';
drop table t;
"""
    return [
        "/bin/sh",
        "-c",
        f"exec timeout {SECONDS} {system_binary('sqlite3')} :memory: < {write(directory, 'w.sql', sql * 40)} > /dev/null",
    ]


@workload("nginx under load")
@contextlib.contextmanager
def nginx(directory):
    need("nginx")
    write(directory, "page.html", "<p>" + "some text that compresses. " * 2000)
    conf = write(
        directory,
        "nginx.conf",
        f"daemon off; worker_processes 1; user root; pid {directory}/pid; error_log {directory}/error;\n"
        f"events {{}}\nhttp {{ access_log {directory}/access; gzip on; gzip_types text/html;\n"
        f"keepalive_requests 100000; server {{ listen 127.0.0.1:{PORT}; root {directory};\n"
        "location /again { rewrite ^/again(.*)$ /$1 break; } } }\n",
    )
    stop = threading.Event()

    def client():
        requests = b"".join(
            b"GET %s HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n" % p
            for p in (b"/page.html", b"/again/page.html", b"/missing")
        )
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), 1) as s:
                s.settimeout(0.2)
                while not stop.is_set():
                    s.sendall(requests)
                    s.recv(1 << 20)
            stop.wait(0.05)

    threads = [threading.Thread(target=client, daemon=True) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        yield ["timeout", str(SECONDS + 1), shutil.which("nginx"), "-c", conf, "-e", f"{directory}/error"]
    finally:
        stop.set()
        for t in threads:
            t.join()


# ---- runtimes ----

NODE = """
const end = Date.now() + %d000;
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2) }
const data = Object.fromEntries([...Array(300).keys()].map((i) => [i, [...Array(i %% 20).keys()]]));
while (Date.now() < end) {
  fibonacci(18);
  JSON.parse(JSON.stringify(data));
  Object.keys(data).sort((a, b) => data[a].length - data[b].length || (a < b ? -1 : 1));
  "aaaa,bbb,cc".repeat(50).split(",").map((s) => s.toUpperCase().replace(/(A+)|B/g, "x"));
}
"""


@workload("node")
def node(directory):
    return [system_binary("node"), write(directory, "w.js", NODE % SECONDS)]


def java_command(directory, *flags):
    need("java", "javac")
    run("javac", "-d", directory, source("Calls.java"))
    return [shutil.which("java"), "-XX:+PreserveFramePointer", *flags, "-cp", directory, "Calls", str(SECONDS)]


@workload("java -XX:+PreserveFramePointer")
def java(directory):
    return java_command(directory)


def go_build(directory, *files):
    need("go")
    for name in files:
        shutil.copy(source(name), directory)
    out = os.path.join(directory, "program")
    env = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=os.path.join(directory, "cache"))
    run("go", "build", "-p", "2", "-o", out, *files, cwd=directory, env=env)
    return [out, str(SECONDS)]


@workload("Go")
def go(directory):
    return go_build(directory, "calls.go")


@workload("Go with cgo")
def cgo(directory):
    need("gcc")
    return go_build(directory, "calls.go", "cgo.go")


@workload("Rust, panic=abort")
def rust(directory):
    need("rustc")
    out = os.path.join(directory, "calls")
    run("rustc", "-O", "-C", "panic=abort", "-o", out, source("calls.rs"))
    return [out, str(SECONDS)]


# ---- C and C++ ----


@workload("C++ exceptions")
def exceptions(directory):
    return built(directory, "throw.cc", compiler="g++")


@workload("signal handler on an alternate stack")
def altstack(directory):
    return built(directory, "altstack.c", libs=("-pthread",))


@workload("vfork and posix_spawn")
def children(directory):
    return built(directory, "children.c")


@workload("qsort in qsort callbacks")
def nested_qsort(directory):
    return built(directory, "nested_qsort.c")


@workload("static glibc")
def static_glibc(directory):
    return built(directory, "calls.c", "-static")


@workload("static-pie glibc")
def static_pie(directory):
    return built(directory, "calls.c", "-static-pie")


@workload("static musl")
def static_musl(directory):
    return built(directory, "calls.c", "-static", compiler="musl-gcc")


@workload("linked by lld")
def lld(directory):
    need("ld.lld")
    return built(directory, "calls.c", "-fuse-ld=lld")


@workload("linked by mold")
def mold(directory):
    need("mold")
    return built(directory, "calls.c", "-fuse-ld=mold")


@workload("linked by gold")
def gold(directory):
    need("ld.gold")
    return built(directory, "calls.c", "-fuse-ld=gold")


def plt_calls(directory, *flags):
    need("gcc")
    library = os.path.join(directory, "libtiny.so")
    run("gcc", "-O2", "-g", "-fPIC", "-shared", "-DLIBRARY", *flags, "-o", library, source("plt.c"))
    return built(directory, "plt.c", *flags, libs=(f"-L{directory}", "-ltiny", f"-Wl,-rpath,{directory}"))


@workload("code in .plt")
def plt(directory):
    return plt_calls(directory, "-fcf-protection=none", "-Wl,-z,lazy")


@workload("code in .plt.sec")
def plt_sec(directory):
    return plt_calls(directory, "-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy")


@workload("-O3 -flto")
def lto(directory):
    return built(directory, "calls.c", "-O3", "-flto")


@workload("clang -O3, no frame pointers")
def clang(directory):
    return built(directory, "calls.c", "-O3", "-fomit-frame-pointer", compiler="clang")


# ---- running and judging ----


def measure(command, shown):
    """The figures of one run, and the lines that explain differences."""
    r = subprocess.run(
        [TOOL, "-f", str(FREQ), "-d", str(SECONDS + 4), "-n", str(shown), "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        timeout=300,
    )
    figures, notes = {}, []
    for line in r.stdout.splitlines():
        words = line.split()
        if line.startswith("  "):
            notes.append(line)
        elif len(words) == 2 and words[1].isdigit():
            figures[words[0]] = int(words[1])  # the command's own output comes before
    if r.returncode or "stacks" not in figures:
        raise RuntimeError(f"nothing compared: {r.stderr[-500:].strip()}")
    return figures, notes


def rooted_share(f):
    """Of all user samples (a process inside exec has no user stack): less those that were claimed to be
    rooted and aren't, by the share found among the stacks compared."""
    user = "root no_registers 32_bit no_mapping not_executable bad_frame unreadable_stack depth no_unwind_info unsupported_rule walk_error"
    total = sum(f.get("counter_" + label, 0) for label in user.split())
    true = f["rooted"] / f["root_claimed"] if f["root_claimed"] else 0
    return f.get("counter_root", 0) / total * true if total else 0


def percent(part, whole):
    """Rounded down: 99.96 isn't 100."""
    return f"{int(10000 * part / whole) / 100:.2f}" if whole else "-"


def row(name, f):
    return " | ".join(
        [
            f"| {name}",
            f"{f['stacks']}",
            percent(f["agree"], f["stacks"]),
            percent(rooted_share(f), 1),
            f"{f['whole']}",
            f"{f['prefix_no_cfi']}",
            f"{f['prefix_switch']}",
            f"{f['prefix_copy'] + f['prefix_error']}",
            percent(f["frames_proven"], f["frames"]),
            percent(f["tails_agree"], f["tails"]),
            f"{percent(f['replayed'] - f['replay_differ'], f['replayed'])} |",
        ]
    )


HEADER = """\
| workload | stacks | agree % | rooted % | whole | up to no CFI | up to a switch of stacks | up to end of copy | frames proven % | beyond, by frame pointers % | replay agrees % |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def run_one(function, shown):
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        command = function(directory)
        if hasattr(command, "__enter__"):
            command = stack.enter_context(command)
        return measure(command, shown)


def failures(f):
    if f["stacks"] < STACKS_MIN:
        yield f"only {f['stacks']} stacks"
    if f["agree"] < AGREE * f["stacks"]:
        yield f"{f['differ']} stacks differ"
    if rooted_share(f) < ROOTED:
        yield "too few are rooted"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", action="append", default=[], metavar="SUBSTRING")
    parser.add_argument("-n", type=int, default=3, metavar="SHOWN", help="differing stacks to show")
    parser.add_argument("-v", action="store_true", help="all figures")
    args = parser.parse_args()
    passed = failed = skipped = 0
    print(HEADER, flush=True)
    remarks = []
    for name, function in WORKLOADS:
        if args.k and not any(k in name for k in args.k):
            continue
        try:
            figures, notes = run_one(function, args.n)
        except Skip as why:
            skipped += 1
            remarks.append(f"{name}: skipped, {why}")
            continue
        except (RuntimeError, subprocess.TimeoutExpired) as why:
            failed += 1
            remarks.append(f"{name}: FAILED, {why}")
            continue
        print(row(name, figures), flush=True)
        wrong = list(failures(figures))
        passed, failed = passed + (not wrong), failed + bool(wrong)
        remarks += [f"{name}: FAILED, {', '.join(wrong)}"] if wrong else []
        remarks += [f"{name}: {figures}"] if args.v else []
        remarks += [f"{name}:", *notes] if notes else []
    print()
    print(*remarks, sep="\n")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
