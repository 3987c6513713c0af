"""Getting one file from the model hub over HTTPS, resuming what a cut left behind.

Runs on the thread that fetches. Proxies and certificates are those of the environment. Connecting
has a short time limit, so that a machine without a network passes to the next source at once;
reading has a longer one, for slow lines.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from oyez import __version__
from oyez.errors import FetchError
from oyez.models.checks import damage_in

if TYPE_CHECKING:
    from pathlib import Path

    from oyez.models.catalogue import ModelFile
    from oyez.models.progress import Progress

CONNECT_S = 5.0
READ_S = 30.0
TRIES = 3
_READ_BYTES = 1 << 17
_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_CANNOT_RESUME = 416
_PARTIAL = 206
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class _CutError(Exception):
    """The line broke, or the server was busy: worth another try."""


def fetch_file(url: str, file: ModelFile, part: Path, progress: Progress) -> None:
    """Bring ``url`` into ``part``, complete and verified; what ``part`` already holds is used.

    Raises:
        FetchError: says why it failed. What arrived stays in ``part`` for the next time, unless
            it proved to be wrong.
        OSError: ``part`` cannot be written.
    """
    reason = ""
    for _ in range(TRIES):
        begun_bytes = part.stat().st_size if part.exists() else 0
        if begun_bytes < file.size_bytes:
            try:
                _receive(url, file, part, begun_bytes, progress)
            except _CutError as exc:
                reason = str(exc)
                progress.note(f"{reason}; trying again")
                continue
        damage = damage_in(part, file, deep=True)
        if damage is None:
            return
        part.unlink()
        reason = f"what came {damage.why}"
        if not begun_bytes:
            break
        # The beginning was left by an earlier fetch and may be of another file.
        progress.note("the resumed download is wrong; beginning again")
    raise FetchError(reason)


def _receive(url: str, file: ModelFile, part: Path, begun_bytes: int, progress: Progress) -> None:
    """Append the rest of the file to ``part``, or begin anew where the server cannot resume."""
    with _open(url, begun_bytes, part) as response:
        resumed = _check_headers(response, file, begun_bytes)
        progress.start(f"fetching {file.name}", file.size_bytes)
        received_bytes = begun_bytes if resumed else 0
        progress.advance(received_bytes)
        with part.open("ab" if resumed else "wb") as out:
            while received_bytes < file.size_bytes:
                wanted = min(_READ_BYTES, file.size_bytes - received_bytes)
                try:
                    piece = response.read(wanted)
                except (OSError, http.client.HTTPException) as exc:
                    raise _CutError(f"the line broke: {_words(exc)}") from exc
                if not piece:
                    raise _CutError(
                        f"the download ended after {received_bytes:,} of {file.size_bytes:,} bytes"
                    )
                out.write(piece)
                received_bytes += len(piece)
                progress.advance(len(piece))
    progress.done()


def _check_headers(response: Any, file: ModelFile, begun_bytes: int) -> bool:
    """Refuse an answer that cannot be the file; tell whether it continues what is there."""
    if "html" in response.headers.get("Content-Type", ""):
        raise FetchError("it answers with a web page instead of the file")
    if response.status == _PARTIAL:
        answer = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
        if not answer or (int(answer[1]), int(answer[2])) != (begun_bytes, file.size_bytes):
            raise FetchError("it resumes another file than the one in the catalogue")
        return True
    length = response.headers.get("Content-Length")
    if length is not None and length != str(file.size_bytes):
        raise FetchError(f"it offers {length} bytes, the catalogue says {file.size_bytes}")
    return False


def _open(url: str, begun_bytes: int, part: Path) -> Any:
    headers = {"User-Agent": f"oyez/{__version__}", "Accept-Encoding": "identity"}
    if begun_bytes:
        headers["Range"] = f"bytes={begun_bytes}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the catalogue's https
    try:
        return _opener().open(request, timeout=CONNECT_S)
    except urllib.error.HTTPError as exc:
        exc.close()
        if exc.code == _CANNOT_RESUME:
            part.unlink()
        if exc.code in (*_TRY_AGAIN, _CANNOT_RESUME):
            raise _CutError(f"it answers {exc.code} {exc.reason}") from exc
        raise FetchError(f"it answers {exc.code} {exc.reason}") from exc
    except urllib.error.URLError as exc:
        raise FetchError(f"it cannot be reached: {_words(exc.reason)}") from exc
    except TimeoutError as exc:
        raise FetchError("it was reached but does not answer") from exc
    except (OSError, http.client.HTTPException) as exc:
        raise _CutError(f"the line broke: {_words(exc)}") from exc


def _words(reason: object) -> str:
    """The system's own words for an error, without its number."""
    if isinstance(reason, TimeoutError):
        return "no answer"
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)


class _Connection(http.client.HTTPConnection):
    """Connects with the given time limit and then reads with the longer one."""

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(READ_S)


class _SecureConnection(http.client.HTTPSConnection):
    """The same, over TLS."""

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(READ_S)


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Handler, _SecureHandler)
