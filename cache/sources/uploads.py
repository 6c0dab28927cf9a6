"""Uploads: conversion of pages that a person uploads to observations, with the same checks as a capture.

The type is determined from the bytes, the size is limited, and PDFs and images are decoded in the child process. Walls
and error pages are detected as in captures, so a saved captcha is not evidence. ``detail`` says that the page was not
rendered, and ``provenance`` contains the uploader.

From an MHTML file (a page saved as one file), the page and where and when it was saved are extracted. Headers are
parsed by the standard library, and parts are split at their boundary in one pass. The processing time is linear in the
file size for any content.
"""

from __future__ import annotations

import asyncio
import binascii
import codecs
import hashlib
import quopri
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import parsedate_to_datetime

from cache.backends.content import read_content, read_page
from cache.backends.documents import (
    MAX_PAGE_BYTES,
    MAX_TEXT_CHARS,
    SNIFFED_BYTES,
    ByteKind,
    byte_limit,
    decode_html,
    read_document,
    sniff,
    utf_16_codec,
)
from cache.capture import CaptureOutcome, CaptureSource, Observation, PageKind
from cache.classify.quality import PageFacts, classify
from cache.errors import DocumentRejected

MAX_PARTS = 5_000
_MAX_HEAD_BYTES = 16 * 1024
"""The parser of parameters is quadratic: 15 ms for this length."""
_MAX_DEPTH = 3
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_FIRST_HEADER = re.compile(
    rb"\s*(?:From|MIME-Version|Content-Type|Snapshot-Content-Location|Subject|Date|X-[\w-]+):", re.I
)
_RELATED = re.compile(rb"^content-type:\s*multipart/(?:related|alternative|mixed)\b", re.I | re.M)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPage:
    """The page in an MHTML file.

    Attributes:
        url: Address that the file claims, or None.
        saved_at: Time that the file claims, or None.
        is_complete: The file is not truncated.
    """

    html: bytes
    content_type: str
    url: str | None
    title: str
    saved_at: datetime | None
    is_complete: bool = True


def is_mhtml(data: bytes, content_type: str = "") -> bool:
    """Return whether the bytes are an MHTML file.

    >>> is_mhtml(b"From: <Saved by Blink>\\nMIME-Version: 1.0\\nContent-Type: multipart/related; boundary=x\\n\\n--x")
    True
    >>> is_mhtml(b"<!doctype html>")
    False
    """
    head = data[:8192].removeprefix(codecs.BOM_UTF8)
    return bool(_FIRST_HEADER.match(head) and _RELATED.search(head))


def read_mhtml(data: bytes) -> SavedPage:
    """Extract the page. CPU-bound: run it in a thread.

    Raises:
        DocumentRejected: the file is damaged or contains no page.
    """
    try:
        message, body = _split_head(data.removeprefix(codecs.BOM_UTF8).lstrip())
        url = _text(message, "Snapshot-Content-Location")
        root = _page_part(message, body, location=url, depth=1)
        if root is None:
            raise DocumentRejected(CaptureOutcome.DAMAGED, "the MHTML file has no HTML part")
        part, content = root
        return SavedPage(
            html=_decode(part, content),
            content_type=f"text/html; charset={part.get_content_charset() or ''}".removesuffix("; charset="),
            url=url or _text(part, "Content-Location") or None,
            title=_text(message, "Subject"),
            saved_at=_date(message),
            is_complete=body.rstrip().endswith(f"--{message.get_boundary()}--".encode("ascii", "replace")),
        )
    except (MessageError, ValueError, LookupError, binascii.Error) as broken:
        raise DocumentRejected(CaptureOutcome.DAMAGED, f"the MHTML file cannot be read: {broken}") from broken


def _split_head(data: bytes) -> tuple[Message, bytes]:
    """Split a part into headers and body."""
    end = _BLANK_LINE.search(data, 0, _MAX_HEAD_BYTES)
    if end is None:
        raise DocumentRejected(CaptureOutcome.DAMAGED, "the MHTML file has a part with incomplete or too long headers")
    return BytesHeaderParser().parsebytes(data[: end.end()].lstrip()), data[end.end() :]


def _page_part(message: Message, body: bytes, *, location: str, depth: int) -> tuple[Message, bytes] | None:
    """Return the part with the page: the one named as the start, else the one with the saved URL, else the first."""
    if message.get_content_maintype() != "multipart":
        return (message, body) if message.get_content_type() in _HTML_TYPES else None
    boundary = message.get_boundary()
    if not boundary or depth > _MAX_DEPTH:
        return None
    start = str(message.get_param("start") or "")
    first: tuple[Message, bytes] | None = None
    for part, content in _parts(body, boundary):
        page_part = _page_part(part, content, location=location, depth=depth + 1)
        if page_part is None:
            continue
        if start and _text(part, "Content-ID") == start:
            return page_part
        if first is None or (
            location and not _has_location(first[0], location) and _has_location(page_part[0], location)
        ):
            first = page_part
    return first


def _has_location(part: Message, location: str) -> bool:
    return _text(part, "Content-Location") == location


def _parts(body: bytes, boundary: str) -> Iterator[tuple[Message, bytes]]:
    marker = b"--" + boundary.encode("ascii", "strict")
    pieces = (b"\n" + body).split(b"\n" + marker, MAX_PARTS + 1)
    if len(pieces) > MAX_PARTS:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"the MHTML file has more than {MAX_PARTS} parts")
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return
        yield _split_head(piece.lstrip(b" \t").removeprefix(b"\r").removeprefix(b"\n").removesuffix(b"\r"))


def _decode(part: Message, content: bytes) -> bytes:
    match _text(part, "Content-Transfer-Encoding").lower():
        case "quoted-printable":
            return quopri.decodestring(content)
        case "base64":
            return binascii.a2b_base64(content)
        case _:
            return content


def _text(message: Message, name: str) -> str:
    """Return a header as text, with encoded words decoded and folded lines joined."""
    value = message.get(name)
    if value is None:
        return ""
    text = str(value)
    with suppress(LookupError, ValueError, MessageError):  # unknown charset: use the raw value
        text = str(make_header(decode_header(text)))
    return " ".join(text.split())


def _date(message: Message) -> datetime | None:
    try:
        at = parsedate_to_datetime(str(message.get("Date", "")))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


DEADLINE_S = 60.0
BACKEND = "upload"


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedPage:
    """An uploaded page.

    Attributes:
        uploader: Name of the uploader (never the API key).
        content: PDF, HTML, MHTML, text or image.
        text: Text of the page, if there is no ``content``.
        image: Optional screenshot of the page.
        title: Title of the page, if it is known (default: that of the document).
        details: Further entries of the provenance.
    """

    url: str
    uploader: str
    uploaded_at: datetime
    content: bytes | None = None
    content_type: str = ""
    text: str | None = None
    image: bytes | None = None
    title: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


async def observe_upload(upload: UploadedPage, *, source: CaptureSource = CaptureSource.UPLOAD) -> Observation:
    """Convert an uploaded page to an observation.

    Raises:
        DocumentRejected: damaged, encrypted, a decompression bomb, too large, of an unsupported type, or empty.
    """
    initial = Observation(
        url=upload.url,
        outcome=CaptureOutcome.OK,
        captured_at=upload.uploaded_at,
        duration_s=0.0,
        backend=BACKEND,
        source=source,
        provenance={"by": upload.uploader, "at": upload.uploaded_at.isoformat(), **upload.details},
    )
    if upload.content is not None:
        observation = await _observe_content(initial, upload.content, upload.content_type)
    elif upload.text is not None:
        observation = await asyncio.to_thread(_observe_text, initial, upload.text, upload.image is not None)
    else:
        raise DocumentRejected(CaptureOutcome.UNSUPPORTED, "upload a document or a text")
    observation = replace(observation, title=upload.title or observation.title)
    return observation if upload.image is None else await _add_image(observation, upload.image)


async def _observe_content(initial: Observation, content: bytes, content_type: str) -> Observation:
    if b"\0" in content[:SNIFFED_BYTES] and utf_16_codec(content) is None:
        content_type = ""  # binary data; the declared type is ignored
    saved_as = "mhtml" if is_mhtml(content, content_type) else sniff(content, content_type).value
    limit = MAX_PAGE_BYTES if saved_as == "mhtml" else byte_limit(content, content_type)
    if len(content) > limit:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {limit} bytes")
    digest = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
    details = {**initial.provenance, "as": saved_as, "sha256": digest}
    if saved_as == "mhtml":
        return await _observe_mhtml(replace(initial, provenance=details), content)
    received = replace(initial, provenance=details, detail="not rendered" if saved_as == ByteKind.HTML else "")
    observation = await read_content(received, content, content_type, deadline_s=DEADLINE_S)
    if saved_as != ByteKind.HTML and not observation.is_evidence:
        raise DocumentRejected(observation.outcome, observation.detail)
    return replace(observation, original=content) if observation.kind is PageKind.IMAGE else observation


async def _observe_mhtml(received: Observation, content: bytes) -> Observation:
    saved = await asyncio.to_thread(read_mhtml, content)
    claimed = {"saved_url": saved.url, "saved_at": saved.saved_at and saved.saved_at.isoformat()}
    details = {**received.provenance, **{name: value for name, value in claimed.items() if value}}
    html = decode_html(saved.html, saved.content_type)
    observation = await read_page(replace(received, provenance=details, detail="not rendered"), html, saved.html)
    if observation.outcome is CaptureOutcome.OK and not saved.is_complete:
        observation = replace(
            observation, outcome=CaptureOutcome.PARTIAL, detail="not rendered; the file is incomplete"
        )
    return replace(observation, title=observation.title or saved.title)


def _observe_text(initial: Observation, text: str, has_image: bool) -> Observation:
    if len(text) > MAX_TEXT_CHARS:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {MAX_TEXT_CHARS} characters of text")
    facts = PageFacts(url=initial.url, final_url=initial.url, status=None, text=text, large_images=int(has_image))
    finding = classify(facts)
    return replace(
        initial,
        outcome=finding.outcome,
        detail=finding.detail or "given as plain text",
        text=text,
        provenance={**initial.provenance, "as": "text"},
    )


async def _add_image(observation: Observation, image: bytes) -> Observation:
    if sniff(image, "") is not ByteKind.IMAGE:
        raise DocumentRejected(CaptureOutcome.UNSUPPORTED, "the image is not PNG, JPEG, GIF, WebP, BMP or TIFF")
    screenshots = (await read_document(image, "", deadline_s=DEADLINE_S)).screenshots
    return replace(
        observation,
        screenshots=(*screenshots, *observation.screenshots),
        original=None if screenshots == (image,) else image,
    )
