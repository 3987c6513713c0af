"""From a file on disk to settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from oyez import places
from oyez.config import Settings, load
from oyez.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def system_config(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "etc" / "oyez.yaml"
    path.parent.mkdir()
    monkeypatch.setattr(places, "SYSTEM_CONFIG", path)
    return path


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "my settings.yaml"


@pytest.fixture
def powerless(tmp_path) -> Iterator[None]:
    """As root every file may be read, so be nobody for a while."""
    tmp_path.chmod(0o700)
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_a_named_file_is_loaded_and_stands_in_the_origins(file):
    file.write_text("vad: {aggressiveness: 3}\n", encoding="utf-8")
    loaded = load(file)
    assert loaded.path == file
    assert loaded.settings.vad.aggressiveness == 3
    assert loaded.origins["vad.aggressiveness"] == f"{file}:1"


def test_without_a_name_the_system_configuration_is_loaded(system_config):
    system_config.write_text("vad: {aggressiveness: 1}\n", encoding="utf-8")
    loaded = load(None)
    assert loaded.path == system_config
    assert loaded.settings.vad.aggressiveness == 1


def test_without_a_name_and_a_system_configuration_the_defaults_serve(system_config):
    loaded = load(None)
    assert loaded.path is None
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_a_system_configuration_that_leads_nowhere_is_an_error_and_not_the_defaults(system_config):
    system_config.symlink_to(system_config.with_name("gone.yaml"))
    with pytest.raises(NotFoundError, match=r"there is no file .*oyez\.yaml"):
        load(None)


def test_a_system_configuration_in_a_closed_folder_is_an_error(system_config, request):
    system_config.write_text("", encoding="utf-8")
    system_config.parent.chmod(0)
    request.getfixturevalue("powerless")
    with pytest.raises(NotFoundError, match="cannot be read: Permission denied"):
        load(None)


def test_a_file_that_is_not_there_is_named(file):
    with pytest.raises(NotFoundError, match=r"there is no file .*my settings\.yaml"):
        load(file)


def test_a_folder_is_told_from_a_file(tmp_path):
    with pytest.raises(NotFoundError, match="is a folder"):
        load(tmp_path)


def test_a_path_through_a_file_is_not_found(file):
    file.write_text("", encoding="utf-8")
    with pytest.raises(NotFoundError, match="cannot be read: Not a directory"):
        load(file / "oyez.yaml")


def test_a_file_that_may_not_be_read_is_named(file, request):
    file.write_text("", encoding="utf-8")
    file.chmod(0)
    request.getfixturevalue("powerless")
    with pytest.raises(NotFoundError, match="cannot be read: Permission denied"):
        load(file)


def test_a_pipe_is_refused_without_waiting_for_it(file):
    os.mkfifo(file)
    with pytest.raises(NotFoundError, match="is not a regular file"):
        load(file)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_byte_order_mark_and_windows_line_ends_are_accepted(file, mark, end):
    file.write_bytes(
        mark + b"# Gr\xc3\xbc\xc3\x9fe" + end + b"vad:" + end + b"  engine: webrtc" + end
    )
    assert load(file).origins["vad.engine"] == f"{file}:3"


@pytest.mark.parametrize(
    ("octets", "place", "byte"),
    [
        (b"vad: {}\n# Gr\xfc\xdfe\n", "2:5", "0xfc"),
        ("vad: {}\n".encode("utf-16"), "1:1", "0xff"),
        ("# é".encode() + b"\xff", "1:4", "0xff"),
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_where_they_stand(file, octets, place, byte):
    file.write_bytes(octets)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.problems == [
        f"{file}:{place}: the byte {byte} is not UTF-8, save the file as UTF-8"
    ]


def test_a_huge_file_is_refused_by_its_size_and_not_by_its_content(file):
    file.write_bytes(b"\xff" * 70_000)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.problems == [f"{file}:1:1: larger than 64 KiB, so no configuration of Oyez"]


def test_a_mistake_in_a_file_is_told_with_its_name(file):
    file.write_text("vad: {engine: energy}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.problems[0].startswith(f"{file}:1:15: vad.engine: energy is not among")
    assert caught.value.exit_code == 78
