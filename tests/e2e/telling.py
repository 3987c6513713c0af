"""``oyez`` itself, but for a line on stderr when the recognizer begins to read an utterance.

Nothing that the product says tells from outside when a decode is running. Run as a program.
"""

from __future__ import annotations

import sys

from oyez.cli import main
from oyez.speech.stt_whisper import WhisperTranscriber

DECODING = "decoding"
_read = WhisperTranscriber.read


def _told(self, samples):
    sys.stderr.write(f"{DECODING}\n")
    sys.stderr.flush()
    return _read(self, samples)


if __name__ == "__main__":
    WhisperTranscriber.read = _told
    sys.exit(main())
