"""The crew: all threads beside main, wired to each other, started in order, stopped in reverse.

Main's thread only, but for what the audio thread asks of ``settled`` in an unpaced run.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from oyez.errors import OyezError
from oyez.messages import BLOCK_FRAMES, RATE_HZ, AnswerRequest
from oyez.rt.audio_thread import AudioThread
from oyez.rt.front_end import FrontEnd
from oyez.rt.ring import FrameRing, PlaybackRing
from oyez.speech import engines
from oyez.speech.endpointer import Endpointer
from oyez.workers.listener import Listener
from oyez.workers.speaker import SpeakerWorker
from oyez.workers.transcriber import TranscriberWorker

if TYPE_CHECKING:
    from oyez.config import Settings
    from oyez.rt.mailbox import Mailbox
    from oyez.sound import Sound
    from oyez.speech.engines import Synthesizer, Transcriber

RING_SPARE_S = 10
"""So far may the listener fall behind before sound is lost."""
PLAYBACK_S = 10
"""So much of an answer is made ahead; the voice then waits for the speaker."""
JOIN_S = 1.5
"""Threads that have not ended after this are left behind, so that the process ends within 2 s."""


class Crew:
    """The audio thread and the workers of one run.

    Args:
        settings: the configuration.
        main: where all of them report to.
        sound: both ends; without a speaker nothing is answered.
        transcriber: the loaded recognizer.
        voice: the loaded voice; not used without a speaker.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        main: Mailbox[object],
        sound: Sound,
        transcriber: Transcriber,
        voice: Synthesizer | None,
    ) -> None:
        endpointing = settings.endpointing
        seconds = endpointing.max_utterance_s + endpointing.pre_roll_ms / 1000 + RING_SPARE_S
        self.heard = FrameRing(int(seconds * RATE_HZ) // BLOCK_FRAMES)
        self._main = main
        self._stopping = False
        # One inference at a time: two of them would take as many threads as there are cores and
        # more, and ggml's threads spin while they wait for each other.
        inference = threading.Lock()
        self._transcriber = TranscriberWorker(
            engine=transcriber, inference=inference, ring=self.heard, main=main
        )
        self._listener = Listener(
            ring=self.heard,
            endpointer=Endpointer(
                pre_roll_ms=endpointing.pre_roll_ms,
                hangover_ms=endpointing.hangover_ms,
                min_speech_ms=endpointing.min_speech_ms,
                max_utterance_ms=int(endpointing.max_utterance_s * 1000),
            ),
            transcriber=self._transcriber.inbox,
            main=main,
        )
        playback = self._playback = sound.playback
        self._speaker: SpeakerWorker | None = None
        spoken: PlaybackRing | None = None
        if playback is not None and voice is not None:
            spoken = PlaybackRing(PLAYBACK_S * playback.rate_hz)
            self._speaker = SpeakerWorker(
                engine=voice,
                inference=inference,
                ring=spoken,
                rate_hz=playback.rate_hz,
                main=main,
            )
        self._device = sound.device
        self.front_end = FrontEnd(engines.make_vad(settings.vad))
        self._audio = AudioThread(
            capture=sound.capture,
            playback=playback,
            front_end=self.front_end,
            heard=self.heard,
            spoken=spoken,
            gate=settings.audio.echo == "gate",
            main=main,
        )
        crew = (self._audio, self._device, self._listener, self._transcriber, self._speaker)
        self._threads = [thread for thread in crew if thread is not None]

    @property
    def overruns(self) -> int:
        """How often the card reported lost sound."""
        return self._audio.overruns

    @property
    def gaps(self) -> int:
        """How often hearing was interrupted."""
        return self._audio.gaps

    @property
    def lost_ms(self) -> int:
        """How much was not heard, in all."""
        return round(self._audio.lost_s * 1000)

    @property
    def underruns(self) -> int:
        """How often the card had nothing to play."""
        return self._playback.underruns if self._playback is not None else 0

    @property
    def lost_frames(self) -> int:
        """Frames that the listener was too late for, in all."""
        return self._listener.lost_blocks * BLOCK_FRAMES

    def start(self) -> None:
        """Start the threads, those that are waited for first."""
        for thread in reversed(self._threads):
            thread.start()

    def speak(self, request: AnswerRequest) -> bool:
        """Hand an answer to the voice; False when too many wait."""
        return self._speaker is not None and self._speaker.inbox.post(request)

    def set_gain(self, hardware_db: float) -> None:
        """Set the microphone's gain in the card, if there is one."""
        if self._device is not None:
            self._device.set_gain(hardware_db)

    def check_alive(self) -> None:
        """See that nobody ended without a word.

        Raises:
            OyezError: a thread is gone.
        """
        for thread in self._threads:
            if not thread.is_alive():
                raise OyezError(f"the thread {thread.name} ended unexpectedly")

    def settled(self) -> bool:
        """Whether every consequence of what was heard so far is done. Any thread.

        Asked in the order in which work flows, and main once more at the end, since the voice tells
        it how far it is; from what it is told then, nothing new follows.
        """
        return self._stopping or (
            self._listener.settled
            and self._transcriber.inbox.idle
            and self._main.idle
            and (self._speaker is None or self._speaker.settled)
            and self._main.idle
        )

    def stop(self) -> bool:
        """Stop all threads, the source of the sound first; False when one did not end in time.

        The listener ends an open utterance as "stopped" when all that was heard has reached it.
        """
        self._stopping = True
        deadline_s = time.monotonic() + JOIN_S
        # The sound first, then who listens to it, so that all that was heard is accounted for.
        # The others are all told before any is waited for: they wait for each other's inference.
        others = [t for t in self._threads if t not in (self._audio, self._listener)]
        for group in ([self._audio], [self._listener], others):
            for thread in group:
                thread.stop()
            for thread in group:
                if thread.is_alive():
                    thread.join(max(0.0, deadline_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)
