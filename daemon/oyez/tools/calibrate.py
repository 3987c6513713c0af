"""`oyez calibrate`: half a minute in which a person is silent, speaks, and hears the speaker.

Main's thread only; what follows from the figures is decided in ``verdict``. The card's gain is left
as it was found: what is proposed takes effect when it stands in the configuration.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oyez.audio.cards import Direction
from oyez.audio.gain import split
from oyez.audio.levels import Signal
from oyez.audio.pcm import dbfs, to_pcm16
from oyez.errors import AudioDeviceError
from oyez.messages import BLOCK_FRAMES, AnswerMark, frames_to_ms
from oyez.speech import engines
from oyez.tools import echo_probe, meter_line, verdict, yaml_edit
from oyez.tools.listening import BLOCKS_PER_S, Listening, not_heard
from oyez.tools.verdict import EchoHeard, Measured, Present, Spoken, VadShares, Verdict
from oyez.workers.device import GainSet

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

    from oyez.audio.gain import HardwareRange
    from oyez.audio.levels import Levels, PerChannel
    from oyez.config import Settings
    from oyez.messages import Pcm16

OPENING_S = 5.0
"""So long may it take until the microphone is heard."""
REACTION_S = 1.0
"""Between a word to the person and the measurement."""
SILENCE_S = 5.0
SPEECH_S = 7.0
LISTENING_S = 1.5
"""After the sweep was written: the longest way through buffers and air."""
GAIN_S = 1.0
"""So long may a card take to set its gain."""
DRAWN_PERIODS = 5
"""A terminal's line is drawn anew after so many, ten times a second as a rule."""
TRIES = 3
"""How often a person is asked to speak, when it clips."""
SPEAKER_HZ = 48_000
MODES = range(4)
SENTENCE = "Please turn the lights on in the kitchen, and tell me what the time is."


@dataclass(frozen=True, slots=True)
class Stretch:
    """Blocks of the frame ring, [begin, end), and the levels of all their periods joined."""

    begin: int
    end: int
    levels: Levels


def calibrate(settings: Settings, out: TextIO) -> tuple[str, Measured]:
    """Guide a person, with words on ``out``; the microphone's description, and all figures.

    Raises:
        AudioDeviceError: the microphone cannot be heard.
        OyezError: a device failed for good.
    """
    listening, trouble = _opened(settings)
    with listening:
        guide = _Guide(listening, settings, out)
        guide.open()
        return listening.description, guide.measure(trouble)


def _opened(settings: Settings) -> tuple[Listening, str]:
    """The microphone with the speaker or, where that cannot be opened, without it and why."""
    try:
        return Listening(settings, speaker_hz=SPEAKER_HZ, gain_memory=None), ""
    except AudioDeviceError as error:
        return Listening(settings, speaker_hz=None, gain_memory=None), error.message


class _Guide:
    """The steps, one after the other."""

    def __init__(self, listening: Listening, settings: Settings, out: TextIO) -> None:
        self._listening = listening
        self._settings = settings
        self._out = out

    def open(self) -> None:
        """Wait for the microphone."""
        for _ in self._listening.pass_s(OPENING_S):
            if self._listening.hears:
                return
        raise not_heard(self._listening)

    def measure(self, trouble: str) -> Measured:
        """All steps; ``trouble`` is why there is no speaker."""
        self._say("Please be silent: the room's noise is measured.")
        silence = self._stretch(SILENCE_S)
        before_db = self._listening.hardware_db
        speech, said = self._spoken(self._rms(silence), before_db)
        lowered_db = before_db - said.hardware_db if said is not None else 0.0
        channel = self._listening.channel
        signals = [silence.levels.signal(other) for other in range(len(silence.levels.peak))]
        if said is not None:
            signals[channel] = Signal.LIVE  # some microphones are switched off by silence
        measured = Measured(
            channel=channel,
            signals=tuple(signals),
            # The noise was heard before the gain was turned down.
            floor_dbfs=dbfs(float(silence.levels.floor[channel])) - lowered_db,
            dc=float(silence.levels.dc[channel]),
            hardware=self._hardware(),
            spoken=said,
            lowered_db=lowered_db,
        )
        shares = self._compare(measured, silence, speech)
        echo, trouble = self._play(trouble)
        return dataclasses.replace(measured, vad=shares, echo=echo, speaker_trouble=trouble)

    # -- the person ---------------------------------------------------------------------------

    def _spoken(self, silence_rms: PerChannel, before_db: float) -> tuple[Stretch, Spoken | None]:
        """Have the person speak; the card's gain is then what it was before, whatever happens."""
        try:
            return self._speak(silence_rms)
        finally:
            self._listening.set_gain(before_db)

    def _speak(self, silence_rms: PerChannel) -> tuple[Stretch, Spoken | None]:
        """Have the person speak, again with a lower gain while it clips."""
        lowered_db = 0.0
        tries = 0
        while True:
            again = "once more" if tries else "now"
            self._say(f'Please speak {again} as you always do, for instance: "{SENTENCE}"')
            speech = self._stretch(SPEECH_S)
            tries += 1
            levels = self._listening.heard.levels(speech.begin, speech.end)
            said = verdict.spoken(
                levels.rms,
                silence_rms * 10 ** (-lowered_db / 20),
                peak=levels.peak,
                clipped=levels.clipped_blocks > 0,
                hardware_db=self._listening.hardware_db,
            )
            lower_db = verdict.lower_gain_db(said, self._hardware()) if said is not None else None
            if said is None or lower_db is None or tries == TRIES:
                return speech, said
            granted_db = self._set_gain(lower_db)
            if granted_db is None or granted_db >= said.hardware_db:
                return speech, said
            lowered_db += said.hardware_db - granted_db
            self._say(f"That clips: the card's gain is {granted_db:+.1f} dB for now.")

    def _play(self, trouble: str) -> tuple[EchoHeard | None, str]:
        """Play the sweep and listen for it; what was heard, or why nothing was played."""
        listening = self._listening
        trouble = trouble or listening.trouble.get(Direction.PLAYBACK, "")
        if trouble or listening.spoken is None or listening.speaker_hz is None:
            return None, trouble or "there is no speaker"
        self._say("Please be silent again: the speaker plays a rising tone.")
        for _ in listening.pass_s(REACTION_S):
            pass
        begin = listening.heard.head_block
        latency_ms = listening.latency_ms
        listening.spoken.mark(1, last=False)
        listening.spoken.write(echo_probe.sweep(listening.speaker_hz))
        air_frame = begin * BLOCK_FRAMES
        for told in listening.pass_s(latency_ms / 1000 + echo_probe.SWEEP_S + LISTENING_S):
            for message in told:
                if isinstance(message, AnswerMark):
                    air_frame = message.frame
        samples = self._samples(begin, listening.heard.head_block)
        frame = echo_probe.find(samples)
        if frame is None:
            return None, ""
        first = begin + frame // BLOCK_FRAMES
        last = first + round(echo_probe.SWEEP_S * BLOCKS_PER_S)
        levels = listening.heard.levels(first, min(last, listening.heard.head_block))
        delay_ms = frames_to_ms(begin * BLOCK_FRAMES + frame - air_frame) + latency_ms
        return (
            EchoHeard(
                level_dbfs=dbfs(float(np.sqrt(np.mean(np.square(levels.rms))))),
                delay_ms=max(0.0, delay_ms),
                clipped=levels.clipped_blocks > 0,
            ),
            "",
        )

    # -- the sound ----------------------------------------------------------------------------

    def _stretch(self, seconds: float) -> Stretch:
        """Listen for so long, after the person has had a moment; a live meter on a terminal."""
        for _ in self._listening.pass_s(REACTION_S):
            pass
        self._listening.take_levels()
        begin = self._listening.heard.head_block
        periods: list[Levels] = []
        drawn: list[Levels] = []
        for _ in self._listening.pass_s(seconds):
            new = self._listening.take_levels()
            periods += new
            drawn += new
            if self._out.isatty() and len(drawn) >= DRAWN_PERIODS:
                self._draw(drawn)
                drawn = []
        if self._out.isatty():
            print("\r\033[K", end="", file=self._out, flush=True)
        levels = meter_line.join(periods)
        if levels is None or not self._listening.hears:
            raise not_heard(self._listening)
        return Stretch(begin, self._listening.heard.head_block, levels)

    def _draw(self, periods: list[Levels]) -> None:
        reading = meter_line.Reading(
            time_s=0.0,
            levels=meter_line.join(periods),
            channel=self._listening.channel,
            speech=0.0,
            lost_ms=0,
        )
        line = meter_line.live(reading, shutil.get_terminal_size().columns - 1)
        print(f"\r\033[K{line}", end="", file=self._out, flush=True)

    def _rms(self, stretch: Stretch) -> PerChannel:
        return self._listening.heard.levels(stretch.begin, stretch.end).rms

    def _samples(self, begin: int, end: int) -> Pcm16:
        samples = self._listening.heard.copy(begin, end)
        return samples if samples is not None else np.zeros(0, np.int16)

    def _compare(
        self, measured: Measured, silence: Stretch, speech: Stretch
    ) -> dict[int, VadShares]:
        """What each of the detector's modes makes of both stretches, at the gain to come."""
        said, wanted_db = measured.spoken, verdict.gain_db(measured)
        if said is None or wanted_db is None:
            return {}
        lowered_db = measured.lowered_db
        more_db = split(wanted_db, measured.hardware).total_db - said.hardware_db
        loud = verdict.speech_blocks(
            self._rms(speech), self._rms(silence) * 10 ** (-lowered_db / 20)
        )
        quiet = _amplified(self._samples(silence.begin, silence.end), more_db - lowered_db)
        voice = _amplified(self._samples(speech.begin, speech.end), more_db)
        shares = {}
        for mode in MODES:
            vad = engines.make_vad(dataclasses.replace(self._settings.vad, aggressiveness=mode))
            in_silence = [vad.is_speech(block) for block in quiet]
            in_speech = np.array([vad.is_speech(block) for block in voice])
            shares[mode] = VadShares(
                in_silence=float(np.mean(in_silence)), in_speech=float(np.mean(in_speech[loud]))
            )
        return shares

    # -- the card -----------------------------------------------------------------------------

    def _hardware(self) -> HardwareRange | None:
        opened = self._listening.opened.get(Direction.CAPTURE)
        return opened.mixer.hardware if opened is not None else None

    def _set_gain(self, hardware_db: float) -> float | None:
        """Set the card's gain; what it is now, or None when the card does not answer."""
        self._listening.set_gain(hardware_db)
        for told in self._listening.pass_s(GAIN_S):
            for message in told:
                if isinstance(message, GainSet):
                    return message.hardware_db
        return None

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)


def _amplified(samples: Pcm16, gain_db: float) -> Pcm16:
    """int16 [blocks, BLOCK_FRAMES], louder."""
    louder = samples.astype(np.float32) / np.float32(2**15) * np.float32(10 ** (gain_db / 20))
    return to_pcm16(louder).reshape(-1, BLOCK_FRAMES)


# -- the command ----------------------------------------------------------------------------------


def run(settings: Settings, write: Path | None, *, as_json: bool, out: TextIO) -> None:
    """Calibrate, tell the verdict on ``out``, and store what is proposed in ``write``.

    Raises:
        AudioDeviceError: the microphone cannot be heard.
        OutputError, InputError, ConfigError: the file cannot be written.
    """
    if write is not None:
        yaml_edit.check_writable(write)
    if sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write("Sit where you will speak from, and press Enter. ")
        sys.stderr.flush()
        sys.stdin.readline()
    description, measured = calibrate(settings, sys.stderr)
    present = Present(
        gain_db=settings.audio.capture.gain_db,
        aggressiveness=settings.vad.aggressiveness,
        echo=settings.audio.echo,
    )
    found = verdict.judge(measured, present)
    if write is not None and found.proposals:
        yaml_edit.write_values(write, found.proposals)
    if as_json:
        print(json.dumps(_fields(description, measured, found, write)), file=out)
        return
    print(f"{'microphone':<12}{description}", file=out)
    for what, figure in verdict.findings(measured):
        print(f"{what:<12}{figure}", file=out)
    for warning in found.warnings:
        print(f"{'warning':<12}{warning}", file=out)
    print(f"{'verdict':<12}{found.summary}", file=out)
    _tell_proposals(settings, found, write, out)


def _tell_proposals(settings: Settings, found: Verdict, write: Path | None, out: TextIO) -> None:
    if not found.proposals:
        return
    if write is None:
        print("\n# for the configuration, or `oyez calibrate --write FILE`:", file=out)
        print("\n".join(yaml_edit.lines(found.proposals)), file=out)
        return
    print(f"\nwritten to {write}:", file=out)
    for key, value in found.proposals.items():
        print(f"  {key}: {value} (was {yaml_edit.current(settings, key)})", file=out)


def _fields(
    description: str, measured: Measured, found: Verdict, write: Path | None
) -> dict[str, Any]:
    said, echo = measured.spoken, measured.echo
    return {
        "microphone": description,
        "channel": measured.channel,
        "signals": [signal.value for signal in measured.signals],
        "floor_dbfs": round(measured.floor_dbfs, 1),
        "dc": round(measured.dc, 4),
        "speech": dataclasses.asdict(said) if said is not None else None,
        "lowered_db": measured.lowered_db,
        "echo": dataclasses.asdict(echo) if echo is not None else None,
        "speaker_trouble": measured.speaker_trouble or None,
        "vad": {str(mode): dataclasses.asdict(shares) for mode, shares in measured.vad.items()},
        "warnings": list(found.warnings),
        "proposals": dict(found.proposals),
        "written": str(write) if write is not None and found.proposals else None,
    }
