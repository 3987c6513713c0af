"""How loud the microphone is kept: main's side of the gain, between policy, card and front end.

Main's thread only. The policy is ``audio.gain.AutoGain``; this class feeds it with what was heard,
and carries its steps to the card (through the device's thread) and to the front end.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from oyez.audio.gain import AutoGain, Gain, GainMemory, Spoken, Step, split
from oyez.audio.pcm import SILENCE_DBFS, SampleFormat, dbfs
from oyez.errors import OutputError
from oyez.messages import EndReason, frames_to_ms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal

    from oyez.messages import Heard, MicrophoneChanged
    from oyez.rt.front_end import FrontEnd
    from oyez.workers.device import DeviceOpened

RAW_FORMATS = (SampleFormat.S32, SampleFormat.S24)
RAW_GAIN_DB = 20.0
"""What a microphone begins with that delivers 24 bits in 32 and has no gain of its own.

Those are converters on an I2S bus: by their data sheets -26 dBFS at 94 dB of sound pressure, so
that speech at 60 to 65 dB is near -57 dBFS, where no VAD finds its first words. One that turns out
louder is turned down after its first utterance, and is limited until then."""

logger = logging.getLogger(__name__)


class Loudness:
    """The gain of one run.

    Args:
        wish: the configuration's ``capture.gain_db``.
        front_end: takes the software gain, and knows the noise floor.
        set_hardware: asks the device's thread for a gain in the card.
        memory: the file in which gains are kept across restarts.
    """

    def __init__(
        self,
        wish: float | Literal["auto", "leave"],
        front_end: FrontEnd,
        set_hardware: Callable[[float], None],
        memory: Path,
    ) -> None:
        self._wish = wish
        self._front_end = front_end
        self._set_hardware = set_hardware
        self._memory = GainMemory(memory)
        if self._memory.note:
            logger.warning("%s", self._memory.note)
        self._policy: AutoGain | None = None
        self._heard: dict[int, Heard] = {}
        self._device = ""
        self._told_memory = False

    def opened(self, message: DeviceOpened) -> None:
        """A microphone was opened: take the gain that is wished for, remembered, or found."""
        if self._wish == "leave":
            return
        hardware = message.mixer.hardware
        now = Gain(hardware_db=message.hardware_db or 0.0, software_db=0.0)
        self._device = message.device
        if isinstance(self._wish, float | int):
            self._apply(split(self._wish, hardware), now)
            return
        remembered = self._memory.recall(self._device)
        gain = remembered or self._first(message, now)
        self._policy = AutoGain(hardware, gain, proven=remembered is not None)
        self._apply(gain, now)

    @staticmethod
    def _first(message: DeviceOpened, now: Gain) -> Gain:
        """The gain to begin with, when nothing is remembered."""
        if message.mixer.hardware is None and message.sample_format in RAW_FORMATS:
            return replace(now, software_db=RAW_GAIN_DB)
        return now

    def granted(self, hardware_db: float) -> None:
        """What the card made of the last step."""
        if self._policy is not None:
            self._policy.granted(hardware_db)

    def changed(self, message: MicrophoneChanged) -> None:
        """The microphone began to clip: at once, not after the utterance."""
        if self._policy is not None and message.clipping:
            level_dbfs = self._level_dbfs()
            now_ms = frames_to_ms(message.frame)
            self._follow(self._policy.clips(level_dbfs, message.peak_dbfs, now_ms))

    def heard(self, message: Heard) -> None:
        """An utterance is over; whether there were words in it is told later."""
        self._heard[message.span.number] = message

    def read(self, number: int, *, has_text: bool) -> None:
        """Whether there were words in an utterance."""
        heard = self._heard.pop(number, None)
        if self._policy is None or heard is None:
            return
        levels, channel = self._front_end.levels, self._front_end.channel
        floor = dbfs(float(levels.floor[channel])) if levels is not None else SILENCE_DBFS
        spoken = Spoken(
            level_dbfs=heard.level_dbfs,
            peak_dbfs=heard.peak_dbfs,
            floor_dbfs=floor,
            clipped=heard.clipped_ms > 0,
            ended_in_silence=heard.span.reason is EndReason.SILENCE,
            has_text=has_text,
        )
        self._follow(self._policy.utterance(spoken, frames_to_ms(heard.span.endpoint_frame)))

    def blip(self) -> None:
        """What was heard was too short to be speech."""
        if self._policy is not None:
            self._policy.blip()

    def _level_dbfs(self) -> float:
        levels, channel = self._front_end.levels, self._front_end.channel
        return dbfs(float(levels.rms[channel])) if levels is not None else SILENCE_DBFS

    def _follow(self, step: Step | None) -> None:
        if step is None or self._policy is None:
            return
        logger.info("microphone gain: %s", step)
        if step.in_vain:
            return
        self._apply(step.gain, None)
        try:
            self._memory.keep(self._device, step.gain)
        except OutputError as error:
            if not self._told_memory:
                logger.warning("%s", error)
            self._told_memory = True

    def _apply(self, gain: Gain, now: Gain | None) -> None:
        """Carry a gain out; ``now`` is what is known to be set already."""
        self._front_end.gain_db = gain.software_db
        if now is None or gain.hardware_db != now.hardware_db:
            self._set_hardware(gain.hardware_db)
