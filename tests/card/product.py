"""The whole product over a test card: one process, one question, and what became of it.

The tables of kinds and of faults are here; tests run single rows, and ``scripts/bench card`` all.
"""

from __future__ import annotations

import itertools
import re
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import soxr

import corpus
from alsa.card import Offer, Rack
from bench import scoring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from alsa.card import Card
    from e2e.product import Product, Running
    from oyez.messages import PcmFloat

CLIPS = ("v2j_would_you_please_turn_on_living_room_lamp", "librivox_0880")
"""The question: the first of these that is there."""
PATIENCE_S = 30.0
SPEAKER = Offer(rates=(48000,), channels=(2,))
LEAD_S = 0.8
"""Silence before the question, and after it so much that its end is found."""
TAIL_S = 3.0
JUNK = 2
"""The test card's word for arbitrary bits in the fourth byte of S24_LE."""
LOOK_S = 0.002


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of device: what it offers, what it makes of a sound, and what is asked of it.

    ``shape`` turns float32 [n] at the card's rate into what is put before the microphone;
    ``channel_map`` is ``Card.play``'s. ``moves_to`` is the map after it was pulled out and in.
    """

    name: str
    offer: Offer
    shape: Callable[[PcmFloat], NDArray[Any]] = field(default=lambda sound: sound)
    channel_map: tuple[int, ...] = ()
    moves_to: tuple[int, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    padding: int = 0
    warns: str = ""
    """A regular expression for the warning that must be given."""


KINDS = [
    Kind(name="mono only, 16 kHz", offer=Offer()),
    Kind(
        name="stereo only, asked for one channel",
        offer=Offer(rates=(48000,), channels=(2,)),
        asked={"channels": 1},
        warns=r"channels: 1 was asked for, 2 is granted",
    ),
    Kind(
        name="6 channels, 5 of them dead",
        offer=Offer(rates=(48000,), channels=(6,)),
        channel_map=(-1, -1, -1, 0, -1, -1),
    ),
    Kind(name="48 kHz only, mono", offer=Offer(rates=(48000,))),
    Kind(name="44.1 kHz only", offer=Offer(rates=(44100,), channels=(2,))),
    Kind(name="S32 only", offer=Offer(formats=("S32_LE",), rates=(48000,), channels=(2,))),
    Kind(
        name="S32 only, quiet I2S microphone on one of two channels",
        offer=Offer(formats=("S32_LE",), rates=(48000,), channels=(2,)),
        shape=lambda sound: sound * np.float32(0.02),
        channel_map=(0, -1),
    ),
    Kind(
        name="S24_LE with junk in the fourth byte",
        offer=Offer(formats=("S24_LE",), rates=(48000,)),
        padding=JUNK,
    ),
    Kind(name="S24_3LE only", offer=Offer(formats=("S24_3LE",), rates=(48000,), channels=(2,))),
    Kind(name="float only", offer=Offer(formats=("FLOAT_LE",), rates=(48000,), channels=(2,))),
    Kind(
        name="periods of 341 frames, asked for 500",
        offer=Offer(rates=(25000,), period_frames=(341,)),
        asked={"rate_hz": 25000},
        warns=r"period: 500 frames \(20 ms\) was asked for, 341 frames \(13.64 ms\) is granted",
    ),
    Kind(
        name="88200 Hz granted where 96000 was asked for",
        offer=Offer(rates=(88200,), channels=(2,)),
        asked={"rate_hz": 96000},
        warns=r"rate: 96000 Hz was asked for, 88200 Hz is granted",
    ),
    Kind(
        name="DC offset of a fifth of full scale",
        offer=Offer(rates=(48000,), channels=(2,)),
        shape=lambda sound: sound + np.float32(0.2),
    ),
    Kind(
        name="channels swapped after a reopen",
        offer=Offer(rates=(48000,), channels=(2,)),
        channel_map=(0, -1),
        moves_to=(-1, 0),
    ),
    Kind(
        name="the first of two channels dead",
        offer=Offer(rates=(48000,), channels=(2,)),
        channel_map=(-1, 0),
    ),
    Kind(
        name="second channel inverted",
        offer=Offer(rates=(48000,), channels=(2,)),
        shape=lambda sound: np.stack((sound, -sound), axis=1),
    ),
]


@dataclass(frozen=True, kw_only=True)
class Break:
    """A fault: ``begin`` breaks the card, and ``end``, ``after_s`` later, makes it whole again.

    Where ``plugged`` is false the card is not there when the product starts.
    """

    name: str
    begin: Callable[[Rack, Card], object]
    after_s: float = 0.0
    end: Callable[[Rack, Card], object] = field(default=lambda _rack, _card: None)
    plugged: bool = True


def _storm(_rack: Rack, card: Card) -> None:
    begin = card.capture.xruns
    card.capture.xrun(times=100)
    _until(lambda: card.capture.xruns >= begin + 100)


def _flap(rack: Rack, card: Card) -> None:
    for turn in range(10):
        card.unplug()
        _pass_s(0.05 * (turn % 3))
        rack.plug(card, index=turn % 4)
        _pass_s(0.1 * (turn % 4))


def _busy(rack: Rack, card: Card) -> None:
    card.capture.fail_open(times=0)
    card.unplug()
    rack.plug(card)


BREAKS = [
    Break(name="one overrun", begin=lambda _, card: card.capture.xrun()),
    Break(name="100 overruns in a row", begin=_storm),
    Break(
        name="an underrun and an overrun",
        begin=lambda _, card: (card.playback.xrun(), card.capture.xrun()),
    ),
    Break(name="-ESTRPIPE", begin=lambda _, card: card.capture.suspend()),
    Break(name="-EBADFD", begin=lambda _, card: card.capture.fail_transfer(77)),
    Break(name="-EIO", begin=lambda _, card: card.capture.fail_transfer(5)),
    Break(
        name="unplugged for 2 s, back under another index",
        begin=lambda _, card: card.unplug(),
        after_s=2.0,
        end=lambda rack, card: rack.plug(card, index=3),
    ),
    Break(
        name="unplugged for 10 s",
        begin=lambda _, card: card.unplug(),
        after_s=10.0,
        end=lambda rack, card: rack.plug(card),
    ),
    Break(name="unplugged and plugged in ten times", begin=_flap),
    Break(
        name="capture stalls for 3 s",
        begin=lambda _, card: card.capture.stall(),
        after_s=3.0,
        end=lambda _, card: card.capture.heal(),
    ),
    Break(
        name="capture frozen for 3 s",
        begin=lambda _, card: card.capture.freeze(),
        after_s=3.0,
        end=lambda _, card: card.capture.heal(),
    ),
    Break(
        name="playback stalls for 3 s",
        begin=lambda _, card: card.playback.stall(),
        after_s=3.0,
        end=lambda _, card: card.playback.heal(),
    ),
    Break(
        name="busy for 3 s after a reopen",
        begin=_busy,
        after_s=3.0,
        end=lambda _, card: card.capture.heal(),
    ),
    Break(
        name="absent at the start, for 3 s",
        begin=lambda _rack, _card: None,
        after_s=3.0,
        end=lambda rack, card: rack.plug(card, index=2),
        plugged=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What became of a question: errors in words, and what the product said."""

    text: str
    word_errors: int
    said: list[str]
    outcome: str
    wait_ms: float | None


class Bench:
    """Runs rows; each has a rack of its own below ``folder``."""

    def __init__(self, product: Product, folder: Path, library: Path) -> None:
        clips = {clip.name: clip for clip in corpus.spoken()}
        self._clip = next(clips[name] for name in CLIPS if name in clips)
        self._product = product
        self._folder = folder
        self._library = library
        self._numbers = itertools.count()

    def kind(self, kind: Kind) -> dict[str, Any]:
        """Ask a question over a device of this kind."""
        with self._rack() as rack:
            card = rack.card("Mic", name="Test Card", capture=kind.offer, playback=SPEAKER)
            card.capture.s24_padding = kind.padding
            self._ask(card, kind)
            rack.plug(card)
            # A second question must not come while the first one is answered.
            answer = {"answer": []} if kind.moves_to else {}
            with self._running(rack, capture=kind.asked, **answer) as running:
                if kind.moves_to:
                    _receipt(running)
                    card.unplug()
                    self._ask(card, replace(kind, channel_map=kind.moves_to))
                    rack.plug(card, index=1)
                heard = self._heard(running)
            spoken = [sound for _, sound in card.recordings() if np.any(sound)]
            return {
                "kind": kind.name,
                "granted": f"{card.capture.rate} Hz, {card.capture.channels} ch, "
                f"{card.capture.format}, period {card.capture.period}, "
                f"buffer {card.capture.buffer}",
                "text": heard.text,
                "word_errors": heard.word_errors,
                "outcome": heard.outcome,
                "spoken": bool(spoken),
                "wait_ms": heard.wait_ms,
                "overruns": card.capture.xruns,
                "warnings": [line for line in heard.said if "warning" in line.casefold()],
                "said": heard.said,
            }

    def fault(self, fault: Break) -> dict[str, Any]:
        """Break a card, make it whole, and ask a question."""
        kind = KINDS[1]
        with self._rack() as rack:
            card = rack.card("Mic", name="Test Card", capture=kind.offer, playback=SPEAKER)
            card.goes_on = 1
            self._rest(card, kind)
            if fault.plugged:
                rack.plug(card)
            with self._running(rack, capture={}) as running:
                if fault.plugged:
                    _until(lambda: card.capture.frames > 48_000)
                lost = card.capture.frames_lost
                fault.begin(rack, card)
                _pass_s(fault.after_s)
                frames = card.capture.frames
                fault.end(rack, card)
                back_s = time.monotonic()
                _until(lambda: card.capture.frames > frames + 960)
                again_s = time.monotonic() - back_s
                _pass_s(1.0)
                self._ask(card, kind)
                heard = self._heard(running)
            reported = [int(ms) for ms in re.findall(r"lost: (\d+) ms in", "\n".join(heard.said))]
            capture = card.capture
            return {
                "fault": fault.name,
                "hears_again_ms": round(again_s * 1000),
                "lost_ms_true": round((capture.frames_lost - lost) / 48),
                "lost_ms_reported": sum(reported),
                "log_lines": len(heard.said),
                "text": heard.text,
                "word_errors": heard.word_errors,
                "outcome": heard.outcome,
                "overruns": capture.xruns,
                "handles_left": capture.opens - capture.closes,
                "said": heard.said,
            }

    # -- steps ----------------------------------------------------------------------------------

    @contextmanager
    def _rack(self) -> Iterator[Rack]:
        rack = Rack(self._folder / f"rack-{next(self._numbers)}", self._library)
        try:
            yield rack
        finally:
            rack.close()

    @contextmanager
    def _running(
        self, rack: Rack, *, capture: Mapping[str, Any], **sections: Any
    ) -> Iterator[Running]:
        audio = {"backend": "alsa", "capture": dict(capture)}
        config = self._product.configured(audio=audio, **sections)
        environment = {
            "ALSA_CONFIG_PATH": str(rack.configuration),
            "OYEZ_PROC_ASOUND": str(rack.proc),
            "XDG_STATE_HOME": str(rack.folder / "state"),
        }
        with self._product.running("run", "--json", "--config", config, env=environment) as running:
            running.event("state")
            yield running

    def _rest(self, card: Card, kind: Kind) -> None:
        """A room in which nobody speaks: its noise, and what the kind makes of it."""
        noise = np.random.default_rng(1).normal(0, 3e-4, _rate(kind) * 2).astype(np.float32)
        sound = kind.shape(noise)
        card.play(sound, rate=_rate(kind), loops=True, channel_map=kind.channel_map, **_in(kind))

    def _ask(self, card: Card, kind: Kind) -> None:
        """Put the question before the microphone."""
        # From its first word on: what some clips have before it may pass for an utterance.
        begin = max(0, int(self._clip.active.argmax()) - corpus.RATE_HZ // 5)
        clip = soxr.resample(self._clip.samples[begin:], corpus.RATE_HZ, _rate(kind))
        lead, tail = (np.zeros(round(s * _rate(kind)), np.float32) for s in (LEAD_S, TAIL_S))
        sound = np.concatenate((lead, clip, tail))
        sound += np.random.default_rng(1).normal(0, 3e-4, len(sound)).astype(np.float32)
        shaped = kind.shape(sound)
        card.play(shaped, rate=_rate(kind), channel_map=kind.channel_map, **_in(kind))

    def _heard(self, running: Running) -> Heard:
        receipt = _receipt(running)
        _pass_s(0.5)  # the answer has begun to sound
        done, _ = running.stop(signal.SIGTERM)
        assert self._clip.text is not None
        text = str(receipt.get("text") or "")
        errors = scoring.word_errors(self._clip.text, text).errors
        return Heard(
            text=text,
            word_errors=errors,
            said=done.err.splitlines(),
            outcome=str(receipt["outcome"]),
            wait_ms=receipt["wait_ms"],
        )


def _receipt(running: Running) -> dict[str, Any]:
    return running.event("receipt")


def _rate(kind: Kind) -> int:
    rates = kind.offer.rates
    return rates[0] if isinstance(rates, tuple) else rates.lowest


def _in(kind: Kind) -> dict[str, str]:
    """Sources are in the card's own format, so that nothing is rounded twice."""
    return {"format_name": kind.offer.formats[0]}


def _pass_s(seconds: float) -> None:
    time.sleep(seconds)


def _until(happened: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > deadline_s:
            raise TimeoutError("the card's counters do not show it")
        _pass_s(LOOK_S)
