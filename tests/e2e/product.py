"""The product as people and systemd start it: ``oyez`` in a process of its own."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

OYEZ = (sys.executable, "-m", "oyez")
PATIENCE_S = 60
"""A failing bound, not an expectation: nothing here takes so long, even on a loaded machine."""
STOP_S = 5
"""The same for the end after a signal, which is to come within 2 s on a machine of one's own."""
LOOK_S = 0.02
"""Between two looks at something that no line tells of."""

# What of our own circumstances would change what the product does.
_NOT_OURS = ("INVOCATION_ID", "JOURNAL_STREAM", "STATE_DIRECTORY", "NOTIFY_SOCKET")


@dataclass(frozen=True)
class Done:
    """A process that has ended, and all that it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines on stdout."""
        return self.out.splitlines()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines on stdout, as JSON."""
        return [json.loads(line) for line in self.lines]

    @property
    def receipts(self) -> list[dict[str, Any]]:
        """The receipts on stdout, as JSON."""
        return receipts(self.events)


def receipts(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The receipts among events."""
    return [event for event in events if event["event"] == "receipt"]


class Lines:
    """The lines of a pipe, read by a thread of their own as they come."""

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe = pipe
        self._new: queue.Queue[str | None] = queue.Queue()
        self.all: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._pipe:
            self._new.put(line.rstrip("\n"))
        self._pipe.close()
        self._new.put(None)

    def until(self, wanted: Callable[[str], bool], timeout_s: float = PATIENCE_S) -> str:
        """The next line that is wanted; those before it are only kept in ``all``."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                line = self._new.get(timeout=max(0, deadline_s - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing wanted in {timeout_s} s: {self.all}") from None
            assert line is not None, f"it ended without the line that was wanted: {self.all}"
            self.all.append(line)
            if wanted(line):
                return line

    def rest(self) -> list[str]:
        """All lines, when the process has ended."""
        self._thread.join(PATIENCE_S)
        while (line := self._new.get(timeout=PATIENCE_S)) is not None:
            self.all.append(line)
        return self.all


class Running:
    """A process at work."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.out = Lines(process.stdout)
        self.err = Lines(process.stderr)

    def event(self, name: str) -> dict[str, Any]:
        """Wait for the next event of this name on stdout."""
        line = self.out.until(lambda line: json.loads(line)["event"] == name)
        event: dict[str, Any] = json.loads(line)
        return event

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait for something that no line tells of; the process must live until then."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not happened():
            assert time.monotonic() < deadline_s, "it did not happen"
            with suppress(subprocess.TimeoutExpired):
                code = self.process.wait(LOOK_S)
                raise AssertionError(f"it ended with {code} before that: {self.err.rest()}")

    def end(self, timeout_s: float = PATIENCE_S) -> Done:
        """Wait until it has ended by itself."""
        code = self.process.wait(timeout_s)
        return Done(code, "\n".join(self.out.rest()), "\n".join(self.err.rest()))

    def stop(self, number: signal.Signals, *, insist: bool = False) -> tuple[Done, float]:
        """Send it a signal, and give what it said, and how many seconds it took to be gone.

        With ``insist`` the signal is sent again and again until then.
        """
        begin_s = time.monotonic()
        self.process.send_signal(number)
        if insist:
            while time.monotonic() < begin_s + STOP_S and self.process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(LOOK_S)
                self.process.send_signal(number)
        self.process.wait(STOP_S)
        took_s = time.monotonic() - begin_s
        return self.end(), took_s


class Product:
    """Starts ``oyez``; keeps its configurations in ``folder``."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        self.folder = folder
        self._threads = threads
        self._numbers = itertools.count()
        self.config = self.configured()

    def configured(self, **sections: Any) -> Path:
        """A new configuration: these sections, and few threads. JSON is YAML."""
        transcription = {"threads": self._threads} | sections.pop("transcription", {})
        path = self.folder / f"{next(self._numbers)}.yaml"
        path.write_text(json.dumps(sections | {"transcription": transcription}), encoding="utf-8")
        return path

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """Our environment, without what systemd may have put there."""
        ours = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        return ours | dict(changes or {})

    def run(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        prefix: Sequence[str] = (),
        cwd: Path | None = None,
    ) -> Done:
        """Run a command to its end; ``prefix`` goes before it, as in ``env`` or ``sh -c``."""
        done = subprocess.run(
            [*prefix, *OYEZ, *map(str, arguments)],
            capture_output=True,
            check=False,
            cwd=cwd or self.folder,
            env=self.environment(env),
            input=stdin,
            timeout=PATIENCE_S,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def running(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = OYEZ,
    ) -> Iterator[Running]:
        """Start a command, and see that it is gone at the end."""
        with subprocess.Popen(
            [*program, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process:
            try:
                yield Running(process)
            finally:
                process.kill()
                process.wait(PATIENCE_S)

    def heard(
        self, recording: Path, answer: Path, *, paced: bool = False, config: Path | None = None
    ) -> Done:
        """Put a recording in the microphone's place, and hear it to its end."""
        files = ("--input", recording, "--output", answer)
        pace = () if paced else ("--unpaced",)
        return self.run("run", "--json", "--config", config or self.config, *files, *pace)
