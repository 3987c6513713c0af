"""The fixtures of these tests."""

from __future__ import annotations

import dataclasses

import pytest

from alsa_card import card_library, rack
from oyez.config import CaptureSettings, Settings

__all__ = ["asound", "card_library", "fast", "rack"]


@pytest.fixture
def asound(rack, monkeypatch, tmp_path):
    """The rack's cards are the kernel's, and nothing is remembered from other runs."""
    monkeypatch.setenv("OYEZ_PROC_ASOUND", str(rack.proc))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return rack


@pytest.fixture
def fast():
    """Settings for cards that run faster than time: with buffers that survive it."""
    settings = Settings()
    capture = CaptureSettings(period_ms=60, periods=32)
    return dataclasses.replace(settings, audio=dataclasses.replace(settings.audio, capture=capture))
