"""A sound card for tests: ALSA's null device, which hears silence and plays into nothing."""

from __future__ import annotations

import pytest

CARD = """
pcm.oyez_null { type null hint { show on description "a card that hears and says nothing" } }
pcm.!default { type null }
ctl.!default { type null }
"""


@pytest.fixture(scope="module")
def null_card(tmp_path_factory):
    """The name of a card that PortAudio really opens: ALSA's null device."""
    try:
        import sounddevice  # noqa: PLC0415 - it opens PortAudio, which may not be there
    except (ImportError, OSError) as error:
        pytest.skip(f"no PortAudio: {error}")
    path = tmp_path_factory.mktemp("alsa") / "asound.conf"
    path.write_text(CARD, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALSA_CONFIG_PATH", str(path))
        sounddevice._terminate()
        sounddevice._initialize()
        if "oyez_null" not in {device["name"] for device in sounddevice.query_devices()}:
            pytest.skip("this PortAudio knows no devices of ALSA")
        yield "oyez_null"
    sounddevice._terminate()
    sounddevice._initialize()
