"""Getting a file from a hub that misbehaves in every way that hubs and networks do."""

from __future__ import annotations

import socket
import threading

import pytest

from models import makers
from oyez.errors import FetchError
from oyez.models import hub as hub_source

CONTENT = makers.whisper_content(400_000)
FILE = makers.entry("ggml-x.bin", CONTENT)
HALF = len(CONTENT) // 2


@pytest.fixture
def get(hub, tmp_path):
    """Fetch the file, and return what arrived."""
    hub.put({FILE.name: CONTENT})
    part = tmp_path / "x.part"
    said = makers.Said()

    def fetch(file=FILE):
        hub_source.fetch_file(makers.hub_source(hub.url).url(file), file, part, said)
        return part.read_bytes()

    fetch.part = part
    fetch.said = said
    return fetch


def ranges(hub):
    return [asked for _, asked in hub.requests]


def send(handler, body, *, status=200, length=None, kind="application/octet-stream", **headers):
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    if length is not None:
        handler.send_header("Content-Length", str(length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
    return True


def cut(handler):
    return send(handler, CONTENT[:HALF], length=len(CONTENT))


def test_a_file_is_fetched_whole_and_its_progress_told(get):
    assert get() == CONTENT
    assert get.said.labels == ["fetching ggml-x.bin"]
    assert get.said.counts == [len(CONTENT)]


def test_a_download_that_is_cut_goes_on_where_it_ended(get, hub):
    hub.faults = [cut]
    assert get() == CONTENT
    assert ranges(hub) == [None, f"bytes={HALF}-"]
    assert "ended after 200,000 of 400,000 bytes" in get.said.notes[0]
    assert get.said.counts[-1] == len(CONTENT)


def test_a_download_that_is_cut_each_time_fails_and_keeps_what_came(get, hub):
    def cut_again(handler):
        rest = CONTENT[HALF:]
        return send(
            handler,
            rest[:1000],
            status=206,
            length=len(rest),
            Content_Range=f"bytes {HALF}-{len(CONTENT) - 1}/{len(CONTENT)}",
        )

    hub.faults = [cut, cut_again, lambda handler: send(handler, b"", status=503)]
    with pytest.raises(FetchError, match="it answers 503"):
        get()
    assert get.part.read_bytes() == CONTENT[: HALF + 1000]


def test_what_an_earlier_fetch_left_is_used(get, hub):
    get.part.write_bytes(CONTENT[:1000])
    assert get() == CONTENT
    assert ranges(hub) == ["bytes=1000-"]


def test_a_whole_file_that_an_earlier_fetch_left_needs_no_network(get, hub):
    get.part.write_bytes(CONTENT)
    assert get() == CONTENT
    assert hub.requests == []


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 1)])
def test_what_an_earlier_fetch_left_of_another_file_is_thrown_away(get, hub, left):
    get.part.write_bytes(left)
    assert get() == CONTENT
    assert ranges(hub)[-1] is None


def test_a_hub_that_cannot_resume_is_asked_for_the_whole(get, hub):
    get.part.write_bytes(CONTENT[:1000])
    hub.faults = [lambda handler: send(handler, CONTENT, length=len(CONTENT))]
    assert get() == CONTENT


def test_a_range_that_the_hub_refuses_begins_anew(get, hub):
    get.part.write_bytes(CONTENT[:1000])
    hub.faults = [lambda handler: send(handler, b"", status=416, length=0)]
    assert get() == CONTENT
    assert ranges(hub) == ["bytes=1000-", None]


@pytest.mark.parametrize("offered", ["bytes 1000-1999/2000", "bytes 0-399999/400000", "nonsense"])
def test_the_rest_of_another_file_is_refused(get, hub, offered):
    get.part.write_bytes(CONTENT[:1000])
    hub.faults = [lambda handler: send(handler, b"", status=206, Content_Range=offered)]
    with pytest.raises(FetchError, match="another file than the one in the catalogue"):
        get()
    assert get.part.read_bytes() == CONTENT[:1000]


def test_a_file_that_is_not_there_fails_at_once(get, hub):
    hub.files.clear()
    with pytest.raises(FetchError, match="it answers 404 Not Found"):
        get()
    assert len(hub.requests) == 1


def test_a_busy_hub_is_asked_again(get, hub):
    hub.faults = [lambda handler: send(handler, b"", status=503, length=0)]
    assert get() == CONTENT


def test_a_web_page_is_called_one_and_nothing_of_it_stays(get, hub):
    hub.faults = [
        lambda handler: send(handler, b"<html>Log in</html>", kind="text/html; charset=utf-8")
    ]
    with pytest.raises(FetchError, match="a web page instead of the file"):
        get()
    assert not get.part.exists()


def test_a_file_of_another_size_is_refused_before_it_is_read(get, hub):
    hub.faults = [lambda handler: send(handler, CONTENT + b"x", length=len(CONTENT) + 1)]
    with pytest.raises(FetchError, match="it offers 400001 bytes, the catalogue says 400000"):
        get()
    assert not get.part.exists()


def test_a_file_with_another_checksum_is_refused_and_removed(get, hub):
    hub.put({FILE.name: CONTENT[:-1] + b"\0"})
    with pytest.raises(FetchError, match="is damaged or another file: its sha256 is"):
        get()
    assert not get.part.exists()
    assert len(hub.requests) == 1


def test_a_hub_that_never_ends_is_cut_off_at_the_right_size(get, hub):
    hub.faults = [lambda handler: send(handler, CONTENT + bytes(1_000_000))]
    assert get() == CONTENT


def test_a_redirection_is_followed_with_the_range(get, hub):
    get.part.write_bytes(CONTENT[:1000])
    hub.files["/elsewhere"] = CONTENT
    hub.faults = [lambda handler: send(handler, b"", status=302, Location="/elsewhere")]
    assert get() == CONTENT
    assert hub.requests[1] == ("/elsewhere", "bytes=1000-")


def test_a_connection_that_is_closed_without_an_answer_is_tried_again(get, hub):
    def hang_up(handler):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
        return True

    hub.faults = [hang_up]
    assert get() == CONTENT
    assert get.said.notes[0].startswith("the line broke")


def test_a_hub_that_accepts_but_never_answers_fails_after_the_time_limit(get, hub, monkeypatch):
    monkeypatch.setattr(hub_source, "READ_S", 0.1)
    given_up = threading.Event()
    hub.faults = [lambda _: given_up.wait()]
    try:
        with pytest.raises(FetchError, match="was reached but does not answer"):
            get()
    finally:
        given_up.set()


def test_a_download_that_stalls_is_tried_again(get, hub, monkeypatch):
    monkeypatch.setattr(hub_source, "READ_S", 1.0)
    given_up = threading.Event()

    def stall(handler):
        cut(handler)
        handler.wfile.flush()
        return given_up.wait()

    hub.faults = [stall]
    try:
        assert get() == CONTENT
    finally:
        given_up.set()
    assert get.said.notes == ["the line broke: no answer; trying again"]


def test_a_refused_connection_fails_at_once(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/x"
        said = makers.Said()
        with pytest.raises(FetchError, match="it cannot be reached: Connection refused"):
            hub_source.fetch_file(url, FILE, tmp_path / "x.part", said)
    assert said.labels == []


def test_a_host_without_an_address_fails_at_once(tmp_path):
    with pytest.raises(FetchError, match="it cannot be reached: "):
        hub_source.fetch_file("http://nowhere.invalid/x", FILE, tmp_path / "x.part", makers.Said())


def test_a_certificate_that_nobody_vouches_for_is_refused(hub, tmp_path):
    """A plain HTTP server stands where TLS is expected: the handshake fails by name."""
    url = hub.url.replace("http:", "https:") + "/x"
    with pytest.raises(FetchError, match=r"it cannot be reached: .*SSL"):
        hub_source.fetch_file(url, FILE, tmp_path / "x.part", makers.Said())
