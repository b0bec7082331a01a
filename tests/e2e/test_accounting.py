"""Every tick has one fate. (record() checks the sum in every test; here it is made hard.)"""

import signal
import time

import lib
from lib import expect_some, program, record, recording, under


def test_window_overflows():
    """Deep stacks of which hardly two are alike, small windows, and nobody who empties them for a
    while: samples are lost, counted with a reason, and the sum is exact."""
    argv = [program("deep"), "800", "4", "vary"]
    with recording("--window-bytes", "64K", freq=997, command=argv) as wick:
        time.sleep(0.5)
        wick.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        wick.send_signal(signal.SIGCONT)
        wick.wait(timeout=40)
    r = wick.recording
    t = r.ticks
    lib.check(t["lost"] > 100, f"only {t['lost']} lost: the windows did not overflow")
    lib.check("window full" in r.stderr, f"no reason in{lib.shown(r.stderr)}")
    expect_some(r, under("bottom"), at_least=500)


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
    """The ticks of one busy thread are its CPU time times the frequency."""
    r = record(command=[program("burst-0"), "1.5"], freq=freq)
    hot = lib.count(r, under("hot_burst_0"))
    lib.check(0.85 * 1.5 * freq - 3 <= hot <= 1.1 * 1.5 * freq + 3, f"{hot} samples at {freq} Hz")


@lib.each("page-faults", "context-switches")
def test_other_events(event):
    r = record("-e", event, command=["sh", "-c", "for i in 1 2 3 4; do true | cat; done"])
    types = r.profile.sample_types
    lib.check((event, "count") in types or (event.replace("-", "_"), "count") in types, f"{types}")
