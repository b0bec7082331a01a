"""Every tick has one fate. (record() checks the sum in every test; here it is made hard.)"""

import math
import signal

import lib
from lib import expect_some, program, record, recording, under


def test_window_overflows():
    """Deep stacks of which hardly two are alike, small windows, and nobody who empties them for a
    while: samples are lost, counted with a reason, and the sum is exact."""
    argv = [program("deep"), "800", "1.5", "vary"]
    with recording("--window-bytes", "64K", freq=997, command=argv) as wick:
        target = lib.child_of(wick.pid)
        lib.let_work(target, seconds=0.2)
        wick.send_signal(signal.SIGSTOP)
        lib.let_work(target, seconds=0.5)
        wick.send_signal(signal.SIGCONT)
        wick.wait(timeout=50)
    r = wick.recording
    t = r.ticks
    lib.check(t["lost"] > 100, f"only {t['lost']} lost: the windows did not overflow")
    lib.check("window full" in r.stderr, f"no reason in{lib.shown(r.stderr)}")
    expect_some(r, under("bottom"), at_least=200)


def test_varied_stacks_are_not_lost():
    """The same with windows of the default size and wick awake."""
    r = record(command=[program("deep"), "800", "1.5", "vary"], freq=997)
    t = r.ticks
    lib.check(t["lost"] <= t["ticks"] * 0.001, f"lost {t['lost']} of {t['ticks']}")
    expect_some(r, under("bottom"), at_least=500)


def test_idle_is_no_sample():
    r = record("-d", "0.7")
    names = {f.name for s in r.profile.samples for f in s.frames}
    idle = [n for n in names if "cpu_idle" in n or n.endswith("default_idle")]
    lib.check(not idle, f"idle loop in the profile: {idle}")


@lib.each(19, 99, 997)
def test_frequency(freq):
    """The ticks of one busy thread are its CPU time times the frequency. Where it has to share its
    CPU, chance decides which of the ticks fall into its turns."""
    r = record(command=[program("burst-0"), "1.5"], freq=freq)
    hot = lib.count(r, under("hot_burst_0"))
    due = 1.5 * freq
    margin = 5 * math.sqrt(due)
    text = f"{hot} samples at {freq} Hz, expected {due:.0f} +- {margin:.0f}"
    lib.check(abs(hot - due) <= margin, text)


@lib.each("page-faults", "context-switches")
def test_other_events(event):
    r = record("-e", event, command=["sh", "-c", "for i in 1 2 3 4; do true | cat; done"])
    types = r.profile.sample_types
    lib.check((event, "count") in types or (event.replace("-", "_"), "count") in types, f"{types}")
