"""The listener: follows the ring, cuts utterances out of it and hands them on."""

from __future__ import annotations

import numpy as np
import pytest

from oyez.messages import (
    BLOCK_FRAMES,
    BLOCK_MS,
    Blip,
    Dropped,
    DropReason,
    EndReason,
    Heard,
    InputEnded,
    SpeechStarted,
    ThreadFailed,
)
from oyez.rt.mailbox import Mailbox
from oyez.rt.ring import Flag, FrameRing
from oyez.speech.endpointer import Endpointer
from oyez.workers.listener import Listener
from workers.scripted import PATIENCE_S, next_of

SIGNS = {
    ".": Flag(0),
    "#": Flag.SPEECH,
    "!": Flag.SPEECH | Flag.CLIPPED,
    "g": Flag.GATED | Flag.SPEECH,
}


class Rig:
    """A listener with a ring of so many blocks and room for so many utterances.

    Pre-roll 3 blocks, hangover 5, 2 blocks of speech at least, 40 at most.
    """

    def __init__(self, capacity=100, room=8):
        self.ring = FrameRing(capacity)
        self.main = Mailbox(100)
        self.transcriber = Mailbox(room)
        self.listener = Listener(
            ring=self.ring,
            endpointer=Endpointer(
                pre_roll_ms=3 * BLOCK_MS,
                hangover_ms=5 * BLOCK_MS,
                min_speech_ms=2 * BLOCK_MS,
                max_utterance_ms=40 * BLOCK_MS,
            ),
            transcriber=self.transcriber,
            main=self.main,
        )

    def write(self, picture):
        """Blocks that are told apart by their level: the number of the block in steps."""
        for sign in picture:
            number = self.ring.head_block
            self.ring.write(
                np.full(BLOCK_FRAMES, number, np.int16), SIGNS[sign], number / 1000, 0.0
            )

    def listen_to_the_end(self):
        """Run it on this thread until it has heard the end, and stop it there."""
        self.ring.end()
        self.listener._catch_up()
        self.listener.stop()
        self.listener.run()
        return list(iter(lambda: self.main.take(0), None))

    def utterances(self):
        return list(iter(lambda: self.transcriber.take(0), None))


def of(messages, kind):
    return [message for message in messages if isinstance(message, kind)]


def blocks(samples):
    return [int(block[0]) for block in samples.reshape(-1, BLOCK_FRAMES)]


def test_an_utterance_is_handed_over_with_its_sound_and_told_to_main():
    rig = Rig()
    rig.write("......####.......")
    started, heard, ended = rig.listen_to_the_end()
    assert isinstance(started, SpeechStarted)
    assert heard.span.reason is EndReason.SILENCE
    assert ended == InputEnded(frame=17 * BLOCK_FRAMES)
    (utterance,) = rig.utterances()
    assert utterance.span == heard.span
    assert blocks(utterance.samples) == list(range(3, 15))
    assert utterance.ended_ns > 0
    with pytest.raises(ValueError, match="read-only"):
        utterance.samples[0] = 1


def test_peak_and_clipping_are_those_of_the_utterance():
    rig = Rig()
    rig.write("!!" + "." * 20 + "##!!#....." + "....!!")
    heard = of(rig.listen_to_the_end(), Heard)[0]
    assert heard.clipped_ms == 2 * BLOCK_MS
    last_block = heard.span.end_frame // BLOCK_FRAMES - 1
    assert heard.peak_dbfs == pytest.approx(20 * np.log10(last_block / 1000), abs=0.01)


def test_what_is_open_at_the_end_of_the_input_is_read():
    rig = Rig()
    rig.write("....####..")
    heard = of(rig.listen_to_the_end(), Heard)
    assert [h.span.reason for h in heard] == [EndReason.END_OF_INPUT]
    assert len(rig.utterances()) == 1


def test_what_is_open_at_the_stop_is_told_as_stopped_and_not_read():
    rig = Rig()
    rig.write("....####..")
    rig.listener.stop()
    rig.listener.run()
    messages = list(iter(lambda: rig.main.take(0), None))
    assert [h.span.reason for h in of(messages, Heard)] == [EndReason.STOPPED]
    assert messages[-1] == Dropped(number=1, reason=DropReason.STOPPED)
    assert rig.utterances() == []


def test_a_stop_that_comes_with_the_end_of_the_input_is_a_stop():
    rig = Rig()
    rig.write("....####..")
    rig.ring.end()
    rig.listener.stop()
    rig.listener.run()
    messages = list(iter(lambda: rig.main.take(0), None))
    assert [h.span.reason for h in of(messages, Heard)] == [EndReason.STOPPED]
    assert of(messages, InputEnded) == []


def test_a_blip_is_told():
    rig = Rig()
    rig.write("....#" + "." * 20)
    assert of(rig.listen_to_the_end(), Blip) == [
        Blip(begin_frame=4 * BLOCK_FRAMES, end_frame=5 * BLOCK_FRAMES)
    ]


def test_nothing_of_what_was_gated_is_handed_over():
    rig = Rig()
    rig.write("...###gggg###.....")
    assert [h.span.reason for h in of(rig.listen_to_the_end(), Heard)] == [
        EndReason.GATED,
        EndReason.SILENCE,
    ]
    assert [blocks(u.samples) for u in rig.utterances()] == [
        list(range(6)),
        list(range(10, 18)),
    ]


def test_an_utterance_too_many_is_dropped_and_told():
    rig = Rig(room=1)
    rig.write("...###....." * 2)
    messages = rig.listen_to_the_end()
    assert len(of(messages, Heard)) == 2
    assert of(messages, Dropped) == [Dropped(number=2, reason=DropReason.BUSY)]
    assert [utterance.span.number for utterance in rig.utterances()] == [1]


def test_a_listener_that_was_too_late_goes_on_with_the_newest_and_counts_what_it_missed():
    rig = Rig(capacity=20)
    rig.write("." * 50)
    rig.listener._catch_up()
    assert rig.listener.lost_blocks == 50
    rig.write("..###.....")
    (heard,) = of(rig.listen_to_the_end(), Heard)
    assert heard.span.begin_frame == 50 * BLOCK_FRAMES
    assert rig.listener.lost_blocks == 50


def test_an_utterance_that_is_open_when_sound_is_lost_ends_there():
    rig = Rig(capacity=20)
    rig.write("...####")
    rig.listener._catch_up()
    rig.write("#" * 15)  # the pre-roll is overwritten, the rest is not yet
    rig.listener._catch_up()
    rig.write("." * 30)
    messages = rig.listen_to_the_end()
    (heard,) = of(messages, Heard)
    assert heard.span.reason is EndReason.GAP
    assert of(messages, Dropped) == [Dropped(number=1, reason=DropReason.LOST)]
    assert rig.utterances() == []


def test_it_is_settled_when_all_that_was_written_has_been_handled():
    rig = Rig()
    assert rig.listener.settled
    rig.write(".")
    assert not rig.listener.settled
    rig.listener._catch_up()
    assert rig.listener.settled
    rig.ring.end()
    assert not rig.listener.settled
    rig.listener._catch_up()
    assert rig.listener.settled


def test_the_end_of_the_input_is_told_once():
    rig = Rig()
    rig.ring.end()
    rig.listener._catch_up()
    rig.listener._catch_up()
    assert of(rig.listen_to_the_end(), InputEnded) == [InputEnded(frame=0)]


def test_on_its_thread_it_follows_what_is_written():
    rig = Rig()
    rig.listener.start()
    rig.write("......####.....")
    rig.ring.end()
    messages = [next_of(rig.main) for _ in range(3)]
    rig.listener.stop()
    rig.listener.join(PATIENCE_S)
    assert [type(message) for message in messages] == [SpeechStarted, Heard, InputEnded]
    assert rig.listener.name == "oyez-listen"


def test_an_error_is_told_to_main_and_ends_the_thread(monkeypatch):
    rig = Rig()
    error = ValueError("a fault of ours")

    def fail(**_):
        raise error

    monkeypatch.setattr(rig.listener._endpointer, "process", fail)
    rig.listener.start()
    rig.write(".")
    rig.listener.join(PATIENCE_S)
    assert rig.main.take(0) == ThreadFailed(thread="oyez-listen", error=error)
