"""WebRTC's voice activity detector on blocks of 20 ms: 3 us a block, on the audio thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oyez.errors import EngineError, MissingLibraryError
from oyez.messages import BLOCK_FRAMES, RATE_HZ

if TYPE_CHECKING:
    from oyez.messages import Pcm16


class WebRtcVad:
    """Implements ``rt.front_end.BlockVad``; carries its noise estimate from block to block.

    Args:
        aggressiveness: 0 (takes much for speech) to 3 (takes little for speech).
    """

    def __init__(self, aggressiveness: int) -> None:
        try:
            import webrtcvad  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingLibraryError(
                "webrtcvad", "finding speech", remedy="install the package webrtcvad-wheels"
            ) from error
        self._vad = webrtcvad.Vad(aggressiveness)

    def is_speech(self, block: Pcm16) -> bool:
        """See ``BlockVad``.

        Raises:
            EngineError: the block has not BLOCK_FRAMES samples. The library would take other
                sizes for an error of its own, or for silence.
        """
        if len(block) != BLOCK_FRAMES:
            raise EngineError(f"the VAD takes blocks of {BLOCK_FRAMES} frames, not {len(block)}")
        return bool(self._vad.is_speech(block.tobytes(), RATE_HZ))
