"""The simulated room: questions that a voice speaks beforehand, in a room with noise.

Made by main before anything is heard; then it is a source like any recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import soxr

from oyez.audio import room
from oyez.audio.wav import ArraySource
from oyez.errors import ConfigError
from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from oyez.config import SimulationSettings
    from oyez.messages import PcmFloat
    from oyez.speech.engines import Synthesizer

LEAD_MS = 1_000
"""Room tone before the first question."""
GAP_MS = 5_000
"""Room tone between two questions, while the answer is spoken."""
TAIL_MS = 3_000
"""Room tone after the last question."""


def simulated_room(settings: SimulationSettings, voice: Synthesizer) -> ArraySource:
    """The configured questions as a source. The same settings give the same samples.

    Raises:
        ConfigError: no question can be spoken.
        EngineError: the voice does not answer.
    """
    questions = [sound for text in settings.questions if len(sound := _spoken(text, voice))]
    if not questions:
        raise ConfigError(["simulation.questions: none of them holds anything that can be spoken"])
    scene = room.scene(
        questions,
        lead_ms=LEAD_MS,
        gap_ms=GAP_MS,
        tail_ms=TAIL_MS,
        snr_db=settings.snr_db,
        reverb_ms=settings.reverb_ms,
        seed=settings.seed,
    )
    return ArraySource(scene.samples, RATE_HZ, "the simulated room")


def _spoken(text: str, voice: Synthesizer) -> PcmFloat:
    """A question at 16 kHz."""
    pieces = list(voice.speak(text, steady=True))
    if not pieces:
        return np.zeros(0, np.float32)
    return np.asarray(soxr.resample(np.concatenate(pieces), voice.rate_hz, RATE_HZ), np.float32)
