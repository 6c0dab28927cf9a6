"""WACZ 1.1.1 file of the captures: WARC records, an index and a page list.

It contains only the stored main document of each page, without images and styles. Text is readable; layout is not
preserved.

The records are not compressed: compressed bytes depend on the zlib version, and equal captures must give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import IO, Any, BinaryIO, Final, cast
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from app.features.bundles.stored_zip import StoredZip
from cache.capture import Capture

VERSION: Final = "1.1.1"
SOFTWARE: Final = "assay"

_ARCHIVE = "data.warc"
_IN_MEMORY_BYTES = 4 * 1024 * 1024
_CHUNK = 1024 * 1024
_PAGES_HEAD = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
_BODIES = (("pdf", "application/pdf"), ("html", "text/html; charset=utf-8"), ("text", "text/plain; charset=utf-8"))


class CapturesArchive:
    """Builder of a WACZ file. Add captures one by one, then read the file from ``build``. Blocks."""

    def __init__(self) -> None:
        self._warc = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by build()
        self._index: list[str] = []
        self._pages: list[tuple[datetime, str, dict[str, Any]]] = []
        self._warc.write(warc_info(SOFTWARE))

    def add(self, capture: Capture, bodies: Mapping[str, bytes]) -> None:
        """Add a capture with its stored bodies (``text``, ``html``, ``pdf``). A capture without any is skipped."""
        main_body = next(((bodies[name], media) for name, media in _BODIES if name in bodies), None)
        if main_body is None or urlsplit(capture.url).scheme not in ("http", "https"):
            return
        body, media_type = main_body
        final_url = capture.final_url or capture.url
        if final_url != capture.url:
            self._write(
                capture.url, capture.captured_at, 302, {"Location": final_url}, b"", record_key=f"{capture.id}:cited"
            )
        headers = {name: value for name, value in capture.headers.items() if name.lower() != "content-type"}
        status = capture.http_status or 200
        self._write(
            final_url, capture.captured_at, status, {**headers, "Content-Type": media_type}, body, record_key=capture.id
        )
        page = {"id": capture.id, "url": capture.url, "ts": _iso(capture.captured_at), "title": capture.title}
        if "text" in bodies:
            page["text"] = bodies["text"].decode("utf-8", "replace")
        self._pages.append((capture.captured_at, capture.id, page))

    @contextmanager
    def build(self) -> Iterator[IO[bytes]]:
        """Yield the complete file at position 0. It is deleted at the end of the block."""
        with self._warc, tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
            wacz = StoredZip(cast(BinaryIO, file))
            self._warc.seek(0)
            resources = [
                _add_member(wacz, f"archive/{_ARCHIVE}", iter(lambda: self._warc.read(_CHUNK), b"")),
                _add_member(wacz, "indexes/index.cdx", [line.encode() for line in sorted(self._index)]),
                _add_member(
                    wacz, "pages/pages.jsonl", [f"{json.dumps(each)}\n".encode() for each in self._page_lines()]
                ),
            ]
            package = self._package(resources)
            wacz.add("datapackage.json", [package])
            digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(package).hexdigest()}"}
            wacz.add("datapackage-digest.json", [_json(digest)])
            wacz.close()
            file.seek(0)
            yield file

    def _write(
        self, url: str, at: datetime, status: int, headers: Mapping[str, str], body: bytes, *, record_key: str
    ) -> None:
        offset = self._warc.tell()
        record = response(url, at, status, headers, body, record_key=record_key)
        self._warc.write(record)
        fields = {
            "url": url,
            "mime": headers.get("Content-Type", "unk").partition(";")[0],
            "status": str(status),
            "digest": payload_digest(body),
            "length": str(len(record)),
            "offset": str(offset),
            "filename": _ARCHIVE,
        }
        self._index.append(f"{sort_key(url)} {at.astimezone(UTC):%Y%m%d%H%M%S} {json.dumps(fields)}\n")

    def _page_lines(self) -> list[dict[str, Any]]:
        return [_PAGES_HEAD, *(page for _, _, page in sorted(self._pages, key=lambda each: each[:2]))]

    def _package(self, resources: list[dict[str, Any]]) -> bytes:
        first = min(self._pages, key=lambda each: each[:2], default=None)
        document: dict[str, Any] = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": "Pages that were used to judge the results",
            "software": SOFTWARE,
            "created": _iso(max((at for at, _, _ in self._pages), default=datetime(1980, 1, 1, tzinfo=UTC))),
            "resources": resources,
        }
        if first is not None:
            document |= {"mainPageUrl": first[2]["url"], "mainPageDate": first[2]["ts"]}
        return _json(document)


def sort_key(url: str) -> str:
    """Return the sort key (SURT) of a URL in a web archive index: reversed host, then path and query.

    >>> sort_key("https://www.Example.org:8080/A?b=C")
    'org,example:8080)/a?b=c'
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    labels = [host] if host.replace(".", "").isdigit() or ":" in host else host.split(".")[::-1]
    try:
        port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    except ValueError:
        port = ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{','.join(labels)}{port}){parts.path or '/'}{query}".lower().replace(" ", "%20")


def _add_member(wacz: StoredZip, path: str, chunks: Any) -> dict[str, Any]:
    """Write a member and return its entry in the package description."""
    sha256, size = hashlib.sha256(), 0

    def hashed() -> Iterator[bytes]:
        nonlocal size
        for chunk in chunks:
            sha256.update(chunk)
            size += len(chunk)
            yield chunk

    wacz.add(path, hashed())
    return {"name": path.rpartition("/")[2], "path": path, "hash": f"sha256:{sha256.hexdigest()}", "bytes": size}


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_HOP_BY_HOP = frozenset(
    {"connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding", "trailer"}
)


def warc_info(software: str) -> bytes:
    """Return the ``warcinfo`` record, which names the software that wrote the file."""
    fields = f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode()
    head = {"WARC-Date": _iso(datetime(1980, 1, 1, tzinfo=UTC)), "Content-Type": "application/warc-fields"}
    return _record("warcinfo", "assay:warcinfo", head, fields)


def response(url: str, at: datetime, status: int, headers: Mapping[str, str], body: bytes, *, record_key: str) -> bytes:
    """Return the response record for a request to ``url``. ``record_key`` makes the record id unique."""
    reason = _reason_phrase(status)
    lines = [f"HTTP/1.1 {status} {reason}"]
    lines += [
        f"{_single_line(name)}: {_single_line(value)}"
        for name, value in headers.items()
        if name.lower() not in _HOP_BY_HOP
    ]
    lines.append(f"Content-Length: {len(body)}")
    block = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace") + body
    head = {
        "WARC-Target-URI": url,
        "WARC-Date": _iso(at),
        "WARC-Payload-Digest": payload_digest(body),
        "Content-Type": "application/http; msgtype=response",
    }
    return _record("response", record_key, head, block)


def payload_digest(body: bytes) -> str:
    """Return the SHA-1 digest in the form of web archives.

    It identifies equal bodies; integrity comes from the manifest.
    """
    return f"sha1:{base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()}"


def _record(kind: str, record_key: str, head: Mapping[str, str], block: bytes) -> bytes:
    lines = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:{uuid5(NAMESPACE_URL, f'assay:{record_key}')}>",
        *(f"{name}: {_single_line(value)}" for name, value in head.items()),
        f"Content-Length: {len(block)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace") + block + b"\r\n\r\n"


def _reason_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _single_line(text: str) -> str:
    """Return the text on one line: a line break would end the header field."""
    return " ".join(text.split())
