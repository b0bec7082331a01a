"""CPUs that go and come while wick records. Needs a CPU that can be taken offline; it is back within
four seconds."""

import contextlib
import os
import signal
import subprocess
import time

from build import Skip
from lib import expect_some, program, recording, under


def last_cpu():
    """The switch of the highest online CPU, and its number; skips where there is none."""
    cpu = max(os.sched_getaffinity(0))
    switch = f"/sys/devices/system/cpu/cpu{cpu}/online"
    if cpu == 0 or not os.access(switch, os.W_OK):
        raise Skip("no CPU can be taken offline here")
    return switch, cpu


@contextlib.contextmanager
def offline(switch):
    def write(value):
        with open(switch, "w") as f:
            f.write(value)

    try:
        write("0")
    except OSError as e:
        raise Skip(f"the CPU stays online: {e.strerror}")
    try:
        yield
    finally:
        write("1")


def work_on(cpu):
    subprocess.run(["taskset", "-c", str(cpu), program("shares"), "1"], check=True,
                   stdout=subprocess.DEVNULL)


def test_cpu_comes_back():
    """What runs on a CPU after it was away is sampled, and the accounting stays exact."""
    switch, cpu = last_cpu()
    with recording("-a") as wick:
        time.sleep(0.5)
        with offline(switch):
            time.sleep(2.5)
        time.sleep(2.5)  # wick looks once a second
        work_on(cpu)
    expect_some(wick.recording, under("round_of_both"), at_least=50)


def test_cpu_comes_back_unseen():
    """The same when wick, stopped meanwhile, never sees that it was away."""
    switch, cpu = last_cpu()
    with recording("-a") as wick:
        time.sleep(1.5)
        wick.send_signal(signal.SIGSTOP)
        try:
            with offline(switch):
                time.sleep(0.3)
        finally:
            wick.send_signal(signal.SIGCONT)
        time.sleep(3.5)  # one look to see that it doesn't tick, one to see that its time stands
        work_on(cpu)
    expect_some(wick.recording, under("round_of_both"), at_least=50)
