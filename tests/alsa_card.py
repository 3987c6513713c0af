"""Fixtures: test cards in place of the machine's own. A folder's conftest.py imports what it needs.

``rack`` is an empty :class:`alsa.card.Rack`, to which ALSA's names lead for the length of a test;
``pulse`` is a private PulseAudio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from alsa.build import build, missing_tools
from alsa.card import Rack
from alsa.pulse import Pulse, missing_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["card_library", "pulse", "pulse_server", "rack"]


@pytest.fixture(scope="session")
def card_library() -> Path:
    """The compiled plugins."""
    reason = missing_tools()
    if reason:
        pytest.skip(reason)
    return build()


@pytest.fixture
def rack(tmp_path: Path, card_library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rack]:
    """A rack without cards, which ALSA_CONFIG_PATH names for this test."""
    made = Rack(tmp_path / "rack", card_library)
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(made.configuration))
    yield made
    made.close()


@pytest.fixture(scope="session")
def pulse_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulse]:
    """One private PulseAudio for all tests: its first period takes two seconds to come."""
    reason = missing_server()
    if reason:
        pytest.skip(reason)
    with Pulse(tmp_path_factory.mktemp("pulse")) as server:
        yield server


@pytest.fixture
def pulse(pulse_server: Pulse, monkeypatch: pytest.MonkeyPatch) -> Pulse:
    """A private PulseAudio whose speaker is heard by its microphone; ALSA leads to it."""
    for name, value in pulse_server.environment.items():
        monkeypatch.setenv(name, value)
    return pulse_server
