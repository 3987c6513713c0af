"""What a program does with a card, through the real pyalsaaudio: open, wait, read, write."""

from __future__ import annotations

import select
from typing import Any

import alsaaudio

FORMATS = {
    "S16_LE": alsaaudio.PCM_FORMAT_S16_LE,
    "S24_LE": alsaaudio.PCM_FORMAT_S24_LE,
    "S24_3LE": alsaaudio.PCM_FORMAT_S24_3LE,
    "S32_LE": alsaaudio.PCM_FORMAT_S32_LE,
    "FLOAT_LE": alsaaudio.PCM_FORMAT_FLOAT_LE,
}

STATES = {
    value: name.removeprefix("PCM_STATE_")
    for name, value in vars(alsaaudio).items()
    if name.startswith("PCM_STATE_")
}

PATIENCE_MS = 10_000
"""A poll that lasts this long has hung: the test fails rather than waits for ever."""


def open_pcm(
    device: str = "hw:CARD=Mic,DEV=0",
    *,
    kind: int = alsaaudio.PCM_CAPTURE,
    blocks: bool = False,
    rate: int = 16000,
    channels: int = 1,
    format_name: str = "S16_LE",
    period: int = 160,
    periods: int = 4,
) -> Any:
    """An opened PCM; the wishes may not have been granted."""
    return alsaaudio.PCM(
        kind,
        alsaaudio.PCM_NORMAL if blocks else alsaaudio.PCM_NONBLOCK,
        device=device,
        rate=rate,
        channels=channels,
        format=FORMATS[format_name],
        periodsize=period,
        periods=periods,
    )


def open_speaker(device: str = "hw:CARD=Mic,DEV=0", **wishes: Any) -> Any:
    """The same for playback."""
    return open_pcm(device, kind=alsaaudio.PCM_PLAYBACK, **wishes)


def state(pcm: Any) -> str:
    """The name of the state that alsa-lib last saw."""
    return str(STATES[pcm.state()])


def wait(pcm: Any, timeout_ms: int = PATIENCE_MS) -> int | None:
    """What poll has to tell, translated for the PCM; None when it told nothing in that time."""
    poller = select.poll()
    for descriptor, events in pcm.polldescriptors():
        poller.register(descriptor, events)
    ready = poller.poll(timeout_ms)
    return int(pcm.polldescriptors_revents(ready)) if ready else None


def wait_for(pcm: Any, events: int) -> int:
    """Waits until one of these events is told, past wake-ups that tell nothing."""
    while True:
        told = wait(pcm)
        assert told is not None, "poll hangs"
        if told & events:
            return told


def read_frames(pcm: Any, frames: int) -> bytes:
    """At least so many frames, by poll and read; fails at any error."""
    info = pcm.info()
    frame_bytes = info["channels"] * info["physical_bits"] // 8
    got = bytearray()
    while len(got) < frames * frame_bytes:
        count, sound = pcm.read()
        assert count >= 0, f"read returned {count}"
        got += sound
        if count == 0:
            wait_for(pcm, select.POLLIN)
    return bytes(got)


def write_all(pcm: Any, sound: bytes, frame_bytes: int = 2) -> None:
    """Writes everything, waiting for room; fails at any error."""
    at = 0
    while at < len(sound):
        count = pcm.write(sound[at:])
        assert count >= 0, f"write returned {count}"
        at += count * frame_bytes
        if count == 0:
            wait_for(pcm, select.POLLOUT)


def overrun(pcm: Any) -> None:
    """Comes late: asks where the card is until its buffer is full."""
    pcm.read()
    while pcm.avail() >= 0:
        pass
