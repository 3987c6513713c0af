"""Recordings of people, for tests and for the bench: where they are, what is said, and when.

The project ships none. They are looked for in this order:

1. the folder that ``$OYEZ_AUDIO`` names, with a ``manifest.json``;
2. ``../shared/audio`` beside the checkout, likewise;
3. the source package of ``pocketsphinx`` 5.1.1, which carries eleven recordings with their texts:
   fetched once with pip, checked by its sha256 and kept in ``$XDG_CACHE_HOME/oyez-tests``.

Where none can be had, ``recordings`` raises ``NoRecordingsError`` with the reasons, and tests that
asked through ``recordings_or_skip`` are skipped with them.

``Clip.active`` is the truth about when somebody speaks. It is found once, from the clean clip, by
the energy rule of ``oyez.audio.room.active_frames``; its result was compared by eye with the
spectrogram of every clip of kind speech, and where a button, a breath, applause or a rising noise
fooled it, ``BY_EYE`` says when the words begin and end (to about 20 ms). Only sound inside of these
bounds is speech.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import wave
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from oyez.audio.room import active_frames

if TYPE_CHECKING:
    from oyez.audio.room import Mask
    from oyez.messages import PcmFloat

RATE_HZ = 16_000

BY_EYE = {  # name: begin and end of the words in ms
    "cards_002": (130, 1710),
    "cards_003": (100, 1290),
    "cmd_en_activate_Mood_Lighting": (600, 1860),
    "cmd_en_add_apples_to_my_Shopping_List": (570, 2330),
    "cmd_en_cancel_all_timers": (570, 1650),
    "cmd_en_cancel_timer": (550, 1240),
    "cmd_en_is_the_Front_Door_locked": (780, 1900),
    "cmd_en_is_the_Garage_Door_open": (880, 2090),
    "cmd_en_lock_the_Front_Door": (610, 1600),
    "cmd_en_nevermind": (620, 1280),
    "cmd_en_next": (580, 1020),
    "cmd_en_pause": (590, 1000),
    "cmd_en_pause_timer": (510, 1130),
    "cmd_en_resume": (490, 1210),
    "cmd_en_resume_timer": (520, 1390),
    "cmd_en_run_Party_Time": (550, 1590),
    "goforward": (500, 2110),
    "jfk": (320, 10430),
    "librivox_0930": (250, 3000),
    "turn_on_the_living_room_lamp": (280, 1420),
    "v2j_hey_mycroft": (590, 1330),
    "v2j_what_time_is_it": (640, 1600),
}

_PACKAGE = "pocketsphinx"
_VERSION = "5.1.1"
_SHA256 = "675778b309a22dfc9b7d37f7621976bba491d2a5f8c59696bd77fd6d07271355"
_IN_PACKAGE = f"{_PACKAGE}-{_VERSION}/test/data/"
_FETCH_TIMEOUT_S = 300


class NoRecordingsError(Exception):
    """No recordings can be had on this machine; the message says why, source by source."""


@dataclass(frozen=True)
class Clip:
    """One recording: 16 kHz, mono, 16 bits.

    ``kind`` is speech, short, noise, music, silence or rir (a room's impulse response);
    ``text`` is what is said, None where nobody wrote it down.
    """

    path: Path
    kind: str
    text: str | None

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @cached_property
    def samples(self) -> PcmFloat:
        """The sound: float32 ``[n]`` in full scales."""
        with wave.open(str(self.path)) as recording:
            layout = recording.getnchannels(), recording.getsampwidth(), recording.getframerate()
            if layout != (1, 2, RATE_HZ):
                raise ValueError(f"{self.path} is not 16 kHz, mono, 16 bits")
            raw = recording.readframes(recording.getnframes())
        return np.frombuffer(raw, "<i2").astype(np.float32) / np.float32(2**15)

    @cached_property
    def active(self) -> Mask:
        """Which frames hold speech: bool ``[n]``."""
        active = active_frames(self.samples)
        if self.name in BY_EYE:
            begin, end = (ms * RATE_HZ // 1000 for ms in BY_EYE[self.name])
            active[:begin] = False
            active[end:] = False
            active[[begin, min(end, len(active)) - 1]] = True
        return active

    @property
    def longest_pause_ms(self) -> float:
        """The longest silence between two words: a hangover below it may end the utterance."""
        voiced = np.flatnonzero(self.active)
        return float(np.max(np.diff(voiced), initial=1) - 1) * 1000 / RATE_HZ


@cache
def _sought() -> tuple[Clip, ...] | str:
    """The clips, or why there are none: sought once in a process, since a fetch may take long."""
    given = os.environ.get("OYEZ_AUDIO")
    beside = Path(__file__).resolve().parents[2] / "shared" / "audio"
    for folder in [Path(given)] if given else [beside]:
        if (folder / "manifest.json").is_file():
            return _from_manifest(folder)
    if given:
        return f"OYEZ_AUDIO names {given}, which holds no manifest.json"
    try:
        return _from_package()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"{beside} is not there, and {_PACKAGE} {_VERSION} cannot be had: {error}"


def recordings(*kinds: str) -> tuple[Clip, ...]:
    """The clips of these kinds (of every kind, when none is named), by name.

    Raises:
        NoRecordingsError: there is no source of recordings on this machine.
    """
    clips = _sought()
    if isinstance(clips, str):
        raise NoRecordingsError(clips)
    return tuple(clip for clip in clips if not kinds or clip.kind in kinds)


def spoken() -> tuple[Clip, ...]:
    """The clips of kind speech whose words are known.

    Raises:
        NoRecordingsError: there is no source of recordings on this machine.
    """
    return tuple(clip for clip in recordings("speech") if clip.text)


def recordings_or_skip(*kinds: str) -> tuple[Clip, ...]:
    """As ``recordings``, for tests: where there are none (of these kinds), the test is skipped."""
    try:
        clips = recordings(*kinds)
    except NoRecordingsError as error:
        pytest.skip(f"no recordings: {error}")
    if not clips:
        pytest.skip(f"the recordings here hold no {' or '.join(kinds)}")
    return clips


def _from_manifest(folder: Path) -> tuple[Clip, ...]:
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    clips = [Clip(folder / entry["file"], entry["kind"], entry["text"]) for entry in entries]
    return tuple(sorted(clips, key=lambda clip: clip.name))


def _from_package() -> tuple[Clip, ...]:
    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache_home / "oyez-tests" / f"{_PACKAGE}-{_VERSION}"
    if not (folder / "manifest.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            _unpack(_fetch(Path(scratch)), Path(scratch) / "unpacked")
            if folder.exists():  # left half by something other than this function
                shutil.rmtree(folder)
            (Path(scratch) / "unpacked").rename(folder)
    return _from_manifest(folder)


def _fetch(folder: Path) -> Path:
    """Download the source package with pip.

    pip asks a source package for its name before it keeps it, and for that it fetches the build
    tools that the package names; nothing is compiled.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    what = ["--no-deps", "--no-binary", _PACKAGE, f"{_PACKAGE}=={_VERSION}"]
    done = subprocess.run(
        [*pip, "download", "--quiet", "--retries", "2", "--dest", str(folder), *what],
        capture_output=True,
        text=True,
        timeout=_FETCH_TIMEOUT_S,
        check=False,
    )
    archive = folder / f"{_PACKAGE}-{_VERSION}.tar.gz"
    if done.returncode or not archive.is_file():
        lines = done.stderr.strip().splitlines() or ["pip said nothing"]
        raise OSError(lines[-1])
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != _SHA256:
        raise ValueError(f"{archive.name} has the sha256 {digest} instead of {_SHA256}")
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    """Write the recordings whose texts are known as WAV files, and a manifest."""
    folder.mkdir()
    with tarfile.open(archive) as package:

        def content(name: str) -> bytes:
            member = package.extractfile(_IN_PACKAGE + name)
            if member is None:
                raise ValueError(f"{archive.name} holds no {name}")
            with member:
                return member.read()

        entries = [{"file": "goforward.wav", "kind": "speech", "text": "go forward ten meters"}]
        with wave.open(str(folder / "goforward.wav"), "wb") as recording:
            recording.setnchannels(1)
            recording.setsampwidth(2)
            recording.setframerate(RATE_HZ)
            recording.writeframes(content("goforward.raw"))
        for series, texts in (("cards", "cards.transcription"), ("librivox", "transcription")):
            for line in content(f"{series}/{texts}").decode().splitlines():
                # <s> ten of clubs  </s> (001)
                found = re.fullmatch(r"<s> (.*?) *</s> \((.*)\)", line)
                if found is None:
                    raise ValueError(f"{texts} holds the line {line!r}")
                text, source = found.groups()
                name = f"{series}_{source.rsplit('-', 1)[-1]}.wav"
                (folder / name).write_bytes(content(f"{series}/{source}.wav"))
                entries.append({"file": name, "kind": "speech", "text": text})
    (folder / "manifest.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
