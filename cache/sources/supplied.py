"""Pages that come with an answer or a report: reader of their records, and storage as captures.

A record is an object with ``url``, one content (``text``, ``html``, ``mhtml``, ``pdf`` or ``image``) and optionally
``title`` and ``retrieved_at``. PDFs and images are bytes, or Base64 in JSON. Each page becomes an ``UploadedPage``, so
it is checked like one that a person uploads: the text of a wall or of an error page is not evidence.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO, Final

from cache.backends.documents import ByteKind, sniff
from cache.capture import Capture, CaptureSource, Observation
from cache.errors import DocumentRejected
from cache.pages import PageCache
from cache.sources.uploads import UploadedPage, is_mhtml, observe_upload
from cache.urls import canonical_key, unfetchable_reason

MAX_PAGES: Final = 2_000
MAX_LINE_BYTES: Final = 24 * 1024 * 1024
MAX_TITLE_CHARS: Final = 1_000
SUPPLIED_BY_AGENT: Final = "supplied by the agent"
"""Provenance of the pages that come with an answer."""
_CONTENTS: Final[Mapping[str, str]] = {
    "text": "",
    "html": "text/html; charset=utf-8",
    "mhtml": "multipart/related",
    "pdf": "application/pdf",
    "image": "",
}
"""Contents of a record with their media types."""
_FIELDS: Final = ("url", "title", "retrieved_at", *_CONTENTS)


class SuppliedRejected(ValueError):
    """A supplied page cannot be used. ``path`` names the page and the field, ``message`` the problem and the fix."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def read_supplied(file: BinaryIO, *, supplier: str, now: datetime) -> list[UploadedPage]:
    """Return the pages of a file with one record per line, in file order.

    Raises:
        SuppliedRejected: See ``supplied_pages``.
        OSError: The file cannot be read.
    """
    records = ((f"line {number}", _parsed(line, f"line {number}")) for number, line in _lines(file))
    pages = supplied_pages(records, supplier=supplier, now=now)
    if not pages:
        raise SuppliedRejected("", "contains no page: write one JSON object per line, with url and a content")
    return list(pages.values())


def supplied_pages(records: Iterable[tuple[str, Any]], *, supplier: str, now: datetime) -> dict[str, UploadedPage]:
    """Return the pages of records by their places. ``supplier`` is stored with them as their uploader.

    Raises:
        SuppliedRejected: A record is invalid, two records have the same page, or there are too many.
    """
    places: dict[str, str] = {}
    pages: dict[str, UploadedPage] = {}
    for place, record in records:
        if len(pages) == MAX_PAGES:
            raise SuppliedRejected(place, f"more than {MAX_PAGES:,} pages: divide them")
        page = _page(record, place, supplier=supplier, now=now)
        earlier = places.setdefault(canonical_key(page.url), place)
        if earlier != place:
            raise SuppliedRejected(f"{place}.url", f"{page.url} is already given by {earlier}: remove one of them")
        pages[place] = page
    return pages


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise SuppliedRejected(f"line {number}", f"longer than {MAX_LINE_BYTES // 2**20} MiB: shorten its content")
        stripped = line.removeprefix(b"\xef\xbb\xbf").strip()
        if stripped:
            yield number, stripped


def _parsed(line: bytes, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuppliedRejected(place, f"is not JSON: {error}. Write one JSON object per line") from error


def _page(record: Any, place: str, *, supplier: str, now: datetime) -> UploadedPage:
    if not isinstance(record, Mapping):
        raise SuppliedRejected(place, "is not a JSON object: write one with url and a content")
    for name, value in record.items():
        if name not in _FIELDS:
            raise SuppliedRejected(place, f"unknown field {name[:40]!r}: use {', '.join(_FIELDS)}")
        if value is not None and not isinstance(value, str | bytes):
            raise SuppliedRejected(f"{place}.{name}", "is not a string")
    url = str(record.get("url") or "").strip()
    refusal = unfetchable_reason(url) if url else "is missing"
    if refusal is not None:
        raise SuppliedRejected(f"{place}.url", f"{refusal}: give the address that the answer cites")
    given = [name for name in _CONTENTS if record.get(name)]
    if len(given) != 1:
        what = "is missing or empty" if not given else f"is given beside {' and '.join(given[1:])}"
        name = given[0] if given else "text"
        raise SuppliedRejected(f"{place}.{name}", f"{what}: give one of {', '.join(_CONTENTS)} of {url}")
    title = " ".join(str(record.get("title") or "").split())
    if len(title) > MAX_TITLE_CHARS or not title.isprintable():
        raise SuppliedRejected(f"{place}.title", f"has control characters or more than {MAX_TITLE_CHARS:,} characters")
    retrieved_at = _time(record.get("retrieved_at"), f"{place}.retrieved_at")
    [kind] = given
    content = _content(kind, record[kind], f"{place}.{kind}")
    return UploadedPage(
        url=url,
        uploader=supplier,
        uploaded_at=now,
        title=title,
        text=content if isinstance(content, str) else None,
        content=content if isinstance(content, bytes) else None,
        content_type=_CONTENTS[kind],
        details={} if retrieved_at is None else {"retrieved_at": retrieved_at},
    )


def _time(value: Any, path: str) -> str | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value).isoformat()
    except (TypeError, ValueError) as error:
        raise SuppliedRejected(path, "is not a time: write it as 2026-11-29T12:00:00Z") from error


def _content(kind: str, value: str | bytes, path: str) -> str | bytes:
    """Return a text as str, and any other content as bytes that have the declared type."""
    if kind == "text":
        try:
            text = value if isinstance(value, str) else value.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SuppliedRejected(path, f"is not UTF-8 (byte {error.start})") from error
        if not text.strip():
            raise SuppliedRejected(path, "is empty: give the text of the page")
        return text
    if isinstance(value, bytes):
        data = value
    elif kind in ("html", "mhtml"):
        data = value.encode("utf-8", "replace")
    else:
        try:
            data = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise SuppliedRejected(path, f"is not Base64: {error}") from error
    found = "mhtml" if is_mhtml(data) else sniff(data, _CONTENTS[kind]).value
    if found != kind and not (kind == "html" and found == ByteKind.TEXT):
        raise SuppliedRejected(path, f"is {found} by its bytes, not {kind}: name it by its type")
    return data


def digest_of(pages: Iterable[UploadedPage]) -> str:
    """Return a SHA-256 (hex) of the URLs and contents of pages."""
    digest = hashlib.sha256()
    for page in pages:
        content = page.content if page.content is not None else (page.text or "").encode("utf-8", "replace")
        digest.update(f"{page.url}\n{page.title}\n{hashlib.sha256(content).hexdigest()}\n".encode("utf-8", "replace"))
    return digest.hexdigest()


def common_5grams(one: str, other: str) -> float:
    """Return the share of the sequences of five words of two texts that both contain (0 to 1). CPU-bound.

    >>> common_5grams("a b c d e f", "A B c d e x")
    0.3333333333333333
    """
    grams = [_5grams(text.casefold().split()) for text in (one, other)]
    return len(grams[0] & grams[1]) / len(grams[0] | grams[1])


def _5grams(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))}


async def observe_supplied(pages: Mapping[str, UploadedPage]) -> list[Observation]:
    """Convert pages, given by their place. Nothing is opened.

    Raises:
        SuppliedRejected: A page cannot be converted.
    """
    observations: list[Observation] = []
    for place, page in pages.items():
        try:
            observations.append(await observe_upload(page, source=CaptureSource.SUPPLIED))
        except DocumentRejected as error:
            raise SuppliedRejected(place, f"{page.url}: {error}") from error
    return observations


async def store_supplied(pages: Iterable[UploadedPage], cache: PageCache, *, owner: str | None) -> list[Capture]:
    """Store pages and return their captures, which need not be evidence. They are not found by their URLs.

    Raises:
        SuppliedRejected: A page cannot be converted. Nothing is stored.
        BlobStoreFailed, IndexFailed: A page cannot be stored.
    """
    observations = await observe_supplied({f"page {number}": page for number, page in enumerate(pages, start=1)})
    return await store_observed(observations, cache, owner=owner)


async def store_observed(observations: Sequence[Observation], cache: PageCache, *, owner: str | None) -> list[Capture]:
    """Store the observations of supplied pages and return their captures. Raises BlobStoreFailed and IndexFailed."""
    return [
        await cache.add(each.url, each, owner=owner, key=f"supplied:{canonical_key(each.url)}", synced=False)
        for each in observations
    ]
