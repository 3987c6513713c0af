"""``bench audio``: what the audio thread costs and how late it is, over the test card.

The test card's clock is CLOCK_MONOTONIC, so that when each period was complete is known to the
microsecond. Lateness is from there until its blocks are in the ring: it includes what the machine
did meanwhile, which is why its steal time stands beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alsa.build import build
from alsa.card import Offer, Rack
from card import product
from card.chain import WISH, Chain
from e2e.product import Product
from oyez.app import SWITCH_INTERVAL_S, inference_threads
from oyez.messages import RATE_HZ
from oyez.models.catalogue import Catalogue, Kind
from oyez.models.store import ModelStore
from oyez.rt.audio_thread import AudioThread
from oyez.speech import engines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from alsa.card import Card
    from oyez.config import Settings

PERIODS_MS = (8, 10, 16, 20)
STEREO_48K = Offer(rates=(48000,), channels=(2,))
BUFFER_MS = 160
"""The default: eight periods of 20 ms. The same time for all, so that they differ in one thing."""
_BURN = "import time; end = time.monotonic() + float({seconds})\nwhile time.monotonic() < end: pass"


class TimedThread(AudioThread):
    """The audio thread, with a note of each period's cost and lateness."""

    card: Card

    def run(self) -> None:
        """See ``AudioThread``."""
        self.costs_ms: list[float] = []
        self.lateness_ms: list[float] = []
        self._starts = 0
        self._before = 0
        self._frames = 0
        self._used_s = time.thread_time()
        super().run()

    def _hear(self) -> float:
        heard_s = super()._hear()
        stream = self.card.capture
        if stream.frames == self._frames:
            return heard_s
        now_ns, used_s = time.monotonic_ns(), time.thread_time()
        if stream.starts != self._starts:
            self._starts, self._before = stream.starts, self._frames
        due_ns = stream.started_ns + (stream.frames - self._before) * 1_000_000_000 / stream.rate
        self._frames = stream.frames
        self.lateness_ms.append((now_ns - due_ns) / 1e6)
        self.costs_ms.append((used_s - self._used_s) * 1000)
        self._used_s = used_s
        return heard_s


def measure(
    settings: Settings, *, seconds: float, periods_ms: Sequence[int], say: Callable[[str], None]
) -> dict[str, Any]:
    """Each period at rest and under load, for so long, and one question over each period."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    rows = []
    for loaded in (False, True):
        for period_ms in periods_ms:
            say(f"{period_ms} ms, {'loaded' if loaded else 'idle'}, for {seconds:g} s")
            with ExitStack() as stack:
                if loaded:
                    stack.enter_context(inference(settings))
                    stack.enter_context(burning(seconds + 60))
                rows.append({"loaded": loaded, **_once(settings, period_ms, seconds)})
    return {"rows": rows, "wait_ms": {period: _wait_ms(period) for period in periods_ms}}


def _once(settings: Settings, period_ms: int, seconds: float) -> dict[str, Any]:
    wish = replace(WISH, period_ms=period_ms, periods=BUFFER_MS // period_ms)
    with tempfile.TemporaryDirectory() as folder, _environment(Path(folder)) as rack:
        card = rack.card("Mic", capture=STEREO_48K, playback=STEREO_48K)
        card.goes_on = 1
        noise = np.random.default_rng(1).normal(0, 0.01, RATE_HZ).astype(np.float32)
        card.play(noise, rate=RATE_HZ, loops=True)
        rack.plug(card)
        vad = engines.make_vad(settings.vad)
        chain = Chain(rack, playback="auto", wish=wish, vad=vad, audio_thread=TimedThread)
        thread = chain.audio
        thread.card = card
        before = _jiffies()
        with chain:
            chain.pass_s(seconds)
        busy = _jiffies() - before
        ticks = float(busy.sum()) or 1.0
    skipped = round(1000 / period_ms)  # the first second: caches, and code that runs once
    return {
        "period_ms": period_ms,
        "periods": len(thread.costs_ms),
        "cost_ms": fine_spread(thread.costs_ms[skipped:]),
        "core_percent": round(100 * sum(thread.costs_ms) / 1000 / seconds, 2),
        "late_ms": fine_spread(thread.lateness_ms[skipped:]),
        "overruns": card.capture.xruns,
        "underruns": card.playback.xruns,
        "lost_frames": card.capture.frames_lost,
        "steal_percent": round(100 * float(busy[7]) / ticks, 1),
        "idle_percent": round(100 * float(busy[3] + busy[4]) / ticks, 1),
    }


def fine_spread(values: Sequence[float]) -> dict[str, float]:
    """Percentiles to a microsecond: the 50th, the 99th, the 99.9th, and the most."""
    found = np.percentile(values, [50, 99, 99.9, 100])
    return {
        name: round(float(value), 3)
        for name, value in zip(("p50", "p99", "p99_9", "max"), found, strict=True)
    }


@contextmanager
def _environment(folder: Path) -> Iterator[Rack]:
    """A rack that ALSA is led to."""
    rack = Rack(folder / "rack", build())
    os.environ["ALSA_CONFIG_PATH"] = str(rack.configuration)
    try:
        yield rack
    finally:
        rack.close()
        del os.environ["ALSA_CONFIG_PATH"]


@contextmanager
def inference(settings: Settings) -> Iterator[None]:
    """Whisper and Piper at work in this process, in turn as in the product, without a pause."""
    store = ModelStore(settings.models.folder_path, Catalogue.load())
    threads = inference_threads(settings)
    reader = engines.make_transcriber(
        settings.transcription, store.ready(settings.transcription.model, Kind.WHISPER), threads
    )
    model = store.ready(settings.voice.model, Kind.PIPER)
    voice = engines.make_synthesizer(settings.voice, model, threads)
    one_at_a_time = threading.Lock()
    over = threading.Event()
    speech = np.random.default_rng(1).normal(0, 0.05, 3 * RATE_HZ).astype(np.float32)

    def read() -> None:
        while not over.is_set():
            with one_at_a_time:
                reader.read(speech)

    def speak() -> None:
        while not over.is_set():
            with one_at_a_time:
                for _ in voice.speak("The lamp in the living room is on now."):
                    pass

    workers = [threading.Thread(target=work) for work in (read, speak)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        over.set()
        for worker in workers:
            worker.join()


@contextmanager
def burning(seconds: float) -> Iterator[None]:
    """A process for each core that does nothing else than use it, for so long at most."""
    program = _BURN.format(seconds=seconds)
    cores = len(os.sched_getaffinity(0))
    burners = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(cores)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _wait_ms(period_ms: int) -> float | None:
    """How long a person waits for the answer, from the last word to its first sample."""
    with tempfile.TemporaryDirectory() as folder:
        bench = product.Bench(Product(Path(folder), threads=1), Path(folder), build())
        kind = product.Kind(
            name="periods",
            offer=STEREO_48K,
            asked={"period_ms": period_ms, "periods": BUFFER_MS // period_ms},
        )
        wait_ms: float | None = bench.kind(kind)["wait_ms"]
    return wait_ms


def _jiffies() -> np.ndarray:
    """The machine's ticks by use (proc_stat(5)): 3 is idle, 4 waits for I/O, 7 is stolen."""
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    return np.array([int(ticks) for ticks in first.split()[1:]])
