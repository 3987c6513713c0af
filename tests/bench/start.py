"""``bench start``: from exec to ready, the memory before, during and after work, and the end.

Each start hears one utterance in a quiet room, in real time, so that the memory at work is seen
too; then it rests, and is asked to end. The files are in the page cache from the second start on.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import pipeline, report, timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpus import Clip

ANSWER_S = 4.0
"""By then the answer, whose begin the receipt tells, has been spoken."""
REST_S = 3.0
"""How long the processor's use at rest is watched."""
STOP_TIMEOUT_S = 10.0
_TICKS_PER_S = 100
"""USER_HZ, which is 100 on every Linux that Oyez runs on."""


def measure(clip: Clip, *, times: int, config: Path | None) -> dict[str, Any]:
    """Start, hear, rest and stop so many times.

    Raises:
        pipeline.PipelineError: the product failed.
    """
    made = timeline.build([clip], timeline.Plan(tail_ms=60_000))
    with tempfile.TemporaryDirectory() as folder:
        recording = timeline.write(made, Path(folder))
        runs = [_once(recording, config) for _ in range(times)]
    return {
        "clip": clip.name,
        "spread": {name: report.spread([run[name] for run in runs]) for name in runs[0]},
        "runs": runs,
    }


def _once(recording: Path, config: Path | None) -> dict[str, float]:
    begin = time.monotonic()
    with _running(recording, config) as process:
        _wait_for(process, "state")
        ready = time.monotonic()
        at_ready = _memory_mb(process.pid, "VmRSS")
        _wait_for(process, "receipt")
        time.sleep(ANSWER_S)
        busy = _processor_s(process.pid)
        time.sleep(REST_S)
        used = _processor_s(process.pid) - busy
        at_rest, most = (_memory_mb(process.pid, name) for name in ("VmRSS", "VmHWM"))
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)
        ended = time.monotonic()
    return {
        "exec_to_ready_ms": round((ready - begin) * 1000, 1),
        "rss_ready_mb": at_ready,
        "rss_rest_mb": at_rest,
        "rss_max_mb": most,
        "cpu_rest_percent": round(used / REST_S * 100, 1),
        "stop_ms": round((ended - asked) * 1000, 1),
    }


@contextmanager
def _running(recording: Path, config: Path | None) -> Iterator[subprocess.Popen[str]]:
    """The daemon with the recording as its microphone; killed if it is still there at the end."""
    arguments = pipeline.running(recording, recording.with_name("answer.wav"), config=config)
    with (
        tempfile.TemporaryFile("w+") as talk,
        subprocess.Popen(
            [*pipeline.OYEZ, *arguments], stdout=subprocess.PIPE, stderr=talk, text=True
        ) as process,
    ):
        try:
            yield process
        except pipeline.PipelineError as error:
            process.kill()
            talk.seek(0)
            raise pipeline.PipelineError(f"{error}: {talk.read()}") from error
        finally:
            process.kill()


def _wait_for(process: subprocess.Popen[str], event: str) -> None:
    if process.stdout is None:
        raise ValueError("the process was started without a pipe")
    for line in process.stdout:
        if json.loads(line).get("event") == event:
            return
    raise pipeline.PipelineError(f"oyez run ended without the event {event!r}")


def _memory_mb(pid: int, name: str) -> float:
    """A field of /proc/PID/status (proc_pid_status(5)), in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return round(int(value.split()[0]) / 1024, 1)
    raise pipeline.PipelineError(f"process {pid} has no {name}: it has ended")


def _processor_s(pid: int) -> float:
    """Seconds of processor time so far, in user and kernel mode (proc_pid_stat(5))."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS_PER_S
