"""What holds for the endpointer whatever is heard, found by hypothesis."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from oyez.messages import BLOCK_FRAMES, EndReason, Span, SpeechStarted
from oyez.speech.endpointer import ONSET_GAP_MS, to_blocks
from speech.endpointing import hear

DURATIONS = st.fixed_dictionaries(
    {
        "pre_roll": st.integers(0, 20),
        "hangover": st.integers(1, 25),
        "min_speech": st.integers(1, 12),
        "longest": st.integers(1, 80),
    }
)
# Runs, since a coin for every block would hardly ever give a pause that ends an utterance.
RUNS = st.lists(st.tuples(st.sampled_from("##..#.gG_"), st.integers(1, 30)), max_size=30)
BLOCKS = st.text(alphabet="#..gG_", max_size=60)
PICTURES = st.one_of(RUNS.map(lambda runs: "".join(sign * count for sign, count in runs)), BLOCKS)
ONSET_GAP = to_blocks(ONSET_GAP_MS)

any_sound = given(picture=PICTURES, durations=DURATIONS)
often = settings(max_examples=300)


def blocks_of(event):
    return range(event.begin_frame // BLOCK_FRAMES, event.end_frame // BLOCK_FRAMES)


def speech_of(span):
    return range(span.speech_begin_frame // BLOCK_FRAMES, span.speech_end_frame // BLOCK_FRAMES)


def longest(durations):
    least = durations["pre_roll"] + durations["min_speech"] + durations["hangover"]
    return max(durations["longest"], least)


def goes_on(one, other, picture, durations):
    """Whether ``one`` was cut at the maximum in the middle of what ``other`` goes on with."""
    pause = picture[speech_of(one).stop : speech_of(other).start]
    undisturbed = set(pause) <= {"."} and len(pause) < durations["hangover"]
    return one.reason is EndReason.MAX_LENGTH and undisturbed


@any_sound
@often
def test_utterances_are_in_order_and_never_overlap(picture, durations):
    spans = hear(picture, EndReason.END_OF_INPUT, **durations).spans
    assert [span.number for span in spans] == list(range(1, len(spans) + 1))
    assert all(span.begin_frame >= 0 for span in spans)
    assert all(one.end_frame <= other.begin_frame for one, other in pairwise(spans))


@any_sound
@often
def test_speech_lies_in_its_utterance_and_the_endpoint_at_its_end(picture, durations):
    for span in hear(picture, EndReason.END_OF_INPUT, **durations).spans:
        assert span.begin_frame <= span.speech_begin_frame < span.speech_end_frame
        assert span.speech_end_frame <= span.end_frame == span.endpoint_frame
        speech = speech_of(span)
        assert picture[speech[0]] == picture[speech[-1]] == "#"
        assert "#" not in picture[speech.stop : span.end_frame // BLOCK_FRAMES]


@any_sound
@often
def test_every_voiced_block_is_in_one_utterance_or_in_a_blip(picture, durations):
    heard = hear(picture, EndReason.END_OF_INPUT, **durations)
    taken = [block for span in heard.spans for block in blocks_of(span)]
    assert len(taken) == len(set(taken))
    known = set(taken).union(*map(blocks_of, heard.blips))
    assert {block for block, sign in enumerate(picture) if sign == "#"} <= known


@any_sound
@often
def test_no_utterance_holds_a_block_that_was_gated_or_lost(picture, durations):
    for span in hear(picture, EndReason.END_OF_INPUT, **durations).spans:
        assert not set("gG_").intersection(picture[block] for block in blocks_of(span))


@any_sound
@often
def test_no_utterance_is_longer_than_the_maximum_and_a_cut_one_has_just_that(picture, durations):
    for span in hear(picture, EndReason.END_OF_INPUT, **durations).spans:
        length = len(blocks_of(span))
        assert length <= longest(durations)
        assert span.reason is not EndReason.MAX_LENGTH or length == longest(durations)


@any_sound
@often
def test_silence_ends_an_utterance_after_exactly_the_hangover(picture, durations):
    for span in hear(picture, EndReason.END_OF_INPUT, **durations).spans:
        silent = blocks_of(span).stop - speech_of(span).stop
        assert silent <= durations["hangover"]
        assert span.reason is not EndReason.SILENCE or silent == durations["hangover"]


@any_sound
@often
def test_no_pause_within_an_utterance_could_have_ended_it(picture, durations):
    # Before an utterance is sure, a pause may be as long as the gap of a stop consonant.
    for span in hear(picture, EndReason.END_OF_INPUT, **durations).spans:
        voiced = [block for block in speech_of(span) if picture[block] == "#"]
        pauses = [later - earlier - 1 for earlier, later in pairwise(voiced)]
        assert all(pause < max(durations["hangover"], ONSET_GAP) for pause in pauses)


@any_sound
@often
def test_an_utterance_begins_with_its_pre_roll_or_where_the_one_that_it_goes_on_with_was_cut(
    picture, durations
):
    spans = hear(picture, EndReason.END_OF_INPUT, **durations).spans
    for one, other in pairwise([None, *spans]):
        begin, speech = blocks_of(other).start, speech_of(other).start
        cut_at = blocks_of(one).stop if one else 0
        if one and goes_on(one, other, picture, durations):
            assert begin == cut_at
        else:
            free = max((n + 1 for n in range(speech) if picture[n] in "gG_"), default=0)
            assert begin == max(cut_at, free, speech - durations["pre_roll"])


@any_sound
@often
def test_every_utterance_was_announced_before_it_ended(picture, durations):
    heard = hear(picture, EndReason.END_OF_INPUT, **durations)
    told = [e for _, e in heard.events if isinstance(e, SpeechStarted | Span)]
    assert len(told) % 2 == 0
    for started, span in zip(told[::2], told[1::2], strict=True):
        assert isinstance(started, SpeechStarted)
        assert isinstance(span, Span)
        assert started.number == span.number
        assert started.frame == span.speech_begin_frame < started.known_frame <= span.end_frame


@any_sound
@often
def test_a_beginning_needs_the_minimum_of_speech_unless_it_goes_on(picture, durations):
    spans = hear(picture, EndReason.END_OF_INPUT, **durations).spans
    for one, other in pairwise([None, *spans]):
        voiced = sum(picture[block] == "#" for block in speech_of(other))
        enough = voiced >= durations["min_speech"]
        assert enough or (one and goes_on(one, other, picture, durations))


@any_sound
@often
def test_no_event_says_more_than_was_known(picture, durations):
    for known, event in hear(picture, EndReason.END_OF_INPUT, **durations).events:
        newest = getattr(event, "known_frame", getattr(event, "end_frame", 0))
        assert newest <= known * BLOCK_FRAMES
