"""Stored pages in the public layout: conversion to observations, and comparison with captures."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from w3lib.url import safe_url_string

from cache.backends.documents import read_document
from cache.capture import SCREENSHOT_PREFIX, Capture, CaptureOutcome, CaptureSource, Observation, PageKind
from cache.errors import DocumentRejected
from cache.page_text.screenshot_parts import is_showable
from mind2web2.page_keys import storage_key
from mind2web2.page_metadata import PageMetadata
from mind2web2.utils.cache_filesys import CacheFileSys

BACKEND = "public-layout"
DECODING_DEADLINE_S = 60.0
MAX_WIDTH_PX, MAX_HEIGHT_PX = 2000, 20_000
"""Larger pictures are decoded in a child process, because they may be decompression bombs."""


async def read_stored_page(stored: CacheFileSys, url: str) -> Observation:
    seen = await asyncio.to_thread(_read, stored, url)
    if seen.pdf is None:
        return seen if seen.original is None else await _with_decoded_picture(seen, seen.original)
    try:
        document = await read_document(seen.pdf, "application/pdf", deadline_s=DECODING_DEADLINE_S)
    except DocumentRejected as error:
        return _damaged(url, str(error))
    return document.complete_observation(seen)


def read_shown_page(stored: CacheFileSys, url: str) -> Observation | None:
    """Read a stored page whose picture is shown as it is. None: use ``read_stored_page``, which decodes. Blocks."""
    if stored.has(url) == "pdf":
        return None
    seen = _read(stored, url)
    return seen if seen.original is None else None


async def _with_decoded_picture(seen: Observation, picture: bytes) -> Observation:
    """Add a stored picture, which is huge or not a JPEG, as the screenshot. It is decoded in a child process."""
    try:
        screenshots = (await read_document(picture, "", deadline_s=DECODING_DEADLINE_S)).screenshots
    except DocumentRejected:
        screenshots = ()
    return replace(seen, screenshots=screenshots)


def _read(stored: CacheFileSys, url: str) -> Observation:
    metadata, kind = stored.metadata(url), stored.has(url)
    text, shot, pdf = "", None, None
    try:
        if kind == "pdf":
            pdf = stored.get_pdf(url)
        else:
            text, shot = stored.get_web(url)
    except KeyError:
        return _damaged(url, "its files are missing")
    files = {"txt": text.encode("utf-8", "replace"), "jpg": shot or b"", "pdf": pdf or b""}
    if metadata is not None and any(
        _sha256(files[suffix]) != metadata.sha256[suffix] for suffix in files.keys() & metadata.sha256.keys()
    ):
        metadata = None  # another program has replaced the page since, and did not write metadata
    can_show = shot is not None and is_showable(shot, MAX_WIDTH_PX, MAX_HEIGHT_PX)
    return Observation(
        url=url,
        outcome=CaptureOutcome.OK,
        captured_at=_when(metadata),
        duration_s=0.0,
        backend=BACKEND,
        detail="imported; the time is that of the import" if metadata is None else "",
        final_url=None if metadata is None else metadata.final_url,
        http_status=None if metadata is None else metadata.status,
        kind=PageKind.PDF if kind == "pdf" else PageKind.WEB,
        text=text,
        original=None if can_show else shot,
        screenshots=(shot,) if can_show and shot is not None else (),
        pdf=pdf,
        headers={} if metadata is None else metadata.headers,
        source=CaptureSource.IMPORT,
    )


def _when(metadata: PageMetadata | None) -> datetime:
    """Return the time of capture of a stored page; the current time if it is missing or invalid."""
    try:
        at = datetime.now(UTC) if metadata is None else datetime.fromisoformat(metadata.captured_at)
    except (ValueError, TypeError):
        return datetime.now(UTC)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _damaged(url: str, detail: str) -> Observation:
    return Observation(
        url=url,
        outcome=CaptureOutcome.DAMAGED,
        captured_at=datetime.now(UTC),
        duration_s=0.0,
        backend=BACKEND,
        detail=detail,
        source=CaptureSource.IMPORT,
    )


def urls_in(stored: CacheFileSys, overview: Path) -> list[str]:
    """Return the URLs of all stored pages.

    If the URL of a page was not recorded, return the URLs of the overview file that have the same key. There may be
    several, because keys are percent-decoded. Without an overview, return the percent-encoded key.
    """
    by_key: dict[str, list[str]] = {}
    for url in _cited_urls(overview):
        by_key.setdefault(storage_key(url), []).append(url)
    urls: list[str] = []
    for key in stored.get_all_urls():
        metadata = stored.metadata(key)
        urls += [metadata.url] if metadata is not None else by_key.get(key) or [safe_url_string(key)]
    return urls


def _cited_urls(overview: Path) -> list[str]:
    """Return the URLs in the overview file of a folder; empty if there is no readable one."""
    try:
        urls = json.loads(overview.read_text(encoding="utf-8"))["all_unique_urls"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [url for url in urls if isinstance(url, str)] if isinstance(urls, list) else []


def stored_bodies(stored: CacheFileSys, url: str) -> dict[str, str] | None:
    """Return the SHA-256 of the stored bodies of a page by name; None if the page is missing or incomplete."""
    try:
        if stored.has(url) == "pdf":
            return {"pdf": _sha256(stored.get_pdf(url))}
        text, shot = stored.get_web(url)
    except KeyError:
        return None
    return {"text": _sha256(text.encode("utf-8", "replace"))} | ({} if shot is None else {"original": _sha256(shot)})


def same_bodies(stored: Mapping[str, str], shown: Mapping[str, str]) -> bool:
    """Return whether the bodies of a stored page equal those of a capture: the PDF, or the text and the picture if any.

    The stored picture may equal the screenshot of the capture, or the original that the screenshot was scaled from.
    """
    if "pdf" in stored or "pdf" in shown:
        return stored.get("pdf") == shown.get("pdf")
    if stored.get("text") != shown.get("text"):
        return False
    picture = stored.get("original")
    return picture is None or picture in (shown.get("original"), shown.get(f"{SCREENSHOT_PREFIX}0"))


def equals_capture(stored: CacheFileSys, url: str, capture: Capture) -> bool:
    """Return whether the stored page equals a capture, or is our unchanged export of that capture."""
    bodies = stored_bodies(stored, url)
    if bodies is None:
        return False
    if same_bodies(bodies, {name: blob.sha256 for name, blob in capture.blobs.items()}):
        return True
    metadata = stored.metadata(url)
    if metadata is None or metadata.captured_at != capture.captured_at.isoformat():
        return False
    written = {suffix: bodies.get(name) for suffix, name in (("txt", "text"), ("jpg", "original"), ("pdf", "pdf"))}
    return all(written[suffix] == digest for suffix, digest in metadata.sha256.items())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
