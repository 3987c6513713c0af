"""Each fault of the test card, as the real pyalsaaudio shows it in non-blocking mode.

These are the facts of the table in README.md, on which a program can build.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import subprocess
import sys
import threading

import alsaaudio
import numpy as np
import pytest

from alsa.card import Offer
from alsa.program import open_pcm, open_speaker, read_frames, state, wait, wait_for

IN, OUT, ERR, NVAL = select.POLLIN, select.POLLOUT, select.POLLERR, select.POLLNVAL
PERIOD = bytes(320)
LONG = PERIOD * 20
"""What sounds for 200 ms, so that a busy machine has no underrun of its own."""


@pytest.fixture
def card(rack):
    made = rack.plug(rack.card("Mic", capture=Offer(), playback=Offer()))
    made.play(np.arange(30000, dtype=np.int16), rate=16000, loops=True)
    return made


@pytest.fixture
def pcm(card):
    opened = open_pcm(periods=50)
    yield opened
    opened.close()


@pytest.fixture
def speaker(card):
    opened = open_speaker(periods=50)
    yield opened
    opened.close()


@contextlib.contextmanager
def refused(error):
    with pytest.raises(alsaaudio.ALSAAudioError, match=os.strerror(error)):
        yield


def test_before_its_first_read_a_capture_device_does_not_run_and_poll_tells_nothing(pcm):
    assert state(pcm) == "PREPARED"
    assert wait(pcm, 50) is None
    assert pcm.avail() == 0
    count, _ = pcm.read()
    assert count >= 0
    assert state(pcm) == "RUNNING"
    assert wait(pcm) == IN


def test_a_read_takes_what_is_there_and_no_frames_are_no_error(card, pcm):
    read_frames(pcm, 160)
    card.capture.stall()
    there = pcm.avail()
    taken = 0
    while (got := pcm.read())[0] > 0:
        taken += got[0]
        assert got[0] == min(160, there - taken + got[0])
    assert (taken, got) == (there, (0, b""))
    assert state(pcm) == "RUNNING"


def test_an_overrun_is_told_by_poll_and_returned_once_with_no_data_and_the_stream_rests(card, pcm):
    read_frames(pcm, 160)
    card.capture.xrun()
    assert wait_for(pcm, ERR) == IN | ERR
    assert state(pcm) == "XRUN"
    assert pcm.read() == (-errno.EPIPE, b"")
    # It was prepared but not started: whoever only polls now waits for ever.
    assert state(pcm) == "PREPARED"
    assert wait(pcm, 50) is None
    assert pcm.read()[0] >= 0
    assert wait_for(pcm, IN) == IN


def test_an_overrun_at_a_frame_comes_after_exactly_so_many_frames(card, pcm):
    card.capture.xrun(at=1000)
    got = 0
    while True:
        count, _ = pcm.read()
        if count < 0:
            break
        got += count
        wait(pcm)
    assert (count, got, card.capture.frames) == (-errno.EPIPE, 1000, 1000)


def test_avail_returns_the_error_as_a_negative_number_and_raises_nothing(card, pcm):
    pcm.read()
    card.capture.xrun()
    assert pcm.avail() == -errno.EPIPE


def test_a_suspended_stream_fails_until_it_is_dropped(card, pcm):
    pcm.read()
    card.capture.suspend()
    assert wait_for(pcm, ERR) == IN | ERR
    for _ in range(2):
        with refused(errno.ESTRPIPE):
            pcm.read()
    assert state(pcm) == "SUSPENDED"
    assert pcm.drop() == 0
    assert pcm.read()[0] >= 0
    assert state(pcm) == "RUNNING"


@pytest.mark.parametrize("error", [errno.EIO, errno.EBADFD, errno.ENODEV])
def test_a_failed_read_raises_with_the_text_of_its_number_and_the_next_may_work(card, pcm, error):
    pcm.read()
    card.capture.fail_transfer(error)
    assert wait_for(pcm, IN) == IN
    with refused(error):
        pcm.read()
    assert state(pcm) == "RUNNING"
    assert pcm.read()[0] >= 0
    assert card.capture.errors == 1


def test_the_error_has_a_text_alone_and_no_number(card, pcm):
    pcm.read()
    card.capture.fail_transfer(errno.EIO)
    with pytest.raises(alsaaudio.ALSAAudioError) as caught:
        pcm.read()
    assert caught.value.args == (f"{os.strerror(errno.EIO)} [hw:CARD=Mic,DEV=0]",)
    assert caught.type.__mro__[1] is Exception


def test_a_failure_that_lasts_ends_by_itself(card, pcm):
    pcm.read()
    card.capture.fail_transfer(errno.EIO, seconds=0.05)
    failures = 0
    while True:
        try:
            pcm.read()
        except alsaaudio.ALSAAudioError:
            failures += 1
        else:
            break
    assert failures > 1


def test_a_failed_poll_tells_error_alone_and_the_stream_runs_on(card, pcm):
    read_frames(pcm, 160)
    card.capture.fail_poll()
    assert wait_for(pcm, ERR) == ERR
    assert state(pcm) == "RUNNING"
    assert pcm.read()[0] >= 0


def test_a_failed_prepare_after_an_overrun_raises_and_the_overrun_comes_again(card, pcm):
    pcm.read()
    card.capture.fail_prepare(errno.EIO)
    card.capture.xrun()
    with refused(errno.EIO):
        pcm.read()
    assert state(pcm) == "XRUN"
    assert pcm.read() == (-errno.EPIPE, b"")


def test_a_stalled_card_gives_no_frames_no_events_and_no_error(card, pcm):
    pcm.read()
    card.capture.stall()
    while pcm.read()[0] > 0:
        pass
    assert wait(pcm, 50) in (0, None)
    assert wait(pcm, 50) is None
    assert pcm.read() == (0, b"")
    assert state(pcm) == "RUNNING"
    card.capture.heal()
    wait_for(pcm, IN)
    assert pcm.read()[0] > 0


def test_a_stall_that_lasts_ends_by_itself_and_a_room_that_goes_on_counts_what_it_lost(card, pcm):
    card.goes_on = 1
    pcm.read()
    card.capture.stall(seconds=0.05)
    while card.capture.frames_lost < 700:
        pcm.avail()
    read_frames(pcm, 160)
    assert card.capture.xruns == 0


def test_a_frozen_card_wakes_poll_but_has_no_frames(card, pcm):
    pcm.read()
    card.capture.freeze()
    while pcm.read()[0] > 0:
        pass
    for _ in range(3):
        wait_for(pcm, IN)
        assert pcm.read() == (0, b"")
    assert state(pcm) == "RUNNING"


def test_a_card_may_move_less_than_a_period_at_a_time(card, pcm):
    card.capture.transfer_limit = 100
    assert pcm.read()[0] <= 100
    for _ in range(3):
        wait_for(pcm, IN)
        assert pcm.read()[0] == 100


@pytest.mark.parametrize(("offset", "least"), [(-60, 100), (80, 160)])
def test_a_card_may_wake_early_or_late(card, pcm, offset, least):
    card.capture.wake_offset = offset
    pcm.read()
    wait_for(pcm, IN)
    assert pcm.avail() >= 160 + offset
    assert pcm.read()[0] >= least


def test_a_card_may_count_in_steps(card, pcm):
    card.capture.pointer_step = 100
    read_frames(pcm, 1)
    while pcm.read()[0] > 0:
        pass
    assert card.capture.frames % 100 == 0


def test_a_busy_card_is_told_at_opening_and_proc_tells_who_has_it(rack, card, pcm):
    with refused(errno.EBUSY):
        open_pcm()
    with refused(errno.EBUSY):
        open_pcm(blocks=True)
    status = (rack.proc / "card0" / "pcm0c" / "sub0" / "status").read_text()
    assert f"owner_pid   : {threading.get_native_id()}\n" in status
    assert card.capture.owner == threading.get_native_id()
    open_speaker().close()


@pytest.mark.parametrize("error", [errno.EBUSY, errno.EACCES, errno.ENODEV, errno.EIO])
def test_opening_fails_as_often_as_it_was_told_to(card, error):
    card.capture.fail_open(error, times=2)
    for _ in range(2):
        with refused(error):
            open_pcm()
    open_pcm().close()
    assert (card.capture.opens_tried, card.capture.opens, card.capture.closes) == (3, 1, 1)


@pytest.mark.parametrize(
    ("device", "error"),
    [
        ("hw:CARD=Nobody,DEV=0", errno.ENODEV),
        ("hw:7,0", errno.ENOENT),
        ("hw:CARD=Mic,DEV=1", errno.ENOENT),
        ("nonsense", errno.ENOENT),
    ],
)
def test_what_is_not_there_is_told_as_alsa_tells_it_of_real_cards(card, device, error):
    with refused(error):
        open_pcm(device)


def test_a_card_without_capture_has_no_such_device(rack):
    rack.plug(rack.card("Out", playback=Offer()))
    with refused(errno.ENOENT):
        open_pcm("hw:CARD=Out,DEV=0")


def test_an_unplugged_card_fails_for_good_even_when_another_one_takes_its_place(rack, card):
    pcm = open_pcm(periods=50)
    pcm.read()
    card.unplug()
    assert wait_for(pcm, ERR) == ERR | NVAL
    for _ in range(2):
        with refused(errno.ENODEV):
            pcm.read()
    assert state(pcm) == "DISCONNECTED"
    with refused(errno.ENODEV):
        pcm.drop()
    with refused(errno.ENODEV):
        open_pcm()
    rack.plug(card)
    with refused(errno.ENODEV):
        pcm.read()
    again = open_pcm(periods=50)
    pcm.close()
    assert read_frames(again, 160)
    assert card.capture.owner == threading.get_native_id()
    again.close()


def test_a_card_returns_under_another_number_and_is_found_by_its_id(rack, card):
    card.unplug()
    rack.plug(rack.card("Other", playback=Offer()))
    rack.plug(card, index=3)
    for device in ("hw:CARD=Mic,DEV=0", "hw:3,0"):
        open_pcm(device).close()
    with refused(errno.ENOENT):
        open_pcm("hw:0,0")


def test_a_card_may_return_by_itself(rack, card):
    card.unplug()
    rack.plug_later(card, 0.02, index=5)
    while True:
        try:
            pcm = open_pcm()
        except alsaaudio.ALSAAudioError:
            continue
        break
    pcm.close()
    assert card.index == 5


def test_a_card_may_be_unplugged_at_a_frame(card):
    pcm = open_pcm(periods=50)
    card.capture.unplug(at=500)
    with refused(errno.ENODEV):
        read_frames(pcm, 1000)
    assert card.capture.frames == 500
    pcm.close()


def test_whoever_blocks_in_read_is_woken_by_an_unplug(card):
    pcm = open_pcm(blocks=True)
    pcm.read()
    card.capture.stall()
    timer = threading.Timer(0.05, card.unplug)
    timer.start()
    with refused(errno.ENODEV):
        while True:
            pcm.read()
    timer.join()
    pcm.close()


def test_a_blocked_read_lets_other_threads_run(card):
    pcm = open_pcm(blocks=True)
    pcm.read()
    card.capture.stall()
    # This thread could not heal the card if read() kept the interpreter's lock.
    timer = threading.Timer(0.05, card.capture.heal)
    timer.start()
    assert pcm.read()[0] == 160
    timer.join()
    pcm.close()


def test_a_dropped_stream_starts_anew_with_the_next_read(pcm):
    pcm.read()
    assert pcm.drop() == 0
    assert state(pcm) == "SETUP"
    assert wait(pcm) == IN | ERR
    assert pcm.read()[0] >= 0
    assert state(pcm) == "RUNNING"


def test_capture_drains_at_once(pcm):
    pcm.read()
    assert pcm.drain() == 0
    assert state(pcm) == "SETUP"


def test_a_closed_pcm_refuses_everything_but_another_close(card):
    pcm = open_pcm()
    pcm.close()
    pcm.close()
    # Not info() nor polldescriptors_revents(): those end the process with an assertion.
    for call in (pcm.read, pcm.avail, pcm.state, pcm.polldescriptors, pcm.drop):
        with pytest.raises(alsaaudio.ALSAAudioError, match="closed"):
            call()


def test_events_must_be_translated_together_and_never_from_nothing(pcm):
    with refused(errno.EINVAL):
        pcm.polldescriptors_revents([])


def test_playback_starts_with_the_very_first_frame_written(card, speaker):
    assert state(speaker) == "PREPARED"
    assert wait(speaker) == OUT
    assert speaker.write(bytes(2)) == 1
    assert state(speaker) == "RUNNING"


def test_a_write_takes_what_there_is_room_for_and_a_full_buffer_takes_nothing(card):
    pcm = open_speaker()
    card.playback.stall()
    assert pcm.write(PERIOD * 3) == 480
    assert pcm.write(PERIOD * 3) == 160
    assert pcm.write(PERIOD) == 0
    assert pcm.avail() == 0
    assert wait(pcm, 50) in (0, None)
    card.playback.heal()
    assert wait_for(pcm, OUT) == OUT
    assert 160 <= pcm.write(PERIOD * 4) < 640
    pcm.close()


def test_a_write_wants_whole_frames_and_takes_any_bytes(speaker):
    with pytest.raises(alsaaudio.ALSAAudioError, match="multiple of framesize"):
        speaker.write(b"abc")
    assert speaker.write(b"") == 0
    assert speaker.write(memoryview(PERIOD)) == 160
    assert speaker.write(np.zeros(10, np.int16)) == 10


def test_an_underrun_is_told_by_poll_and_returned_once_and_what_was_written_is_not_taken(
    card, speaker
):
    speaker.write(LONG)
    card.playback.xrun()
    assert wait_for(speaker, ERR) == OUT | ERR
    taken = card.playback.frames
    assert speaker.write(PERIOD) == -errno.EPIPE
    assert card.playback.frames == taken
    assert state(speaker) == "PREPARED"
    assert wait_for(speaker, OUT) == OUT
    assert speaker.write(PERIOD) == 160


def test_drain_in_non_blocking_mode_raises_and_goes_on_draining(card, speaker):
    speaker.write(LONG)
    with refused(errno.EAGAIN):
        speaker.drain()
    assert state(speaker) == "DRAINING"
    with refused(errno.EBADFD):
        speaker.write(PERIOD)
    wait_for(speaker, OUT)
    assert speaker.drain() == 0
    assert state(speaker) == "SETUP"
    assert speaker.write(PERIOD) == 160


def test_closing_in_non_blocking_mode_drops_what_has_not_sounded(card):
    pcm = open_speaker(periods=50)
    pcm.write(LONG)
    pcm.close()
    assert card.playback.frames_unplayed > 0


def test_a_card_that_can_pause_says_so_and_keeps_its_sound(rack):
    rack.plug(rack.card("Pause", playback=Offer(can_pause=True)))
    pcm = open_speaker("hw:CARD=Pause", periods=50)
    pcm.write(LONG)
    assert pcm.info()["can_pause"]
    assert pcm.pause() == 0
    room = pcm.avail()
    assert state(pcm) == "PAUSED"
    assert pcm.avail() == room
    assert pcm.pause(0) == 0
    assert state(pcm) == "RUNNING"
    with refused(errno.EBADFD):
        pcm.pause(0)
    pcm.close()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENODEV])
def test_a_failed_write_raises_and_the_next_may_work(card, speaker, error):
    speaker.write(LONG)
    card.playback.fail_transfer(error)
    with refused(error):
        speaker.write(PERIOD)
    assert speaker.write(PERIOD) == 160


def test_an_unplugged_speaker_tells_error_and_refuses_everything(card):
    pcm = open_speaker()
    pcm.write(PERIOD)
    card.unplug()
    assert wait_for(pcm, ERR) == ERR | NVAL
    for call in (lambda: pcm.write(PERIOD), pcm.drop, pcm.drain):
        with refused(errno.ENODEV):
            call()
    pcm.close()


def test_both_directions_fail_on_their_own(card, pcm, speaker):
    pcm.read()
    speaker.write(PERIOD)
    card.playback.xrun()
    wait_for(speaker, ERR)
    assert state(pcm) == "RUNNING"
    assert wait_for(pcm, IN) == IN


def test_another_process_is_told_of_faults_too_and_its_end_frees_the_card(rack, card):
    program = (
        "import alsaaudio, sys\n"
        "pcm = alsaaudio.PCM(alsaaudio.PCM_CAPTURE, device='hw:CARD=Mic', rate=16000,\n"
        "                    channels=1, periodsize=160, periods=50)\n"
        "while True:\n"
        "    print(pcm.read()[0], flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"160\n"
        with refused(errno.EBUSY):
            open_pcm()
        assert card.capture.owner == process.pid
        card.capture.xrun()
        while process.stdout.readline() != b"-32\n":
            pass
        process.kill()
        process.wait()
    open_pcm().close()


def test_a_ninth_fault_at_a_time_is_refused(card):
    for _ in range(8):
        card.capture.xrun(at=10**9)
    with pytest.raises(RuntimeError, match="eight"):
        card.capture.xrun()
    card.capture.heal()
    card.capture.xrun()
