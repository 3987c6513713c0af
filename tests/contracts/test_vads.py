"""What every detector in ``engines.VADS`` has in common: ``rt.front_end.BlockVad``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio.sounds import buzz, silence
from oyez.config import Settings
from oyez.errors import EngineError
from oyez.messages import BLOCK_FRAMES
from oyez.speech import engines

SOUND = np.concatenate((silence(400), buzz(600), silence(600)))

every = pytest.mark.parametrize("engine", sorted(engines.VADS))


def make(engine, aggressiveness=2):
    settings = replace(Settings().vad, engine=engine, aggressiveness=aggressiveness)
    return engines.make_vad(settings)


def flags(vad, samples=SOUND):
    return [vad.is_speech(block) for block in samples.reshape(-1, BLOCK_FRAMES)]


@every
@pytest.mark.parametrize("aggressiveness", [0, 1, 2, 3])
def test_silence_is_no_speech_however_long_it_lasts(engine, aggressiveness):
    assert not any(flags(make(engine, aggressiveness), silence(5_000)))


@every
def test_what_sounds_like_a_voice_is_speech_and_the_silence_after_it_is_not(engine):
    speech = flags(make(engine))
    assert all(type(flag) is bool for flag in speech)
    assert not any(speech[:20])
    assert all(speech[25:50])
    assert not any(speech[65:])


@every
def test_the_same_sound_gives_the_same_flags_in_each_detector(engine):
    one, other = make(engine), make(engine)
    assert flags(one) == flags(other)


@every
def test_two_detectors_do_not_hear_each_other(engine):
    alone, beside = make(engine), make(engine)
    noise = np.random.default_rng(1).integers(-9_000, 9_000, len(SOUND), np.int16)
    loud = make(engine)
    mixed = []
    pairs = zip(SOUND.reshape(-1, BLOCK_FRAMES), noise.reshape(-1, BLOCK_FRAMES), strict=True)
    for block, other in pairs:
        mixed.append(beside.is_speech(block))
        loud.is_speech(other)
    assert mixed == flags(alone)


@every
@pytest.mark.parametrize("frames", [0, 1, 160, 319, 321, 480, 640])
def test_a_block_of_another_size_is_an_error_and_no_silence(engine, frames):
    with pytest.raises(EngineError, match=f"{BLOCK_FRAMES} frames, not {frames}"):
        make(engine).is_speech(np.zeros(frames, np.int16))


@every
def test_a_block_may_be_read_only_and_is_left_as_it_is(engine):
    block = buzz(20)
    before = block.copy()
    block.flags.writeable = False
    make(engine).is_speech(block)
    np.testing.assert_array_equal(block, before)


@every
@pytest.mark.parametrize("level", [-32_768, 32_767, 1])
def test_a_constant_does_no_harm(engine, level):
    flags(make(engine), np.full(BLOCK_FRAMES * 20, level, np.int16))
