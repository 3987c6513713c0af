"""What tests of the whole product share: models, a configuration with few threads, and speech.

Speech comes from recordings of people (``corpus.recordings_or_skip``) and, on machines that have
none, from the product's own voice, which says the same text with the same samples every time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from e2e import sounds
from e2e.product import Product
from oyez import places
from oyez.config import Settings
from oyez.models.catalogue import Catalogue, Kind
from oyez.models.store import ModelStore, State
from oyez.speech import engines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from oyez.messages import PcmFloat
    from oyez.speech.engines import Synthesizer, Transcriber

DEFAULTS = Settings()
NEEDED = (DEFAULTS.transcription.model, DEFAULTS.voice.model)


@pytest.fixture(scope="session")
def threads() -> int:
    """How many threads an inference may take in tests: they share the machine with others."""
    return int(os.environ.get("OYEZ_TEST_THREADS", "1"))


@pytest.fixture(scope="session")
def models_folder() -> Path:
    """The folder with the default models; skips where they are not."""
    folder = places.models_folder()
    states = ModelStore(folder, Catalogue.load()).list()
    here = {entry.name for entry in states if entry.state is State.PRESENT}
    if missing := [name for name in NEEDED if name not in here]:
        pytest.skip(f"{folder} lacks {' and '.join(missing)}: `scripts/test` fetches them")
    return folder


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory, threads: int) -> Product:
    """Runs ``oyez`` in processes of its own."""
    return Product(tmp_path_factory.mktemp("product"), threads=threads)


@pytest.fixture(scope="session")
def no_card(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine without sound devices, whatever this one has.

    ALSA is told of one card alone, and that one is not there. (Told of none, PortAudio aborts.)
    """
    folder = tmp_path_factory.mktemp("alsa")
    path = folder / "asound.conf"
    path.write_text("pcm.missing { type hw card 99 }\n", encoding="utf-8")
    return {"ALSA_CONFIG_PATH": str(path), "OYEZ_PROC_ASOUND": str(folder)}


@pytest.fixture(scope="session")
def voice(models_folder: Path, threads: int) -> Synthesizer:
    """The default voice, in this process."""
    model = ModelStore(models_folder, Catalogue.load()).ready(DEFAULTS.voice.model, Kind.PIPER)
    return engines.make_synthesizer(DEFAULTS.voice, model, threads)


@pytest.fixture(scope="session")
def reader(models_folder: Path, threads: int) -> Transcriber:
    """The default recognizer, in this process."""
    name = DEFAULTS.transcription.model
    model = ModelStore(models_folder, Catalogue.load()).ready(name, Kind.WHISPER)
    return engines.make_transcriber(DEFAULTS.transcription, model, threads)


@pytest.fixture(scope="session")
def said(voice: Synthesizer) -> Callable[[str], PcmFloat]:
    """A text as the voice says it: float32 [n] at 16 kHz, the same samples every time."""
    known: dict[str, PcmFloat] = {}

    def say(text: str) -> PcmFloat:
        if text not in known:
            sound = np.concatenate(list(voice.speak(text, steady=True)))
            known[text] = sounds.at_16_khz(sound, voice.rate_hz)
        return known[text]

    return say
