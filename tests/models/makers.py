"""Small models, a model hub on the loopback interface, and wheels: the real things, in small."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import struct
import threading
import zipfile
from contextlib import contextmanager

import numpy as np

from oyez.models.catalogue import Catalogue, HubSource, Kind, Model, ModelFile
from oyez.models.ct2 import Ct2Weights
from oyez.models.ggml import TEXT_TOKENS, ggml_file, text_tokens

_CODES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def ct2_bytes(variables, version=6):
    """A CTranslate2 ``model.bin`` with these arrays in it."""

    def text(value):
        raw = value.encode() + b"\0"
        return struct.pack("<H", len(raw)) + raw

    pieces = [
        struct.pack("<I", version),
        text("WhisperSpec"),
        struct.pack("<II", 3, len(variables)),
    ]
    for name, array in variables.items():
        pieces.append(text(name))
        pieces.append(struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape))
        pieces.append(struct.pack("<BI", _CODES[array.dtype.name], array.nbytes))
        pieces.append(array.tobytes())
    return b"".join([*pieces, struct.pack("<I", 0)])


def whisper_variables(state=64, heads=2, layers=1, vocabulary=96, seed=0):
    """Random weights of a Whisper model that is small in every dimension."""
    random = np.random.default_rng(seed)

    def half(*shape):
        return random.standard_normal(shape).astype(np.float16)

    variables = {
        "decoder/embeddings/weight": half(vocabulary, state),
        "decoder/num_heads": np.int16(heads),
        "encoder/num_heads": np.int16(heads),
        "decoder/position_encodings/encodings": half(448, state),
        "encoder/position_encodings/encodings": half(1500, state),
        "encoder/conv1/weight": half(state, 80, 3),
        "encoder/conv1/bias": half(state),
        "encoder/conv2/weight": half(state, state, 3),
        "encoder/conv2/bias": half(state),
    }

    def norm(name):
        variables[f"{name}/gamma"] = half(state)
        variables[f"{name}/beta"] = half(state)

    def linear(name, rows, columns):
        variables[f"{name}/weight"] = half(rows, columns)
        variables[f"{name}/bias"] = half(rows)

    for side in ("decoder", "encoder"):
        norm(f"{side}/layer_norm")
        for layer in range(layers):
            name = f"{side}/layer_{layer}"
            norm(f"{name}/ffn/layer_norm")
            linear(f"{name}/ffn/linear_0", 4 * state, state)
            linear(f"{name}/ffn/linear_1", state, 4 * state)
            norm(f"{name}/self_attention/layer_norm")
            linear(f"{name}/self_attention/linear_0", 3 * state, state)
            linear(f"{name}/self_attention/linear_1", state, state)
            if side == "decoder":
                norm(f"{name}/attention/layer_norm")
                linear(f"{name}/attention/linear_0", state, state)
                linear(f"{name}/attention/linear_1", 2 * state, state)
                linear(f"{name}/attention/linear_2", state, state)
    return {name: np.asarray(array) for name, array in variables.items()}


def vocabulary_text():
    """A vocabulary of the usual length whose first tokens are ``t0``, ``t1`` and so on."""
    return "".join(f"t{number}\n" for number in range(TEXT_TOKENS)) + "<|endoftext|>\n"


def ggml_bytes(model_bin, ftype):
    """What the rewriting of a ``model.bin`` gives."""
    with Ct2Weights(model_bin) as weights:
        return b"".join(ggml_file(weights, text_tokens(vocabulary_text()), ftype))


VOICE_CONFIG = json.dumps({"audio": {"sample_rate": 22050}, "phoneme_id_map": {"_": [0]}}).encode()
VOICE = b"\x08\x07" + bytes(range(256)) * 40


def whisper_content(size_bytes=40_000):
    return b"lmgg" + hashlib.shake_256(b"whisper").digest(size_bytes - 4)


def entry(name, content):
    return ModelFile(name=name, size_bytes=len(content), sha256=sha256(content))


def hub_source(url):
    return HubSource(hub=url, repository="owner/models", revision="v1", folder="")


def model(name, contents, sources):
    """A model whose files have these contents."""
    return Model(
        name=name,
        kind=Kind.PIPER if len(contents) > 1 else Kind.WHISPER,
        description="made for a test",
        licence="MIT",
        languages=("en",),
        files=tuple(entry(file, content) for file, content in contents.items()),
        sources=tuple(sources),
    )


def catalogue(*models):
    return Catalogue(models={each.name: each for each in models})


class Said:
    """A Progress that remembers what it was told."""

    def __init__(self):
        self.notes = []
        self.labels = []
        self.counts = []

    def start(self, label, total_bytes):  # noqa: ARG002 - the protocol's signature
        self.labels.append(label)
        self.counts.append(0)

    def advance(self, count):
        self.counts[-1] += count

    def done(self):
        pass

    def note(self, text):
        self.notes.append(text)


class Hub:
    """A model hub that serves ``files``, and misbehaves as the next entry of ``faults`` says.

    ``requests`` collects (path, Range header). A fault is a function of the request's handler
    that returns whether it has answered.
    """

    def __init__(self, url):
        self.url = url
        self.files = {}
        self.faults = []
        self.requests = []

    def put(self, contents):
        self.files |= {f"/owner/models/resolve/v1/{name}": body for name, body in contents.items()}

    def answer(self, handler):
        self.requests.append((handler.path, handler.headers.get("Range")))
        if self.faults and self.faults.pop(0)(handler):
            return
        body = self.files.get(handler.path)
        if body is None:
            handler.send_error(404)
            return
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        begin = int(asked[1]) if asked else 0
        handler.send_response(206 if asked else 200)
        if asked:
            handler.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        handler.send_header("Content-Length", str(len(body) - begin))
        handler.end_headers()
        handler.wfile.write(body[begin:])


@contextmanager
def running_hub():
    """A hub on a free port of the loopback interface."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            hub.answer(self)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        hub = Hub(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


def wheel(folder, name, version, members):
    """Write a wheel that pip takes for whole; returns its path."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    contents = dict(members) | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{member},sha256={_record_hash(content)},{len(content)}\n"
        for member, content in contents.items()
    ]
    contents[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in contents.items():
            archive.writestr(member, content)
    return path


def _record_hash(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
