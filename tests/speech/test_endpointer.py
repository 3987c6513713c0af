"""When an utterance begins and ends, in pictures: ``#`` is a voiced block, ``.`` a silent one.

Where a test says nothing else: 3 blocks of pre-roll, 5 of hangover, 2 of speech at least, and 40
at most (see ``speech.endpointing``).
"""

from __future__ import annotations

import pytest

from oyez.messages import BLOCK_FRAMES, Blip, EndReason, Span, SpeechStarted
from oyez.speech.endpointer import ONSET_GAP_MS, Endpointer, to_blocks
from speech.endpointing import endpointer, hear


def test_silence_is_nothing():
    assert hear("." * 500, EndReason.END_OF_INPUT).events == []


def test_an_utterance_is_told_when_it_is_sure_and_cut_from_pre_roll_to_hangover():
    heard = hear("..........####......")
    assert heard.events == [
        (
            12,
            SpeechStarted(number=1, frame=10 * BLOCK_FRAMES, known_frame=12 * BLOCK_FRAMES),
        ),
        (
            19,
            Span(
                number=1,
                begin_frame=7 * BLOCK_FRAMES,
                end_frame=19 * BLOCK_FRAMES,
                speech_begin_frame=10 * BLOCK_FRAMES,
                speech_end_frame=14 * BLOCK_FRAMES,
                endpoint_frame=19 * BLOCK_FRAMES,
                reason=EndReason.SILENCE,
            ),
        ),
    ]


def test_a_recording_that_begins_in_the_middle_of_a_word_has_no_pre_roll():
    assert hear("####.....").cuts == [(0, 9)]


def test_a_pre_roll_longer_than_the_past_begins_at_the_first_frame():
    assert hear(".####.....", pre_roll=3).cuts == [(0, 10)]


def test_without_pre_roll_the_utterance_begins_at_its_first_voiced_block():
    assert hear("......####.....", pre_roll=0).cuts == [(6, 15)]


def test_a_pause_shorter_than_the_hangover_keeps_one_utterance():
    assert hear("...###....###.....").cuts == [(0, 18)]


def test_a_pause_as_long_as_the_hangover_makes_two_utterances():
    assert hear("...###.....###.....").cuts == [(0, 11), (11, 19)]


def test_two_pauses_do_not_add_up():
    assert hear("...##....#....#....#.....").cuts == [(0, 25)]


def test_the_pre_roll_does_not_reach_into_the_utterance_before():
    # The second begins one block after the first has ended; its pre-roll would be three.
    heard = hear("...###......###.....", pre_roll=3)
    assert heard.cuts == [(0, 11), (11, 20)]


def test_one_click_is_a_blip():
    heard = hear("...#" + "." * 20)
    assert heard.spans == []
    assert heard.started == []
    assert heard.blips == [Blip(begin_frame=3 * BLOCK_FRAMES, end_frame=4 * BLOCK_FRAMES)]


def test_a_blip_is_told_when_the_gap_after_it_is_too_long_for_a_stop_consonant():
    gap = to_blocks(ONSET_GAP_MS)
    heard = hear("...#" + "." * 40)
    assert [known for known, _ in heard.events] == [4 + gap]


def test_two_short_syllables_with_a_stop_consonant_between_begin_an_utterance():
    heard = hear("...#" + "." * 10 + "#....." + "." * 5)
    assert heard.cuts == [(0, 20)]
    assert heard.started[0].frame == 3 * BLOCK_FRAMES


def test_clicks_far_apart_are_never_an_utterance():
    heard = hear(("#" + "." * 20) * 10)
    assert heard.spans == []
    assert len(heard.blips) == 10


def test_a_word_after_a_click_keeps_its_pre_roll():
    heard = hear("#" + "." * 16 + "###.....", pre_roll=3)
    assert heard.cuts == [(14, 25)]


def test_with_a_minimum_of_one_block_the_first_voiced_block_begins_an_utterance():
    heard = hear("...#.....", min_speech=1)
    assert heard.events[0][0] == 4
    assert heard.cuts == [(0, 9)]


def test_an_endless_speaker_is_cut_without_a_gap():
    heard = hear("." * 5 + "#" * 100 + ".....", longest=40)
    assert heard.cuts == [(2, 42), (42, 82), (82, 110)]
    assert heard.reasons == [EndReason.MAX_LENGTH, EndReason.MAX_LENGTH, EndReason.SILENCE]
    assert [started.number for started in heard.started] == [1, 2, 3]


def test_what_goes_on_after_a_cut_is_sure_from_its_first_voiced_block():
    heard = hear("." * 3 + "#" * 37 + "..#.....", longest=40)
    assert heard.cuts == [(0, 40), (40, 48)]
    assert heard.started[1] == SpeechStarted(
        number=2, frame=42 * BLOCK_FRAMES, known_frame=43 * BLOCK_FRAMES
    )


def test_silence_after_a_cut_gives_no_second_utterance():
    heard = hear("." * 3 + "#" * 37 + "." * 50, EndReason.END_OF_INPUT, longest=40)
    assert heard.cuts == [(0, 40)]
    assert heard.blips == []


def test_a_pause_that_a_cut_falls_into_still_ends_on_time():
    # Three silent blocks before the cut and two after it are the hangover of five: a click that
    # is heard then begins anew, and is not believed.
    heard = hear("." * 3 + "#" * 34 + "..." + ".." + "#" + "." * 20, longest=40)
    assert heard.cuts == [(0, 40)]
    assert len(heard.blips) == 1


def test_the_maximum_holds_pre_roll_and_hangover():
    heard = hear("." * 10 + "#" * 35 + "." * 10, pre_roll=3, hangover=5, longest=40)
    assert heard.cuts[0] == (7, 47)


def test_silence_at_the_very_maximum_is_silence():
    heard = hear("." * 3 + "#" * 32 + ".....", longest=40)
    assert heard.cuts == [(0, 40)]
    assert heard.reasons == [EndReason.SILENCE]


def test_a_maximum_too_short_for_any_utterance_leaves_room_for_the_shortest():
    heard = hear("....##.....", pre_roll=3, hangover=5, min_speech=2, longest=1)
    assert heard.cuts == [(1, 11)]
    assert heard.reasons == [EndReason.SILENCE]


def test_sparse_noise_does_not_make_an_utterance_longer_than_the_maximum():
    # Never so silent that the onset is given up, never so voiced that it is believed.
    sparse = ("#" + "." * 13) * 30
    heard = hear(sparse, EndReason.END_OF_INPUT, min_speech=25, longest=60)
    assert heard.spans == []
    assert len(heard.blips) > 1


def test_an_onset_that_is_believed_at_the_very_maximum_is_cut_there():
    heard = hear("..." + "#" + "." * 13 + "#" * 4 + ".....", min_speech=5, longest=21, hangover=13)
    assert heard.cuts[0] == (0, 21)


def test_a_gate_ends_what_is_open_and_nothing_in_it_is_heard():
    heard = hear("...####GGGGG#####.....")
    assert heard.cuts == [(0, 7), (12, 22)]
    assert heard.reasons == [EndReason.GATED, EndReason.SILENCE]


def test_a_pre_roll_does_not_reach_into_a_gate():
    assert hear("gggggg.###.....").cuts == [(6, 15)]


def test_a_gate_makes_a_blip_of_an_onset():
    heard = hear("...#ggg......")
    assert heard.spans == []
    assert heard.blips == [Blip(begin_frame=3 * BLOCK_FRAMES, end_frame=4 * BLOCK_FRAMES)]


def test_a_gate_after_a_cut_ends_the_utterance_that_went_on():
    heard = hear("." * 3 + "#" * 37 + ".g.###.....", longest=40)
    assert heard.cuts == [(0, 40), (42, 51)]


def test_lost_sound_ends_what_is_open_where_it_was_lost():
    heard = hear("...####______#####.....")
    assert heard.cuts == [(0, 7), (13, 23)]
    assert heard.reasons == [EndReason.GAP, EndReason.SILENCE]


def test_a_pre_roll_does_not_reach_into_lost_sound():
    assert hear("......____.###.....").cuts == [(10, 19)]


@pytest.mark.parametrize("reason", [EndReason.END_OF_INPUT, EndReason.STOPPED])
def test_a_flush_ends_an_utterance_where_the_sound_ends(reason):
    heard = hear("...####..", reason)
    assert heard.cuts == [(0, 9)]
    assert heard.reasons == [reason]


def test_a_flush_while_nobody_speaks_is_nothing():
    assert hear("......", EndReason.STOPPED).events == []


def test_a_flush_in_an_onset_leaves_a_blip():
    heard = hear("...#..", EndReason.END_OF_INPUT)
    assert heard.spans == []
    assert len(heard.blips) == 1


def test_a_flush_after_a_cut_leaves_nothing_more():
    heard = hear("." * 3 + "#" * 37 + ".", EndReason.END_OF_INPUT, longest=40)
    assert heard.cuts == [(0, 40)]


def test_what_was_flushed_is_not_heard_again():
    deciding = endpointer()
    for _ in range(6):
        deciding.process(speech=True)
    assert len(deciding.flush(EndReason.STOPPED)) == 1
    assert deciding.flush(EndReason.STOPPED) == []
    events = [event for _ in range(2) for event in deciding.process(speech=True)]
    assert events == [SpeechStarted(number=2, frame=6 * BLOCK_FRAMES, known_frame=8 * BLOCK_FRAMES)]


def test_the_next_block_is_counted_through_gates_and_gaps():
    deciding = endpointer()
    deciding.process(speech=True)
    deciding.process(speech=False, gated=True)
    assert deciding.next_block == 2
    deciding.skip_to(10)
    assert deciding.next_block == 10


@pytest.mark.parametrize(("duration_ms", "blocks"), [(0, 0), (1, 1), (20, 1), (21, 2), (400, 20)])
def test_durations_are_rounded_up_to_blocks(duration_ms, blocks):
    assert to_blocks(duration_ms) == blocks


def test_a_hangover_and_a_minimum_of_nothing_are_one_block():
    deciding = Endpointer(pre_roll_ms=0, hangover_ms=0, min_speech_ms=0, max_utterance_ms=1_000)
    events = [*deciding.process(speech=True), *deciding.process(speech=False)]
    assert [type(event) for event in events] == [SpeechStarted, Span]
