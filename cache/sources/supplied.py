"""Pages that come with an answer or a report: reader of JSON lines, and storage as captures.

A line is an object with ``url``, ``text`` and optionally ``title``. Each page becomes an ``UploadedPage``, so it is
checked like one that a person uploads: the text of a wall or of an error page is not evidence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, BinaryIO, Final

from cache.capture import Capture
from cache.errors import DocumentRejected
from cache.pages import PageCache
from cache.sources.uploads import UploadedPage, observe_upload
from cache.urls import canonical_key, unfetchable_reason

MAX_PAGES: Final = 2_000
MAX_LINE_BYTES: Final = 24 * 1024 * 1024
MAX_TITLE_CHARS: Final = 1_000
_FIELDS: Final = ("url", "title", "text")
_CONTENTS: Final = ("text",)


class SuppliedRejected(ValueError):
    """A supplied page cannot be used. The message names the line, the field, the problem and the solution."""


def read_supplied(file: BinaryIO, *, supplier: str, now: datetime) -> list[UploadedPage]:
    """Return the pages of a file in file order. ``supplier`` is stored with them as their uploader.

    Raises:
        SuppliedRejected: A line is invalid, two lines have the same page, or there are no pages or too many.
        OSError: The file cannot be read.
    """
    pages: list[UploadedPage] = []
    lines: dict[str, int] = {}
    for number, line in _lines(file):
        place = f"line {number}"
        page = _page(_record(line, place), place, supplier=supplier, now=now)
        earlier = lines.setdefault(canonical_key(page.url), number)
        if earlier != number:
            raise SuppliedRejected(f"{place}.url: {page.url} is already on line {earlier}: remove one of them")
        if len(pages) == MAX_PAGES:
            raise SuppliedRejected(f"{place}: more than {MAX_PAGES:,} pages: divide the file")
        pages.append(page)
    if not pages:
        raise SuppliedRejected("contains no page: write one JSON object per line, with url and text")
    return pages


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise SuppliedRejected(f"line {number}: longer than {MAX_LINE_BYTES // 2**20} MiB: shorten its text")
        stripped = line.removeprefix(b"\xef\xbb\xbf").strip()
        if stripped:
            yield number, stripped


def _record(line: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuppliedRejected(f"{place}: is not JSON: {error}. Write one JSON object per line") from error
    if not isinstance(record, dict):
        raise SuppliedRejected(f"{place}: is not a JSON object: write one with url and text")
    for name, value in record.items():
        if name not in _FIELDS:
            raise SuppliedRejected(f"{place}: unknown field {name[:40]!r}: use {', '.join(_FIELDS)}")
        if value is not None and not isinstance(value, str):
            raise SuppliedRejected(f"{place}.{name}: is not a string")
    return record


def _page(record: dict[str, Any], place: str, *, supplier: str, now: datetime) -> UploadedPage:
    url = (record.get("url") or "").strip()
    refusal = unfetchable_reason(url) if url else "is missing"
    if refusal is not None:
        raise SuppliedRejected(f"{place}.url: {refusal}: give the address that the report cites")
    if not any((record.get(name) or "").strip() for name in _CONTENTS):
        raise SuppliedRejected(f"{place}.text: is missing or empty: give the text of {url}")
    title = " ".join((record.get("title") or "").split())
    if len(title) > MAX_TITLE_CHARS or not title.isprintable():
        raise SuppliedRejected(f"{place}.title: has control characters or more than {MAX_TITLE_CHARS:,} characters")
    return UploadedPage(url=url, uploader=supplier, uploaded_at=now, text=record["text"], title=title)


async def store_supplied(pages: Sequence[UploadedPage], cache: PageCache, *, owner: str) -> list[Capture]:
    """Store pages for an owner and return their captures, which need not be evidence. Nothing is opened.

    Raises:
        SuppliedRejected: A page cannot be converted. Nothing is stored.
        BlobStoreFailed, IndexFailed: A page cannot be stored.
    """
    observations = []
    for page in pages:
        try:
            observations.append(await observe_upload(page))
        except DocumentRejected as error:
            raise SuppliedRejected(f"{page.url}: {error.detail}") from error
    return [await cache.add(each.url, each, owner=owner, synced=False) for each in observations]
