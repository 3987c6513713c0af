"""The catalogue is read strictly, and the shipped one holds what Oyez promises."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import yaml

from oyez.errors import ConfigError, ModelError
from oyez.models.catalogue import Catalogue, CopySource, HubSource, Kind, RewriteSource
from oyez.models.progress import size_text
from oyez.models.quantize import Ftype

SHA256 = "0123456789abcdef" * 4
DOCUMENT = {
    "hub": "https://hub.example",
    "packages": {
        "weights": {
            "wheels": [{"name": "some-weights", "version": "1.2", "bytes": 7, "sha256": SHA256}],
            "weights": ["w/model.bin.1", "w/model.bin.2"],
            "vocabulary": "w/vocabulary.txt",
        },
        "voice": {
            "wheels": [{"name": "some-voice", "version": "1.0.0", "bytes": 9, "sha256": SHA256}],
            "folder": "v/files",
        },
    },
    "models": {
        "small": {
            "kind": "whisper",
            "description": "a small one",
            "licence": "MIT",
            "languages": ["en"],
            "files": [{"name": "ggml-small.bin", "bytes": 5, "sha256": SHA256}],
            "sources": [
                {"hub": "owner/models", "revision": "v1"},
                {"packages": "weights", "recipe": "ct2-to-ggml", "ftype": "q5_1"},
            ],
        },
        "voice": {
            "kind": "piper",
            "description": "a voice",
            "licence": "CC0-1.0",
            "languages": ["en"],
            "files": [
                {"name": "v.onnx", "bytes": 5, "sha256": SHA256},
                {"name": "v.onnx.json", "bytes": 5, "sha256": SHA256},
            ],
            "sources": [
                {"hub": "owner/voices", "revision": "v1", "folder": "en/v"},
                {"packages": "voice", "recipe": "copy"},
            ],
        },
    },
}


def load(folder, document):
    path = folder / "models.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return Catalogue.load(path)


def test_a_catalogue_gives_its_models_with_their_sources_in_order(tmp_path):
    models = load(tmp_path, DOCUMENT).models
    small, voice = models["small"], models["voice"]
    assert (small.kind, voice.kind) == (Kind.WHISPER, Kind.PIPER)
    assert voice.size_bytes == 10
    hub, rewrite = small.sources
    assert isinstance(hub, HubSource)
    assert isinstance(rewrite, RewriteSource)
    assert rewrite.weights == ("w/model.bin.1", "w/model.bin.2")
    assert rewrite.ftype is Ftype.Q5_1
    assert rewrite.wheels[0].requirement == "some-weights==1.2"
    assert isinstance(voice.sources[1], CopySource)


def test_an_address_on_the_hub_is_repository_revision_folder_and_file(tmp_path):
    models = load(tmp_path, DOCUMENT).models
    assert models["small"].sources[0].url(models["small"].files[0]) == (
        "https://hub.example/owner/models/resolve/v1/ggml-small.bin"
    )
    assert models["voice"].sources[0].url(models["voice"].files[1]) == (
        "https://hub.example/owner/voices/resolve/v1/en/v/v.onnx.json"
    )


def paths_of(value, path=()):
    """The path of every value in a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths_of(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from paths_of(item, (*path, number))
    yield path


def changed(path, change):
    document = copy.deepcopy(DOCUMENT)
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    change(parent, path[-1])
    return document


OPTIONAL = "folder"
KEYS = [path for path in paths_of(DOCUMENT) if path and isinstance(path[-1], str)]
FIXED_KEYS = [
    path
    for path in KEYS
    if not (path[0] in ("packages", "models") and len(path) == 2)
    and not (path[-1] == OPTIONAL and path[0] == "models")
]


@pytest.mark.parametrize("path", FIXED_KEYS, ids=lambda path: ".".join(map(str, path)))
def test_an_entry_that_is_missing_is_named(tmp_path, path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, changed(path, lambda parent, key: parent.pop(key)))
    assert "models.yaml" in caught.value.message
    assert str(path[-1]) in caught.value.message


NONSENSE = (None, 5.5, False, {}, ["", None])


@pytest.mark.parametrize(
    "path", [path for path in paths_of(DOCUMENT) if path], ids=lambda path: ".".join(map(str, path))
)
def test_nonsense_in_any_place_is_an_error_that_names_the_place(tmp_path, path):
    place = next(step for step in reversed(path) if isinstance(step, str))
    for nonsense in NONSENSE:
        document = changed(path, lambda parent, key, value=nonsense: parent.__setitem__(key, value))
        with pytest.raises(ConfigError) as caught:
            load(tmp_path, document)
        assert place in caught.value.message
        assert "install Oyez again" in caught.value.remedy


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("hub",), "http://hub.example", "models.yaml: hub: 'http://hub.example' is not text"),
        (("models", "small", "kind"), "wisper", "is not one of whisper, piper"),
        (("models", "small", "files", 0, "name"), "../x.bin", "small: files[0]: name: '../x.bin'"),
        (("models", "small", "files", 0, "bytes"), True, "True is not a positive whole number"),
        (("models", "small", "files", 0, "sha256"), SHA256[1:], "small: files[0]: sha256"),
        (("models", "small", "sources", 1, "ftype"), "q4", "is not one of f16, q5_1, q8_0"),
        (("models", "small", "sources", 1, "packages"), "other", "there is no 'other'"),
        (("models", "voice", "files"), DOCUMENT["models"]["small"]["files"], "a piper voice is"),
        (("models", "small", "files"), DOCUMENT["models"]["voice"]["files"], "is one file"),
        (("models", "small", "colour"), "red", "models: small: colour is not known here"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_wrong(tmp_path, path, value, said):
    def put(parent, key):
        parent[key] = value

    with pytest.raises(ConfigError, match=re.escape(said)):
        load(tmp_path, changed(path, put))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hub: a\nhub: b\n", "hub is given twice"),
        ("hub: [\n", "cannot be read"),
        ("", "must be a mapping"),
        ("[1]: 2\n", "cannot be read"),
    ],
)
def test_a_damaged_document_is_refused(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, text)


def test_a_catalogue_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        Catalogue.load(tmp_path / "none.yaml")


def test_an_unknown_name_gets_a_suggestion_and_the_command_that_lists_all(tmp_path):
    with pytest.raises(ModelError) as caught:
        load(tmp_path, DOCUMENT).find("smal")
    assert "no model named 'smal'" in caught.value.message
    assert caught.value.remedy == "did you mean small? `oyez models list` shows all of them"


def test_a_name_like_no_other_gets_no_suggestion(tmp_path):
    with pytest.raises(ModelError) as caught:
        load(tmp_path, DOCUMENT).find("zzz")
    assert "did you mean" not in caught.value.remedy


def test_the_shipped_catalogue_holds_the_defaults_and_other_languages():
    models = Catalogue.load().models
    assert models["tiny.en-q5_1"].files[0].sha256.startswith("c77c5766")
    assert [file.name for file in models["en_US-joe-medium"].files] == [
        "en_US-joe-medium.onnx",
        "en_US-joe-medium.onnx.json",
    ]
    assert models["base-q5_1"].languages == ("multilingual",)
    for name in ("tiny.en-q5_1", "en_US-joe-medium", "base-q5_1"):
        assert len(models[name].sources) == 2


def test_no_two_shipped_models_share_a_file():
    names = [file.name for model in Catalogue.load().models.values() for file in model.files]
    assert len(names) == len(set(names))


def test_the_document_for_owners_lists_every_shipped_model_with_size_and_licence():
    document = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    rows = {
        row[0].strip(" `"): row
        for line in document.splitlines()
        if len(row := line.strip("|").split("|")) == 5
    }
    for name, model in Catalogue.load().models.items():
        assert rows[name][1].strip() == size_text(model.size_bytes)
        assert rows[name][3].strip() == model.licence
