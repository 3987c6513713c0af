"""Rewriting gives ggml's layout: a reader of our own finds every tensor where it belongs."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest

from models import makers
from oyez.errors import ModelError
from oyez.models import ggml
from oyez.models.ct2 import Ct2Weights
from oyez.models.ggml import TEXT_TOKENS, mel_filters, text_tokens
from oyez.models.quantize import Ftype, quantize

STATE = 64
VARIABLES = makers.whisper_variables(state=STATE, heads=2, layers=2, vocabulary=96)
BLOCK_BYTES = {1: 2 * 32, 7: 24, 8: 34}
BLOCK = [
    "mlp_ln.weight",
    "mlp_ln.bias",
    "mlp.0.weight",
    "mlp.0.bias",
    "mlp.2.weight",
    "mlp.2.bias",
    "attn_ln.weight",
    "attn_ln.bias",
    "attn.query.weight",
    "attn.query.bias",
    "attn.key.weight",
    "attn.value.weight",
    "attn.value.bias",
    "attn.out.weight",
    "attn.out.bias",
]
CROSS = [
    "cross_attn_ln.weight",
    "cross_attn_ln.bias",
    "cross_attn.query.weight",
    "cross_attn.query.bias",
    "cross_attn.key.weight",
    "cross_attn.value.weight",
    "cross_attn.value.bias",
    "cross_attn.out.weight",
    "cross_attn.out.bias",
]


class Reader:
    """Reads a ggml file the way whisper.cpp does: from the front, trusting its own numbers."""

    def __init__(self, content):
        self._content = content
        self._at = 0
        self.header = self.ints(12)
        bands, bins = self.ints(2)
        self.filters = np.frombuffer(self.take(4 * bands * bins), "<f4").reshape(bands, bins)
        self.tokens = [self.take(*self.ints(1)) for _ in range(*self.ints(1))]
        self.tensors = {}
        while self._at < len(content):
            rank, length, kind = self.ints(3)
            dims = self.ints(rank)
            name = self.take(length).decode()
            count = int(np.prod(dims))
            self.tensors[name] = (
                kind,
                dims,
                self.take(count * 4 if kind == 0 else count * BLOCK_BYTES[kind] // 32),
            )

    def take(self, count):
        self._at += count
        assert self._at <= len(self._content)
        return self._content[self._at - count : self._at]

    def ints(self, count):
        return struct.unpack(f"<{count}i", self.take(4 * count))


@pytest.fixture(scope="module")
def model_bin(tmp_path_factory):
    path = tmp_path_factory.mktemp("ct2") / "model.bin"
    path.write_bytes(makers.ct2_bytes(VARIABLES))
    return path


@pytest.fixture(scope="module", params=Ftype)
def written(request, model_bin):
    return request.param, Reader(makers.ggml_bytes(model_bin, request.param))


def test_the_header_holds_the_dimensions_of_the_model(written):
    ftype, reader = written
    number = {"f16": 1, "q5_1": 1009, "q8_0": 2007}[ftype]
    assert reader.header == (0x67676D6C, 96, 1500, STATE, 2, 2, 448, STATE, 2, 2, 80, number)


def test_the_tensors_stand_in_the_official_order(written):
    _, reader = written
    assert list(reader.tensors) == [
        "decoder.positional_embedding",
        "encoder.positional_embedding",
        "decoder.token_embedding.weight",
        *[f"decoder.blocks.0.{name}" for name in BLOCK + CROSS],
        *[f"decoder.blocks.1.{name}" for name in BLOCK + CROSS],
        "decoder.ln.weight",
        "decoder.ln.bias",
        "encoder.conv1.weight",
        "encoder.conv1.bias",
        "encoder.conv2.weight",
        "encoder.conv2.bias",
        *[f"encoder.blocks.0.{name}" for name in BLOCK],
        *[f"encoder.blocks.1.{name}" for name in BLOCK],
        "encoder.ln_post.weight",
        "encoder.ln_post.bias",
    ]


@pytest.mark.parametrize(
    ("tensor", "variable", "rows"),
    [
        ("decoder.token_embedding.weight", "decoder/embeddings/weight", slice(None)),
        (
            "encoder.blocks.1.attn.query.weight",
            "encoder/layer_1/self_attention/linear_0/weight",
            slice(0, 64),
        ),
        (
            "decoder.blocks.0.attn.key.weight",
            "decoder/layer_0/self_attention/linear_0/weight",
            slice(64, 128),
        ),
        (
            "decoder.blocks.1.attn.value.weight",
            "decoder/layer_1/self_attention/linear_0/weight",
            slice(128, 192),
        ),
        (
            "decoder.blocks.0.cross_attn.query.weight",
            "decoder/layer_0/attention/linear_0/weight",
            slice(None),
        ),
        (
            "decoder.blocks.0.cross_attn.key.weight",
            "decoder/layer_0/attention/linear_1/weight",
            slice(0, 64),
        ),
        (
            "decoder.blocks.0.cross_attn.value.weight",
            "decoder/layer_0/attention/linear_1/weight",
            slice(64, 128),
        ),
        ("encoder.blocks.0.mlp.2.weight", "encoder/layer_0/ffn/linear_1/weight", slice(None)),
    ],
)
def test_a_matrix_is_stored_as_the_file_type_says(written, tensor, variable, rows):
    ftype, reader = written
    kind, dims, stored = reader.tensors[tensor]
    expected = VARIABLES[variable][rows]
    assert kind == {"f16": 1, "q5_1": 7, "q8_0": 8}[ftype]
    assert dims == expected.shape[::-1]
    assert stored == quantize(expected, ftype).tobytes()


@pytest.mark.parametrize(
    ("tensor", "variable", "rows", "dims"),
    [
        (
            "encoder.positional_embedding",
            "encoder/position_encodings/encodings",
            slice(None),
            (64, 1500),
        ),
        (
            "decoder.blocks.0.attn_ln.weight",
            "decoder/layer_0/self_attention/layer_norm/gamma",
            slice(None),
            (64,),
        ),
        (
            "decoder.blocks.0.attn.value.bias",
            "decoder/layer_0/self_attention/linear_0/bias",
            slice(128, 192),
            (64,),
        ),
        ("encoder.conv2.bias", "encoder/conv2/bias", slice(None), (1, 64)),
    ],
)
def test_biases_norms_and_positions_are_32_bit_in_every_file(written, tensor, variable, rows, dims):
    _, reader = written
    kind, found_dims, stored = reader.tensors[tensor]
    assert (kind, found_dims) == (0, dims)
    assert stored == VARIABLES[variable][rows].astype("<f4").tobytes()


def test_convolutions_stay_16_bit_in_every_file(written):
    _, reader = written
    kind, dims, stored = reader.tensors["encoder.conv1.weight"]
    assert (kind, dims) == (1, (3, 80, 64))
    assert stored == VARIABLES["encoder/conv1/weight"].tobytes()


def test_slices_of_a_matrix_give_the_same_bytes_as_the_whole(model_bin, monkeypatch):
    whole = makers.ggml_bytes(model_bin, Ftype.Q5_1)
    monkeypatch.setattr(ggml, "_SLICE_VALUES", 5 * STATE)
    assert makers.ggml_bytes(model_bin, Ftype.Q5_1) == whole


def test_tokens_and_filters_stand_in_front_of_the_tensors(written):
    _, reader = written
    assert len(reader.tokens) == TEXT_TOKENS
    assert reader.tokens[:2] == [b"t0", b"t1"]
    np.testing.assert_array_equal(reader.filters, mel_filters())


def test_a_model_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(makers.ct2_bytes({"encoder/embeddings/weight": np.zeros((4, 4), np.float16)}))
    with Ct2Weights(path) as weights, pytest.raises(ModelError, match="has no variable"):
        list(ggml.ggml_file(weights, [], Ftype.F16))


def test_a_model_with_128_mel_bands_is_refused(tmp_path):
    path = tmp_path / "model.bin"
    wide = {"encoder/conv1/weight": np.zeros((STATE, 128, 3), np.float16)}
    path.write_bytes(makers.ct2_bytes(VARIABLES | wide))
    with Ct2Weights(path) as weights, pytest.raises(ModelError, match="80 mel bands"):
        list(ggml.ggml_file(weights, [], Ftype.F16))


def tokens_of(*first):
    return text_tokens("\n".join([*first, *["x"] * TEXT_TOKENS]))[: len(first)]


@pytest.mark.parametrize(
    ("written", "raw"),
    [
        ("!", b"!"),
        ("Ġthe", b" the"),
        ("Ċ", b"\n"),
        ("Ã©", "é".encode()),
        ("Ā", b"\x00"),
        ("ġ", b"\x7f"),
        ("ł", b"\xa0"),
        ("Ń", b"\xad"),
        ("<|endoftext|>", b"<|endoftext|>"),
    ],
)
def test_a_token_is_written_with_one_character_for_each_byte(written, raw):
    assert tokens_of(written) == [raw]


def test_each_of_the_256_bytes_has_one_character():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144)]
    tokens = tokens_of(*map(chr, printable))
    assert sorted(tokens) == [bytes([byte]) for byte in range(256)]


def test_a_vocabulary_that_is_too_short_is_refused():
    with pytest.raises(ModelError, match=r"has 1000 tokens, 50257 are needed"):
        text_tokens("\n".join(["x"] * 1000))


def test_a_vocabulary_with_plain_spaces_is_refused():
    with pytest.raises(ModelError, match="stands for no byte"):
        tokens_of("plain text")


def test_the_mel_filters_have_the_bits_of_the_official_files():
    assert (
        hashlib.sha256(mel_filters().astype("<f4").tobytes()).hexdigest()
        == "85818f156f7e189453901a515e4726d270d307f976e161cf9403e8caab405498"
    )


def test_each_mel_filter_is_one_triangle_without_negative_zeros():
    filters = mel_filters()
    assert filters.shape == (80, 201)
    assert not np.signbit(filters).any()
    for band in filters:
        (used,) = band.nonzero()
        assert len(used) == used[-1] - used[0] + 1
        slopes = np.sign(np.diff(band))
        assert (np.diff(slopes[slopes != 0]) <= 0).all()
    peaks = filters.argmax(axis=1)
    assert (np.diff(peaks) >= 0).all()


def test_wide_mel_filters_have_the_area_of_one():
    areas = mel_filters()[40:].sum(axis=1) * 40  # bins are 40 Hz apart
    np.testing.assert_allclose(areas, 1, rtol=0.1)
