"""Each fault of a card, through the real pyalsaaudio: hearing goes on, and losses are told.

``agrees`` is the heart of them: the samples tell their own places in the room, and wherever they
stand in the frame ring, the ring's time is the room's.
"""

from __future__ import annotations

import errno
import subprocess
import sys
import time

import numpy as np
import pytest

from alsa.card import Offer
from card.chain import PATIENCE_S, Chain, pattern
from oyez.audio.cards import Direction
from oyez.audio.recovery import Fault
from oyez.messages import RATE_HZ
from oyez.rt.ring import Flag

PERIOD_FRAMES = 320
STOP_S = 2.0


def agrees(chain):
    """Whether the ring's time is the room's: within a period, whatever was lost in between."""
    return np.abs(chain.shifts()).max() <= PERIOD_FRAMES


def accounts(chain, card):
    """Whether what is reported as lost is what the card lost: within a period for each gap."""
    reported = chain.audio.lost_s * RATE_HZ
    return abs(reported - card.capture.frames_lost) <= PERIOD_FRAMES * max(1, chain.audio.gaps)


def first_loss(chain, direction=Direction.CAPTURE):
    return next((m for m in chain.lost() if m.direction is direction), None)


def opened_again(chain, direction=Direction.CAPTURE):
    return sum(m.direction is direction for m in chain.opened()) > 1


def no_handle_is_left(card):
    return all(end.opens == end.closes for end in (card.capture, card.playback))


def test_what_the_card_delivers_comes_out_to_the_bit(plain, rack):
    with Chain(rack) as chain:
        chain.pass_s(1.5)
    assert not chain.shifts().any()
    assert (chain.audio.gaps, chain.audio.lost_s, plain.capture.xruns) == (0, 0, 0)
    heard = [n for n in range(chain.heard.head_block) if not chain.flags(n) & Flag.LOST]
    assert heard[-1] - heard[0] + 1 == len(heard), "lost is only what was before the card was open"


FAULTS = {  # what is done; whether the device is given up and opened anew
    "an overrun": (lambda card: card.capture.xrun(), None),
    "a sleep": (lambda card: card.capture.suspend(), Fault.FAILED),
    "EIO": (lambda card: card.capture.fail_transfer(errno.EIO), Fault.FAILED),
    "EBADFD": (lambda card: card.capture.fail_transfer(errno.EBADFD), Fault.FAILED),
    "ENODEV that passes": (lambda card: card.capture.fail_transfer(errno.ENODEV), Fault.FAILED),
    "an error of poll": (lambda card: card.capture.fail_poll(), None),
    "a short stall": (lambda card: card.capture.stall(seconds=0.3), None),
    "a stall": (lambda card: card.capture.stall(), Fault.STALLED),
    "a freeze": (lambda card: card.capture.freeze(), Fault.STALLED),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_it_hears_again_in_step_with_the_room_and_tells_what_was_lost(
    plain, rack, fault
):
    break_it, told = FAULTS[fault]
    with Chain(rack, playback="auto") as chain:
        chain.hears()
        break_it(plain)
        chain.pass_s(0.5 if told is None else 0)
        if told is not None:
            chain.until(lambda: first_loss(chain))
            plain.capture.heal()
            chain.until(lambda: opened_again(chain))
        chain.hears(20)
    assert agrees(chain)
    assert accounts(chain, plain)
    lost = first_loss(chain)
    assert (lost.fault if lost else None) is told
    assert not first_loss(chain, Direction.PLAYBACK), "the speaker is not concerned"
    assert chain.audio.overruns == (fault == "an overrun")
    assert no_handle_is_left(plain)


PLAYBACK_FAULTS = {
    "an underrun": (lambda card: card.playback.xrun(), None),
    "a sleep": (lambda card: card.playback.suspend(), Fault.FAILED),
    "EIO": (lambda card: card.playback.fail_transfer(errno.EIO), Fault.FAILED),
    "a stall": (lambda card: card.playback.stall(), Fault.STALLED),
    "a freeze": (lambda card: card.playback.freeze(), Fault.STALLED),
}


@pytest.mark.parametrize("fault", PLAYBACK_FAULTS)
def test_a_fault_of_the_speaker_costs_no_hearing(plain, rack, fault):
    break_it, told = PLAYBACK_FAULTS[fault]
    with Chain(rack, playback="auto") as chain:
        chain.until(lambda: plain.playback.frames > 0)
        chain.hears()
        break_it(plain)
        if told is not None:
            # Told while it lasts: nothing ends it but ourselves.
            chain.until(lambda: first_loss(chain, Direction.PLAYBACK))
            plain.playback.heal()
            chain.until(lambda: opened_again(chain, Direction.PLAYBACK))
        before = plain.playback.frames
        chain.until(lambda: plain.playback.frames > before + 4800)
    lost = first_loss(chain, Direction.PLAYBACK)
    assert (lost.fault if lost else None) is told
    assert not chain.shifts().any()
    assert chain.audio.gaps == 0
    assert chain.playback.underruns == (fault == "an underrun")
    assert no_handle_is_left(plain)


def test_a_card_that_comes_back_under_another_index_is_heard_again(plain, rack):
    with Chain(rack, playback="auto") as chain:
        chain.hears()
        plain.unplug()
        chain.until(lambda: first_loss(chain) and first_loss(chain, Direction.PLAYBACK))
        other = rack.plug(rack.card("Other", playback=Offer()))  # takes the index that is free now
        chain.pass_s(0.5)
        rack.plug(plain, index=5)
        back_s = time.monotonic()
        chain.until(lambda: opened_again(chain))
        chain.hears()
        assert time.monotonic() - back_s < 5
    assert first_loss(chain).fault is Fault.UNPLUGGED
    assert (other.index, plain.index) == (0, 5)
    assert agrees(chain)
    assert accounts(chain, plain)
    assert no_handle_is_left(plain)


def test_a_card_that_is_absent_at_the_start_is_waited_for(rack):
    card = rack.card("Mic", capture=Offer())
    card.play(pattern(), rate=RATE_HZ, loops=True)
    with Chain(rack, capture="Mic") as chain:
        chain.until(lambda: first_loss(chain))
        chain.pass_s(0.3)
        rack.plug(card, index=3)
        chain.hears()
    assert [m.fault for m in chain.lost()] == [Fault.ABSENT], "told once"
    assert not chain.shifts().any()
    assert (chain.audio.gaps, chain.audio.lost_s) == (0, 0), "nothing was there to be lost"


def test_a_busy_card_is_waited_for_and_its_holder_is_named(plain, rack):
    program = (
        "import alsaaudio, sys; pcm = alsaaudio.PCM(1, alsaaudio.PCM_NONBLOCK, "
        "device='hw:CARD=Mic,DEV=0'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with Chain(rack) as chain:
            chain.until(lambda: first_loss(chain))
            other.stdin.close()
            other.wait(PATIENCE_S)
            free_s = time.monotonic()
            chain.hears()
            assert time.monotonic() - free_s < 5
    (lost,) = chain.lost()
    assert lost.fault is Fault.BUSY
    assert f"(process {other.pid})" in lost.reason


def test_a_plug_that_wiggles_ten_times_leaks_nothing_and_is_heard_in_the_end(plain, rack):
    with Chain(rack, playback="auto") as chain:
        chain.hears()
        for turn in range(10):
            plain.unplug()
            chain.pass_s(0.06 * (turn % 3))
            rack.plug(plain, index=turn % 3)
            chain.pass_s(0.08 * (turn % 4))
        back_s = time.monotonic()
        chain.hears()
        assert time.monotonic() - back_s < 5
        chain.until(lambda: not any(end.due_s is not None for end in chain.device._sides))
    assert agrees(chain)
    # Whoever was open when the plug was pulled closes a card that is another one by now.
    assert len(chain.handles) >= 4
    assert plain.capture.opens == plain.capture.closes


@pytest.mark.parametrize("limit", [37, 319])
def test_transfers_of_parts_of_periods_lose_nothing(plain, rack, limit):
    plain.capture.transfer_limit = limit
    plain.playback.transfer_limit = limit * 3
    with Chain(rack, playback="auto") as chain:
        chain.pass_s(0.5)
        chain.hears()
    assert not chain.shifts().any()
    assert chain.audio.gaps == 0


def test_a_microphone_that_is_away_does_not_stop_an_answer(rack):
    mic = rack.plug(rack.card("Mic", capture=Offer()))
    speaker = rack.plug(rack.card("Box", playback=Offer(rates=(48000,), channels=(2,))))
    mic.play(pattern(), rate=RATE_HZ, loops=True)
    with Chain(rack, playback="auto") as chain:
        chain.hears()
        mic.unplug()
        chain.until(lambda: first_loss(chain))
        begin = speaker.playback.frames
        chain.spoken.mark(1, last=False)
        chain.spoken.write(np.full(22_050, 0.25, np.float32))
        chain.spoken.mark(1, last=True)
        chain.until(lambda: speaker.playback.frames > begin + 2 * 48_000)
    assert speaker.playback.xruns == 0
    _, sound = speaker.recordings()[-1]
    spoken = np.flatnonzero(np.abs(sound[:, 0]) > 2_000)
    assert len(spoken) == pytest.approx(48_000, abs=480)
    assert spoken[-1] - spoken[0] + 1 == len(spoken), "without a hole"


def test_an_answer_that_nobody_can_hear_passes_at_its_own_pace(plain, rack):
    with Chain(rack, playback="Box") as chain:
        chain.hears()
        begin = chain.heard.head_frame
        chain.spoken.write(np.full(22_050, 0.25, np.float32))
        chain.spoken.mark(1, last=True)
        chain.until(lambda: any(getattr(m, "last", False) for m in chain.messages()))
        passed_s = (chain.heard.head_frame - begin) / RATE_HZ
    assert passed_s == pytest.approx(1, abs=0.2)


WHILE = {
    "it works": lambda _rack, _card: None,
    "overruns rain": lambda _rack, card: card.capture.xrun(times=10_000),
    "the card is away": lambda _rack, card: card.unplug(),
    "capture stalls": lambda _rack, card: card.capture.stall(),
    "playback stalls": lambda _rack, card: card.playback.stall(),
    "both are frozen": lambda _rack, card: (card.capture.freeze(), card.playback.freeze()),
    "every read fails": lambda _rack, card: card.capture.fail_transfer(times=0),
    "every opening fails": lambda _rack, card: (
        card.capture.fail_open(times=0),
        card.capture.suspend(),
    ),
}


@pytest.mark.parametrize("after_s", [0.02, 0.4])
@pytest.mark.parametrize("what", WHILE)
def test_it_stops_at_once_whatever_happens(plain, rack, what, after_s):
    with Chain(rack, playback="auto") as chain:
        chain.hears()
        WHILE[what](rack, plain)
        chain.pass_s(after_s)
        chain.stop()
    assert chain.stopped_after_s < STOP_S
    assert no_handle_is_left(plain)
