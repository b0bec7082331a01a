"""Processes, files and mappings that come and go, for soak tests: each kind is a context manager.

    with churn.everything(directory, seconds):
        ... profile ...
    wrong = churn.wrong_names(profile)

Each short-lived program and library is a variant with a function of its own, hot_NNN, that runs only in
threads named soak-NNN. So a sample tells by itself whether its names are right: a stale mapping, file id,
unwind table or symbol shows as another variant's function, or as one where none can be.
"""

import contextlib
import errno
import os
import re
import shutil
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(HERE, "programs")
BUILD = os.path.join(ROOT, "build", "soak")
CC = [os.environ.get("CC", "gcc"), "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra"]

VARIANTS = 24
MILLISECONDS = 25  # CPU time of a variant's process
PAUSE = 0.03  # between two processes of a kind


# ---- programs ----


def compiled(name, source, *flags):
    """Builds a program of programs/ once; its path."""
    out = os.path.join(BUILD, name)
    source = os.path.join(PROGRAMS, source)
    if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
        os.makedirs(BUILD, exist_ok=True)
        subprocess.run([*CC, *flags, "-o", out + ".new", source, "-pthread", "-ldl"], check=True)
        os.rename(out + ".new", out)
    return out


def variant(n, library=False):
    names = [f"-DHOT=hot_{n:03}", f'-DCOMM="soak-{n:03}"']
    if library:
        return compiled(f"variant-{n:03}.so", "variant.c", *names, "-DLIBRARY", "-shared", "-fPIC")
    return compiled(f"variant-{n:03}", "variant.c", *names)


def build():
    """Everything below, ahead of time. Programs and libraries share no variant."""
    programs = [variant(n) for n in range(VARIANTS)]
    libraries = [variant(VARIANTS + n, library=True) for n in range(VARIANTS)]
    return programs, libraries, compiled("loader", "loader.c")


# ---- kinds of churn ----


@contextlib.contextmanager
def repeating(step):
    """Calls step(i) in a thread for i = 0, 1, 2, ... with pauses; what it raises is raised at the end."""
    stop, failed = threading.Event(), []

    def work():
        i = 0
        try:
            while not stop.is_set():
                step(i)
                i += 1
                stop.wait(PAUSE)
        except Exception as e:  # the block's end is where it is seen
            failed.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failed:
        raise failed[0]


def start(argv):
    """Popen; again while the file is busy: another thread may have forked while it was being written."""
    while True:
        try:
            return subprocess.Popen(argv)
        except OSError as e:
            if e.errno != errno.ETXTBSY:
                raise
            time.sleep(0.001)


def executions(directory):
    """Programs of one path, which is another file each time and deleted while it runs."""
    programs, _, _ = build()
    path = os.path.join(directory, "program")

    def step(i):
        shutil.copy(programs[i % len(programs)], path + ".new")
        os.rename(path + ".new", path)
        process = start([path, str(MILLISECONDS)])
        if i % 2:
            os.unlink(path)
        process.wait()

    return repeating(step)


def compilers(directory):
    """gcc, cc1, as and shells, which fork and pipe."""
    source = os.path.join(directory, "small.c")
    with open(source, "w") as f:
        f.write("#include <stdio.h>\n" + "".join(f"int f{i}(int a) {{ return a * {i}; }}\n" for i in range(50)))

    def step(i):
        if i % 10 == 0:
            line = f"gcc -O1 -c -o {source}.o {source}"
        else:
            line = "for i in 1 2 3 4; do (echo $i | cat > /dev/null); done"
        subprocess.run(["sh", "-c", line], check=True)

    return repeating(step)


@contextlib.contextmanager
def mappings(seconds):
    """dlopen, mmap and munmap in sibling threads, and code made at run time, all in one process."""
    _, libraries, loader = build()
    process = subprocess.Popen([loader, str(int(seconds) + 60), *libraries])
    try:
        yield process
        if process.poll() is not None:
            raise RuntimeError(f"the loader has ended: {process.returncode}")
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def everything(directory, seconds):
    with executions(directory), compilers(directory), mappings(seconds):
        yield


# ---- what a profile says of it ----


def wrong_names(profile):
    """(descriptions of samples with a function that can't be there, samples with the right one, variants
    seen)"""
    wrong, right, seen = [], 0, set()
    for s in profile.samples:
        comm = re.fullmatch(r"soak-(\d{3})", s.labels.get("comm", ""))
        hot = {m.group(1) for f in s.frames for m in [re.search(r"\bhot_(\d{3})", f.name or "")] if m}
        if hot - ({comm.group(1)} if comm else set()):
            wrong.append(f"{s.labels}: {' < '.join(f.name or hex(f.address) for f in s.frames)}")
        elif hot:
            right += s.values[0]
            seen |= hot
    return wrong, right, seen
