"""What only time brings: clocks that drift, storms of faults, long absence."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from alsa.card import Offer
from card.chain import PATTERN_FRAMES, WISH, Chain, pattern, places
from oyez.audio.recovery import Fault
from oyez.messages import BLOCK_FRAMES, RATE_HZ
from oyez.ops.sound_watch import SoundWatch

STEREO_48K = Offer(rates=(48000,), channels=(2,))
MAX_CPU = 0.01
"""Of a core, for waiting."""


def two_cards(rack, *, ppm, speed):
    """A microphone and a speaker whose clocks differ by twice ``ppm``, in a fast world."""
    mic = rack.card("Mic", capture=Offer())
    box = rack.card("Box", playback=STEREO_48K)
    mic.drift_ppm, box.drift_ppm = ppm, -ppm
    mic.speed = box.speed = speed
    mic.play(pattern(), rate=RATE_HZ, loops=True)
    return rack.plug(mic), rack.plug(box)


@pytest.mark.parametrize("ppm", [200, -200])
@pytest.mark.parametrize(("speed", "simulated_s"), [(4, 10)])
def test_two_cards_whose_clocks_drift_lose_nothing_and_stay_in_step(rack, ppm, speed, simulated_s):
    mic, box = two_cards(rack, ppm=ppm, speed=speed)
    # A buffer of the same real time, whatever the speed: the machine may be busy.
    wish = replace(WISH, periods=13 * speed)
    with Chain(rack, capture="Mic", playback="Box", wish=wish) as chain:
        chain.hears()
        chain.until(
            lambda: mic.capture.frames >= simulated_s * RATE_HZ, patience_s=3 * simulated_s / speed
        )
        behind = mic.capture.clock_frames - mic.capture.frames
        ahead = box.playback.frames - box.playback.clock_frames
    assert (mic.capture.xruns, box.playback.xruns, chain.audio.gaps) == (0, 0, 0)
    assert behind <= mic.capture.buffer
    assert 0 <= ahead <= box.playback.buffer
    samples = chain.samples()[-RATE_HZ:]
    steps = np.diff(places(samples)) % PATTERN_FRAMES
    assert (steps == 1).all(), "the last second is whole"
    # What is less than a block waits in the front end.
    assert (mic.capture.frames - 1 - places(samples)[-1]) % PATTERN_FRAMES < 2 * BLOCK_FRAMES


@pytest.mark.parametrize("there", ["no card at all", "a card that was pulled out", "a busy card"])
def test_waiting_for_a_card_costs_next_to_nothing(rack, plain, there):
    if there == "no card at all":
        plain.unplug()
    if there == "a busy card":
        plain.capture.fail_open(times=0)
    with Chain(rack, capture="Mic") as chain:
        if there == "a card that was pulled out":
            chain.hears()
            plain.unplug()
        chain.until(chain.lost)
        begin_s, begin_cpu_s = time.monotonic(), cpu_s(chain)
        chain.pass_s(3.0)
        share = (cpu_s(chain) - begin_cpu_s) / (time.monotonic() - begin_s)
    assert share < MAX_CPU, f"{share:.1%}"
    assert chain.lost()[0].fault in (Fault.ABSENT, Fault.UNPLUGGED, Fault.BUSY)


def cpu_s(chain):
    """What both threads have used."""
    clocks = [time.pthread_getcpuclockid(t.ident) for t in (chain.audio, chain.device)]
    return sum(map(time.clock_gettime, clocks))


def test_a_storm_of_overruns_gives_few_lines_with_the_counts(rack, plain, caplog):
    caplog.set_level(logging.INFO, "oyez")
    watch = SoundWatch(SimpleNamespace(opened=lambda _m: None, changed=lambda _m: None))
    with Chain(rack, playback="auto") as chain:
        chain.hears()
        seen = 0
        for _ in range(60):
            plain.capture.xrun()
            plain.playback.xrun()
            chain.pass_s(0.05)
            for message in chain.messages()[seen:]:
                watch.take(message)
            seen = len(chain.told)
            watch.look(losses(chain))
    watch.look(losses(chain), last=True)
    assert chain.audio.overruns == plain.capture.xruns > 30
    assert chain.playback.underruns == plain.playback.xruns > 30
    assert len(caplog.records) <= 10
    told = [r.args for r in caplog.records if "sound was lost" in r.msg]
    assert sum(counts[2] for counts in told) == plain.capture.xruns
    assert sum(counts[3] for counts in told) == plain.playback.xruns
    assert sum(counts[0] for counts in told) == pytest.approx(chain.audio.lost_s * 1000, abs=3)


def losses(chain):
    """The crew's counters, for the watch."""
    return SimpleNamespace(
        gaps=chain.audio.gaps,
        overruns=chain.audio.overruns,
        underruns=chain.playback.underruns,
        lost_frames=0,
        lost_ms=round(chain.audio.lost_s * 1000),
    )


def test_overruns_without_end_cost_little_and_the_frame_index_goes_on(rack, plain):
    with Chain(rack) as chain:
        chain.hears()
        plain.capture.xrun(times=0)
        chain.until(lambda: chain.audio.overruns > 3)
        begin_s, begin_cpu_s, begin = time.monotonic(), cpu_s(chain), chain.heard.head_frame
        chain.pass_s(3.0)
        passed_s = time.monotonic() - begin_s
        share = (cpu_s(chain) - begin_cpu_s) / passed_s
        assert (chain.heard.head_frame - begin) / RATE_HZ == pytest.approx(passed_s, abs=0.3)
        plain.capture.heal()
        chain.hears()
    assert share < 0.1, f"{share:.1%}"
    assert chain.lost()[0].fault is Fault.STALLED
