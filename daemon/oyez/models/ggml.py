"""Writing a Whisper model in ggml's layout, byte for byte as whisper.cpp's own converter does.

Pure apart from reading the weights; runs on the thread that rewrites a model. The file is made
piece by piece, so memory stays bounded by one slice of the largest matrix.

Layout, little-endian: twelve int32 (magic, then the model's dimensions, then the file type);
int32 bands, int32 bins and the mel filters as f32; int32 token count and each token as a
length and raw bytes; then the tensors, each as int32 rank, name length and type, int32 per
dimension (last one first), name, contents.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oyez.errors import ModelError
from oyez.models.quantize import Ftype, quantize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from oyez.models.ct2 import Ct2Weights

MAGIC = 0x67676D6C
MEL_BANDS = 80
MEL_BINS = 201
TEXT_TOKENS = 50_257
"""The tokens that a file lists; whisper.cpp makes up the rest. In the English vocabulary the
last of these is ``<|endoftext|>``, in the multilingual one it is the last piece of text."""

_FILE_TYPE = {Ftype.F16: 1, Ftype.Q5_1: 1009, Ftype.Q8_0: 2007}
_TENSOR_TYPE = {Ftype.F16: 1, Ftype.Q5_1: 7, Ftype.Q8_0: 8}
_TENSOR_F32 = 0
_SLICE_VALUES = 1 << 20
_MATRIX_RANK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    """A ggml tensor and where it lies in the CTranslate2 model: rows of a variable."""

    name: str
    variable: str
    first: int = 0
    rows: int | None = None
    as_f32: bool = False
    as_column: bool = False


def ggml_file(weights: Ct2Weights, tokens: Sequence[bytes], ftype: Ftype) -> Iterator[bytes]:
    """Yield the pieces of the ggml file in order.

    Args:
        weights: a CTranslate2 Whisper model of 16-bit floats.
        tokens: the raw bytes of the first 50,257 tokens.
        ftype: how the matrices are stored.

    Raises:
        ModelError: the model is no Whisper model, or its rows cannot be quantized.
    """
    yield _header(weights, ftype)
    yield struct.pack("<2i", MEL_BANDS, MEL_BINS) + mel_filters().astype("<f4").tobytes()
    yield struct.pack("<i", len(tokens))
    yield b"".join(struct.pack("<i", len(token)) + token for token in tokens)
    for tensor in _tensors(weights):
        yield from _tensor_pieces(weights, tensor, ftype)


def text_tokens(vocabulary: str) -> list[bytes]:
    """Turn CTranslate2's ``vocabulary.txt`` (one token a line) into the tokens' raw bytes.

    GPT-2's vocabulary writes each byte as one printable character: the printable ones of
    Latin-1 as themselves, the other 68 in order as the characters from U+0100 on.

    Raises:
        ModelError: the vocabulary is too short or not in this form.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable}
    byte_of |= {chr(256 + rank): byte for rank, byte in enumerate(others)}
    lines = vocabulary.split("\n")[:TEXT_TOKENS]
    if len(lines) < TEXT_TOKENS:
        raise ModelError(f"the vocabulary has {len(lines)} tokens, {TEXT_TOKENS} are needed")
    try:
        return [bytes(byte_of[character] for character in line) for line in lines]
    except KeyError as exc:
        raise ModelError(
            f"the vocabulary has the character {exc}, which stands for no byte"
        ) from exc


def mel_filters() -> npt.NDArray[np.float32]:
    """Whisper's mel filter bank, f32, shape [80 bands, 201 bins] (16 kHz, windows of 400).

    Slaney's scale (Auditory Toolbox, 1998): linear below 1 kHz, 200/3 Hz a mel, and logarithmic
    above it, 27 steps for a factor of 6.4; triangles of equal area. They are rounded to f32
    before they are scaled: the original was made so, and the bits must agree.
    """
    step = np.log(6.4) / 27.0
    corner_hz, corner_mel = 1000.0, 15.0
    top_mel = corner_mel + np.log(8000.0 / corner_hz) / step
    mels = np.linspace(0.0, top_mel, MEL_BANDS + 2)
    logarithmic_hz = corner_hz * np.exp(step * (mels - corner_mel))
    edges_hz = np.where(mels < corner_mel, 200.0 / 3.0 * mels, logarithmic_hz)
    bins_hz = np.arange(MEL_BINS) * (16_000 / 400)
    ramps = edges_hz[:, np.newaxis] - bins_hz
    widths = np.diff(edges_hz)[:, np.newaxis]
    rising = -ramps[:-2] / widths[:-1]
    falling = ramps[2:] / widths[1:]
    triangles = np.maximum(0.0, np.minimum(rising, falling)).astype(np.float32) + np.float32(0)
    areas = (edges_hz[2:] - edges_hz[:-2])[:, np.newaxis] / 2.0
    return np.asarray(triangles * (1.0 / areas), np.float32)


def _layers(weights: Ct2Weights, side: str) -> int:
    prefix = f"{side}/layer_"
    numbers = {
        int(name.removeprefix(prefix).split("/")[0])
        for name in weights.variables
        if name.startswith(prefix) and not name.startswith(f"{side}/layer_norm")
    }
    return len(numbers)


def _header(weights: Ct2Weights, ftype: Ftype) -> bytes:
    vocabulary, state = weights.variable("decoder/embeddings/weight").shape
    audio_context, _ = weights.variable("encoder/position_encodings/encodings").shape
    text_context, _ = weights.variable("decoder/position_encodings/encodings").shape
    if weights.variable("encoder/conv1/weight").shape[1] != MEL_BANDS:
        raise ModelError(f"the model does not take {MEL_BANDS} mel bands")
    return struct.pack(
        "<12i",
        MAGIC,
        vocabulary,
        audio_context,
        state,
        int(weights.read("encoder/num_heads").item()),
        _layers(weights, "encoder"),
        text_context,
        state,
        int(weights.read("decoder/num_heads").item()),
        _layers(weights, "decoder"),
        MEL_BANDS,
        _FILE_TYPE[ftype],
    )


def _tensors(weights: Ct2Weights) -> Iterator[_Tensor]:
    """Every tensor in the order of the official files."""
    state = weights.variable("decoder/embeddings/weight").shape[1]
    for side in ("decoder", "encoder"):
        yield _Tensor(
            name=f"{side}.positional_embedding",
            variable=f"{side}/position_encodings/encodings",
            as_f32=True,
        )
    yield _Tensor(name="decoder.token_embedding.weight", variable="decoder/embeddings/weight")
    for layer in range(_layers(weights, "decoder")):
        yield from _block(f"decoder.blocks.{layer}", f"decoder/layer_{layer}", state)
        yield from _cross_attention(f"decoder.blocks.{layer}", f"decoder/layer_{layer}", state)
    yield from _norm("decoder.ln", "decoder/layer_norm")
    for conv in ("conv1", "conv2"):
        yield _Tensor(name=f"encoder.{conv}.weight", variable=f"encoder/{conv}/weight")
        yield _Tensor(
            name=f"encoder.{conv}.bias",
            variable=f"encoder/{conv}/bias",
            as_f32=True,
            as_column=True,
        )
    for layer in range(_layers(weights, "encoder")):
        yield from _block(f"encoder.blocks.{layer}", f"encoder/layer_{layer}", state)
    yield from _norm("encoder.ln_post", "encoder/layer_norm")


def _block(name: str, variable: str, state: int) -> Iterator[_Tensor]:
    yield from _norm(f"{name}.mlp_ln", f"{variable}/ffn/layer_norm")
    yield from _linear(f"{name}.mlp.0", f"{variable}/ffn/linear_0")
    yield from _linear(f"{name}.mlp.2", f"{variable}/ffn/linear_1")
    attention = f"{variable}/self_attention"
    yield from _norm(f"{name}.attn_ln", f"{attention}/layer_norm")
    yield from _linear(f"{name}.attn.query", f"{attention}/linear_0", 0, state)
    yield from _linear(f"{name}.attn.key", f"{attention}/linear_0", state, state, bias=False)
    yield from _linear(f"{name}.attn.value", f"{attention}/linear_0", 2 * state, state)
    yield from _linear(f"{name}.attn.out", f"{attention}/linear_1")


def _cross_attention(name: str, variable: str, state: int) -> Iterator[_Tensor]:
    attention = f"{variable}/attention"
    yield from _norm(f"{name}.cross_attn_ln", f"{attention}/layer_norm")
    yield from _linear(f"{name}.cross_attn.query", f"{attention}/linear_0")
    yield from _linear(f"{name}.cross_attn.key", f"{attention}/linear_1", 0, state, bias=False)
    yield from _linear(f"{name}.cross_attn.value", f"{attention}/linear_1", state, state)
    yield from _linear(f"{name}.cross_attn.out", f"{attention}/linear_2")


def _norm(name: str, variable: str) -> Iterator[_Tensor]:
    yield _Tensor(name=f"{name}.weight", variable=f"{variable}/gamma", as_f32=True)
    yield _Tensor(name=f"{name}.bias", variable=f"{variable}/beta", as_f32=True)


def _linear(
    name: str, variable: str, first: int = 0, rows: int | None = None, *, bias: bool = True
) -> Iterator[_Tensor]:
    """Rows of a stacked projection. Whisper's keys have no bias: CTranslate2 stores zeros."""
    yield _Tensor(name=f"{name}.weight", variable=f"{variable}/weight", first=first, rows=rows)
    if bias:
        yield _Tensor(
            name=f"{name}.bias", variable=f"{variable}/bias", first=first, rows=rows, as_f32=True
        )


def _tensor_pieces(weights: Ct2Weights, tensor: _Tensor, ftype: Ftype) -> Iterator[bytes]:
    stored = weights.variable(tensor.variable).shape
    rows = stored[0] - tensor.first if tensor.rows is None else tensor.rows
    shape = (rows, *stored[1:])
    dims = (rows, 1) if tensor.as_column else shape
    # Only matrices are quantized: the convolutions' weights have three dimensions.
    storage = ftype if len(shape) == _MATRIX_RANK else Ftype.F16
    kind = _TENSOR_F32 if tensor.as_f32 else _TENSOR_TYPE[storage]
    name = tensor.name.encode()
    yield struct.pack("<3i", len(dims), len(name), kind)
    yield struct.pack(f"<{len(dims)}i", *reversed(dims)) + name
    step = max(1, _SLICE_VALUES // max(1, int(np.prod(shape[1:]))))
    for row in range(0, rows, step):
        values = weights.read(tensor.variable, tensor.first + row, min(step, rows - row))
        if tensor.as_f32:
            yield values.astype("<f4").tobytes()
        else:
            yield quantize(values, storage).tobytes()
