"""Test cards: what they offer, how they fail, and what truly happened.

A :class:`Rack` holds cards in a folder. With its ``configuration`` as ALSA_CONFIG_PATH, the names
``hw:CARD=Mic,DEV=0``, ``hw:0,0``, ``plughw:...``, ``default`` and the mixers ``hw:CARD=Mic`` reach
them, in this process and in others. ``Rack.proc`` has the shape of /proc/asound, ``Rack.dev_snd``
that of /dev/snd (names only).

    rack = Rack(folder, build())
    mic = rack.plug("Mic", capture=Offer(rates=(48000,)), controls=[volume("Mic Capture Volume")])
    mic.play(samples, rate=48000)
    mic.capture.xrun(at=4800)
    ...
    assert mic.capture.xruns == 1

Everything is in a mapped file (card_state.h); a setter wakes whoever polls the card.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import soundfile

from alsa import proc, samples
from alsa.layout import NUMBERS, STRUCTURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from alsa.controls import Control

_TEMPLATE = Path(__file__).with_name("asound.conf.in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Everything between two numbers, both included."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a device can do. A tuple lists exact values; sizes are in frames."""

    formats: tuple[str, ...] = ("S16_LE",)
    rates: Range | tuple[int, ...] = (16000,)
    channels: Range | tuple[int, ...] = (1,)
    period_frames: Range | tuple[int, ...] = Range(lowest=16, highest=16384)
    buffer_frames: Range | tuple[int, ...] = Range(lowest=32, highest=131072)
    periods: Range | tuple[int, ...] = Range(lowest=2, highest=1024)
    can_pause: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write to the mixer."""

    control: str
    values: tuple[int, ...]
    thread: int
    when_ns: int


def _is_told(name: str) -> property:
    def get(self: Stream | Card) -> Any:
        return getattr(self._state, name)

    def put(self: Stream | Card, value: Any) -> None:
        setattr(self._state, name, value)
        self._wake()

    return property(get, put)


def _is_true(name: str) -> property:
    return property(lambda self: getattr(self._state, name))


class Stream:
    """One direction of a card: how it behaves, its faults, and its counters."""

    pointer_step = _is_told("pointer_step")
    wake_offset = _is_told("wake_offset")
    transfer_limit = _is_told("transfer_limit")
    s24_padding = _is_told("s24_padding")

    period = _is_true("period")
    buffer = _is_true("buffer")
    rate = _is_true("rate")
    channels = _is_true("channel_count")
    owner = _is_true("owner")
    opens_tried = _is_true("opens_tried")
    opens = _is_true("opens")
    closes = _is_true("closes")
    prepares = _is_true("prepares")
    starts = _is_true("starts")
    transfers = _is_true("transfers")
    polls = _is_true("polls")
    xruns = _is_true("xruns")
    suspends = _is_true("suspends")
    errors = _is_true("errors")
    frames = _is_true("frames")
    frames_lost = _is_true("frames_lost")
    frames_unplayed = _is_true("frames_unplayed")
    clock_frames = _is_true("clock_frames")
    started_ns = _is_true("started_ns")

    def __init__(self, state: Any, card: Card) -> None:
        self._state = state
        self._card = card

    def _wake(self) -> None:
        self._card._wake()

    @property
    def format(self) -> str:
        """The granted format's name."""
        return samples.NAMES[self._state.format]

    def xrun(self, *, at: int = -1, times: int = 1) -> None:
        """An overrun (underrun), now or when exactly ``at`` frames have been handed over."""
        self._fault("FAULT_XRUN", errno.EPIPE, at=at, times=times)

    def suspend(self, *, at: int = -1) -> None:
        """The machine slept: -ESTRPIPE until the stream is prepared anew."""
        self._fault("FAULT_SUSPEND", errno.ESTRPIPE, at=at, times=1)

    def fail_transfer(
        self, error: int = errno.EIO, *, at: int = -1, times: int = 1, seconds: float = 0
    ) -> None:
        """Reads (writes) fail: so many times (0: without end), or for so long."""
        self._fault("FAULT_TRANSFER", error, at=at, times=times, seconds=seconds)

    def fail_poll(self, *, at: int = -1, times: int = 1, seconds: float = 0) -> None:
        """Poll answers POLLERR alone."""
        self._fault("FAULT_POLL", errno.EIO, at=at, times=times, seconds=seconds)

    def fail_prepare(self, error: int = errno.EIO, *, times: int = 1, seconds: float = 0) -> None:
        """Preparing the stream fails."""
        self._fault("FAULT_PREPARE", error, at=-1, times=times, seconds=seconds)

    def fail_open(self, error: int = errno.EBUSY, *, times: int = 1, seconds: float = 0) -> None:
        """Opening fails."""
        self._fault("FAULT_OPEN", error, at=-1, times=times, seconds=seconds)

    def stall(self, *, at: int = -1, seconds: float = 0) -> None:
        """The clock stops without any error, for so long or until :meth:`heal`."""
        self._fault("FAULT_STALL", 0, at=at, times=0, seconds=seconds)

    def freeze(self, *, at: int = -1, seconds: float = 0) -> None:
        """Interrupts go on and wake poll, but the position stands still."""
        self._fault("FAULT_FREEZE", 0, at=at, times=0, seconds=seconds)

    def unplug(self, *, at: int) -> None:
        """The card is gone when ``at`` frames have been handed over.

        The tree that looks like /proc/asound still shows it until :meth:`Card.unplug`.
        """
        self._fault("FAULT_UNPLUG", errno.ENODEV, at=at, times=1)

    def heal(self) -> None:
        """Ends every fault."""
        for fault in self._state.faults:
            fault.where = NUMBERS["FAULT_NONE"]
        self._wake()

    def _fault(self, where: str, error: int, *, at: int, times: int, seconds: float = 0) -> None:
        free = next((f for f in self._state.faults if f.where == NUMBERS["FAULT_NONE"]), None)
        if free is None:
            raise RuntimeError("a stream can be told of eight faults at a time")
        free.error = error
        free.at_frame = at
        free.times = 0 if seconds else times
        free.lasts_ns = round(seconds * 1e9)
        free.since_ns = 0
        free.where = NUMBERS[where]
        self._wake()


@dataclass(slots=True)
class _Mapped:
    """A state file in memory."""

    path: Path
    memory: mmap.mmap
    state: Any = field(repr=False)

    @classmethod
    def make(cls, path: Path) -> _Mapped:
        size = ctypes.sizeof(STRUCTURES["card"])
        path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), size)
        return cls(path, memory, STRUCTURES["card"].from_buffer(memory))


class Card:
    """A card that can be plugged in and out, told what to play, and asked what happened."""

    speed = _is_told("speed")
    drift_ppm = _is_told("drift_ppm")
    goes_on = _is_told("goes_on")
    index = _is_true("index")

    def __init__(
        self,
        rack: Rack,
        identity: str,
        *,
        name: str,
        capture: Offer | None,
        playback: Offer | None,
        controls: Sequence[Control],
    ) -> None:
        self.id = identity
        self.name = name
        self._rack = rack
        self._folder = rack.folder / "cards" / identity
        (self._folder / "speaker").mkdir(parents=True)
        self._mapped = _Mapped.make(self._folder / "state")
        self._state = state = self._mapped.state
        state.size = ctypes.sizeof(STRUCTURES["card"])
        state.index = -1
        state.id = identity.encode()
        state.name = name.encode()
        state.longname = f"{name} at usb-0000:00:14.0-1, high speed".encode()
        state.driver = b"USB-Audio"
        state.speed = 1.0
        state.source_channels = 1
        state.source_rate = 16000
        state.source_format = samples.NUMBERS["S16_LE"]
        state.speaker_path = str(self._folder / "speaker").encode()
        for number, offer in enumerate((playback, capture)):
            if offer is not None:
                _write_offer(state.streams[number], offer)
        state.control_count = len(controls)
        for place, control in zip(state.controls, controls, strict=False):
            _write_control(place, control)
        state.magic = NUMBERS["CARD_MAGIC"]
        self.playback = Stream(state.streams[0], self)
        self.capture = Stream(state.streams[1], self)

    # ---- the plug ----

    def unplug(self) -> None:
        """Pulls the card out: whatever is open on it fails, and it is listed no more."""
        self._rack._pull(self)

    # ---- the microphone ----

    def play(
        self,
        sound: NDArray[Any],
        *,
        rate: int,
        format_name: str = "S16_LE",
        loops: bool = False,
        channel_map: Sequence[int] = (),
    ) -> None:
        """Puts a sound before the microphone; it begins with the next frame.

        ``sound`` has shape (frames,) or (frames, channels). Integers are samples of the format;
        floats are parts of full scale. Without a map, channel n hears channel n, and a mono sound
        is heard on all; -1 in the map is a dead channel. A rate other than the card's is bridged
        by straight lines: give the card's own rate where samples matter.
        """
        state = self._state
        serial = state.source_serial + 1
        path = self._folder / f"source-{serial}.raw"
        path.write_bytes(samples.encode(sound, format_name))
        state.source_path = str(path).encode()
        state.source_format = samples.NUMBERS[format_name]
        state.source_rate = rate
        state.source_channels = 1 if sound.ndim == 1 else sound.shape[1]
        state.source_loops = int(loops)
        self._write_map(channel_map)
        state.source_serial = serial
        self._wake()

    def play_file(
        self, path: Path, *, loops: bool = False, channel_map: Sequence[int] = ()
    ) -> None:
        """Puts a sound file before the microphone, in its own format and rate."""
        with soundfile.SoundFile(path) as file:
            format_name, dtype = samples.SUBTYPES[file.subtype]
            sound = file.read(dtype=dtype)
            rate = file.samplerate
        if format_name == "S24_3LE":
            sound = sound >> 8
        self.play(sound, rate=rate, format_name=format_name, loops=loops, channel_map=channel_map)

    def map_channels(self, channel_map: Sequence[int]) -> None:
        """Changes which channel of the source each channel hears."""
        self._write_map(channel_map)
        self._wake()

    @property
    def heard(self) -> float:
        """Position in the source, in its frames, of the next frame to be handed over."""
        return float(self._state.source_next)

    # ---- the speaker ----

    def recordings(self) -> list[tuple[int, NDArray[Any]]]:
        """What sounded: one (rate, samples of shape (frames, channels)) for each opening."""
        result = []
        for path in sorted((self._folder / "speaker").glob("*.raw")):
            _, format_name, rate, channels = path.stem.split("-")
            sound = samples.decode(path.read_bytes(), format_name)
            result.append((int(rate), sound.reshape(-1, int(channels))))
        return result

    # ---- the mixer ----

    def value(self, control: str) -> tuple[int, ...]:
        """A control's values, one a channel."""
        found = self._control(control)
        return tuple(found.values[: found.channels])

    def turn(self, control: str, *values: int) -> None:
        """Turns a knob from outside, as another program would; no write is counted."""
        found = self._control(control)
        for channel in range(found.channels):
            found.values[channel] = values[min(channel, len(values) - 1)]
        found.revision += 1
        self._wake()

    def writes(self, control: str = "") -> list[Write]:
        """The last 64 writes of applications, oldest first, to one control or to all."""
        count = self._state.write_count
        kept = NUMBERS["WRITES"]
        result = []
        for number in range(max(0, count - kept), count):
            record = self._state.writes[number % kept]
            written = self._state.controls[record.control]
            name = written.name.decode()
            if control in ("", name):
                result.append(
                    Write(
                        control=name,
                        values=tuple(record.values[: written.channels]),
                        thread=record.thread,
                        when_ns=record.when_ns,
                    )
                )
        return result

    def write_count(self, control: str) -> int:
        """How often applications wrote to a control."""
        return int(self._control(control).writes)

    def _control(self, name: str) -> Any:
        for control in self._state.controls[: self._state.control_count]:
            if control.name.decode() == name:
                return control
        raise KeyError(name)

    def _write_map(self, channel_map: Sequence[int]) -> None:
        self._state.map_count = len(channel_map)
        for channel, source in enumerate(channel_map):
            self._state.channel_map[channel] = source

    def _wake(self) -> None:
        os.utime(self._mapped.path)


class Rack:
    """Cards in a folder, in place of the machine's own."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder = folder
        self.proc = folder / "asound"
        self.dev_snd = folder / "snd"
        self.proc.mkdir(parents=True)
        self.dev_snd.mkdir()
        self.configuration = folder / "asound.conf"
        text = _TEMPLATE.read_text(encoding="utf-8")
        text = text.replace("@LIBRARY@", str(library)).replace("@ROOT@", str(self.proc))
        self.configuration.write_text(text, encoding="utf-8")
        self._plugged: dict[str, proc.ProcCard] = {}
        self._timers: list[threading.Timer] = []
        # Cards return on threads of their own; the tree must not be written by two at a time.
        self._lock = threading.RLock()
        proc.write_lists(self.proc, [])

    def card(
        self,
        identity: str,
        *,
        name: str = "Test Card",
        capture: Offer | None = None,
        playback: Offer | None = None,
        controls: Sequence[Control] = (),
    ) -> Card:
        """Makes a card that is not plugged in yet."""
        return Card(
            self, identity, name=name, capture=capture, playback=playback, controls=controls
        )

    def plug(self, card: Card, *, index: int | None = None) -> Card:
        """Plugs a card in, under the lowest free number unless one is given."""
        with self._lock:
            taken = {plugged.index for plugged in self._plugged.values()}
            if index is None:
                index = next(number for number in range(32) if number not in taken)
            if index in taken or card.id in self._plugged:
                raise ValueError(f"card {index} or {card.id} is there already")
            state = card._state
            entry = proc.ProcCard(
                index=index,
                id=card.id,
                driver=state.driver.decode(),
                name=card.name,
                longname=state.longname.decode(),
                has_playback=bool(state.streams[0].present),
                has_capture=bool(state.streams[1].present),
            )
            state.plugged += 1
            state.index = index
            for stream in state.streams:
                stream.owner = 0
            self._plugged[card.id] = entry
            proc.write_card(self.proc, entry, card._mapped.path)
            for node in self._nodes(entry):
                node.touch()
            proc.write_lists(self.proc, list(self._plugged.values()))
        return card

    def plug_later(self, card: Card, seconds: float, *, index: int | None = None) -> None:
        """Plugs a card in after so long."""
        timer = threading.Timer(seconds, self.plug, args=(card,), kwargs={"index": index})
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def close(self) -> None:
        """Stops what is still to happen."""
        for timer in self._timers:
            timer.cancel()
            timer.join()

    def _pull(self, card: Card) -> None:
        with self._lock:
            entry = self._plugged.pop(card.id)
            # First from the lists, then from under whoever has it open.
            proc.write_lists(self.proc, list(self._plugged.values()))
            for node in self._nodes(entry):
                node.unlink()
            proc.remove_card(self.proc, entry)
            card._state.index = -1
        card._wake()

    def _nodes(self, card: proc.ProcCard) -> list[Path]:
        names = [f"controlC{card.index}"]
        names += [f"pcmC{card.index}D0{letter}" for letter in card.directions]
        return [self.dev_snd / name for name in names]


def _write_offer(place: Any, offer: Offer) -> None:
    place.present = 1
    place.can_pause = int(offer.can_pause)
    _write_choice(place.formats, tuple(samples.NUMBERS[name] for name in offer.formats))
    _write_choice(place.rates, offer.rates)
    _write_choice(place.channels, offer.channels)
    _write_choice(place.period_frames, offer.period_frames)
    _write_choice(place.buffer_frames, offer.buffer_frames)
    _write_choice(place.periods, offer.periods)


def _write_choice(place: Any, values: Range | tuple[int, ...]) -> None:
    place.is_range = int(isinstance(values, Range))
    listed = (values.lowest, values.highest) if isinstance(values, Range) else values
    place.count = len(listed)
    for number, value in enumerate(listed):
        place.values[number] = value


def _write_control(place: Any, control: Control) -> None:
    place.name = control.name.encode()
    place.type = control.kind
    place.role = control.role
    place.step = 1
    for name in ("index", "channels", "minimum", "maximum", "gain_minimum_cdb", "gain_step_cdb"):
        setattr(place, name, getattr(control, name))
    place.tlv_count = len(control.tlv)
    for number, word in enumerate(control.tlv):
        place.tlv[number] = word
    place.item_count = len(control.items)
    for number, item in enumerate(control.items):
        place.items[number].value = item.encode()
    for channel in range(control.channels):
        place.values[channel] = control.value


def as_float(sound: NDArray[Any]) -> NDArray[np.float64]:
    """Samples as parts of full scale, whatever their type."""
    if sound.dtype.kind == "f":
        return sound.astype(np.float64)
    return sound / float(np.iinfo(sound.dtype).max + 1)
