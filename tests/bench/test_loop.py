"""What the loop's verdict says of made-up receipts whose faults are known."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench import loop, peer, pipeline, report, timeline

TEXTS = ("ten of clubs", "what time is it", "pause", "turn on the lamp")


def said(number, text, **changes):
    begin = number * 100_000
    known = {"longest_pause_ms": 50, "snr_db": 20, "room": "300 ms", "clip": f"clip {number}"}
    return timeline.Utterance(
        text=text, begin_frame=begin, end_frame=begin + 32_000, **known | changes
    )


@pytest.fixture
def truth():
    return timeline.Timeline(
        samples=np.zeros(400_000, np.int16),
        utterances=tuple(said(number, text) for number, text in enumerate(TEXTS)),
        plan=timeline.Plan(),
        gain_db=0,
    )


def receipt(number, text, *, begin_ms=0, end_ms=2000, wait_ms=500, **changes):
    """Heard of utterance ``number`` between these ms; its end declared ``wait_ms`` after that."""
    begin, end = (number * 100_000 + ms * 16 for ms in (begin_ms, end_ms))
    endpoint = end + wait_ms * 16
    fields = {
        "heard": (begin, end),
        "cut": (max(0, begin - 6400), endpoint),
        "endpoint_frame": endpoint,
        "text_frame": endpoint + 1600,
        "answer_frame": endpoint + 3200,
        "decode_ms": 100.0,
        "reason": "silence",
        "text": text,
    }
    return pipeline.Receipt(**fields | changes)


def test_when_all_is_heard_well_the_waits_are_counted_from_the_true_last_word(truth):
    heard = [receipt(n, text.title() + ".", end_ms=1900) for n, text in enumerate(TEXTS)]
    verdict = loop.judge(truth, heard)
    assert verdict["heard_as_one"] == verdict["utterances"] == 4
    assert verdict["wait_ms"]["endpoint"]["p50"] == 400
    assert verdict["wait_ms"]["text"] == {"n": 4, "p50": 500, "p95": 500, "p99": 500, "max": 500}
    assert verdict["wait_ms"]["answer"]["p95"] == 600
    assert verdict["words"]["wer"] == 0
    assert verdict["missed"] == verdict["split"] == verdict["merged"] == verdict["false"] == []


def test_each_fault_is_told_by_its_kind_and_only_whole_utterances_are_timed(truth):
    heard = [
        receipt(0, "ten of", end_ms=900),
        receipt(0, "clubs", begin_ms=1400),
        receipt(1, "what time is it pause", end_ms=100_000 // 16 + 2000),
        receipt(3, "hum", begin_ms=-3000, end_ms=-2500),
    ]
    verdict = loop.judge(truth, heard)
    assert verdict["split"] == [{"clip": "clip 0", "longest_pause_ms": 50}]
    assert verdict["merged"] == ["what time is it pause"]
    assert verdict["missed"] == ["clip 3"]
    assert verdict["false"] == ["hum"]
    assert verdict["heard_as_one"] == 0
    assert verdict["wait_ms"]["text"] == report.spread([])
    words = verdict["words"]
    # The merged words count once, for the first of the two; the second's is then deleted.
    assert (words["words"], words["inserted"], words["deleted"]) == (12, 1, 5)


def test_an_utterance_without_answer_has_no_answer_wait(truth):
    heard = [receipt(0, "", answer_frame=None), receipt(1, "what time is it")]
    verdict = loop.judge(truth, heard)
    assert verdict["wait_ms"]["answer"]["n"] == 1
    assert verdict["wait_ms"]["text"]["n"] == 2


def test_somebody_who_was_cut_short_shows_as_a_negative_wait(truth):
    verdict = loop.judge(truth, [receipt(0, "ten", end_ms=1100, wait_ms=200)])
    assert verdict["rows"][0]["endpoint"] == -700


def test_the_plain_way_waits_for_each_step_after_the_same_endpoint():
    ours = receipt(1, "what time is it")
    turn = peer.Turn(decode_ms=900, synthesis_ms=250, text="what time is it")
    plain = loop.as_plain(ours, turn)
    assert plain.endpoint_frame == ours.endpoint_frame
    assert plain.text_frame == ours.endpoint_frame + 900 * 16
    assert plain.answer_frame == ours.endpoint_frame + 1150 * 16
    silent = loop.as_plain(ours, peer.Turn(decode_ms=900, synthesis_ms=0, text=""))
    assert silent.answer_frame is None


def test_ratios_say_how_many_times_longer_the_peer_takes(truth):
    ours = loop.judge(truth, [receipt(0, "ten of clubs")])
    plain = loop.judge(
        truth, [receipt(0, "ten of clubs", text_frame=32_000 + 19_200, answer_frame=None)]
    )
    assert loop.ratios(plain, ours) == {
        "text_p50": 2.0,
        "text_p95": 2.0,
        "answer_p50": None,
        "answer_p95": None,
    }


def test_the_peer_reads_at_full_context_and_makes_the_whole_answer_before_it_is_played():
    calls = []

    class Engine:
        def warm_up(self):
            calls.append("warm")

        def read_whole(self, samples):
            calls.append(f"read {len(samples)}")
            return type("Reading", (), {"text": "hello" if len(samples) > 1 else ""})

        def speak(self, text):
            for piece in range(2):
                calls.append(f"{text} {piece}")
                yield np.zeros(10, np.float32)

    engine = Engine()
    utterances = [np.zeros(5, np.int16), np.zeros(1, np.int16)]
    turns = peer.take_turns(utterances, engine, engine, template="You said: {text}")
    assert [turn.text for turn in turns] == ["hello", ""]
    assert calls[-4:] == ["read 5", "You said: hello 0", "You said: hello 1", "read 1"]
    assert all(turn.decode_ms >= 0 and turn.synthesis_ms >= 0 for turn in turns)


def test_percentiles_lie_between_their_neighbours():
    assert report.spread([3, 1, 2]) == {"n": 3, "p50": 2, "p95": 2.9, "p99": 3.0, "max": 3}
    assert report.spread([])["p50"] is None


def test_a_result_says_where_and_of_what_it_was_measured():
    told = json.loads(json.dumps(report.circumstances()))
    assert told["machine"]["cores"] >= 1
    assert told["machine"]["memory_mb"] > 100
    assert set(told["revision"]) == {"commit", "dirty"}
    assert told["versions"]["numpy"] == np.__version__


EVENT = {
    "event": "receipt",
    "begin_frame": 320,
    "end_frame": 32_000,
    "speech_begin_frame": 6400,
    "speech_end_frame": 24_000,
    "endpoint_frame": 32_000,
    "text_frame": 33_600,
    "answer_frame": None,
    "decode_ms": 100.5,
    "reason": "silence",
    "text": None,
}


def test_receipts_are_picked_out_of_the_events_that_the_product_prints():
    lines = [json.dumps({"event": "state", "state": "listening"}), json.dumps(EVENT)]
    (found,) = pipeline.receipts(lines)
    assert found.heard == (6400, 24_000)
    assert found.text == ""
    assert found.answer_frame is None


@pytest.mark.parametrize("line", ["Traceback", "[1]", '{"event": "receipt"}', "{}"])
def test_output_that_is_no_event_is_refused_with_its_text(line):
    with pytest.raises(pipeline.PipelineError, match="not an event"):
        pipeline.receipts([line])


def test_a_failing_product_is_told_with_what_it_said(tmp_path):
    missing = tmp_path / "missing.wav"
    with pytest.raises(pipeline.PipelineError, match="oyez run ended with"):
        pipeline.stream(missing, config=None, paced=False)
