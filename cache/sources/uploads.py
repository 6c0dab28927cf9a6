"""Uploads: conversion of pages that a person uploads to observations, with the same checks as a capture.

The type is determined from the bytes, the size is limited, and PDFs and images are decoded in the child process. Walls
and error pages are detected as in captures, so a saved captcha is not evidence. ``detail`` says that the page was not
rendered, and ``provenance`` contains the uploader.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

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
from cache.sources.mhtml import is_mhtml, read_mhtml

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
    """

    url: str
    uploader: str
    uploaded_at: datetime
    content: bytes | None = None
    content_type: str = ""
    text: str | None = None
    image: bytes | None = None


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
        provenance={"by": upload.uploader, "at": upload.uploaded_at.isoformat()},
    )
    if upload.content is not None:
        observation = await _observe_content(initial, upload.content, upload.content_type)
    elif upload.text is not None:
        observation = _observe_text(initial, upload.text, has_image=upload.image is not None)
    else:
        raise DocumentRejected(CaptureOutcome.UNSUPPORTED, "upload a document or a text")
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


def _observe_text(initial: Observation, text: str, *, has_image: bool) -> Observation:
    if len(text) > MAX_TEXT_CHARS:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {MAX_TEXT_CHARS} characters of text")
    facts = PageFacts(url=initial.url, final_url=initial.url, status=None, text=text, large_images=int(has_image))
    finding = classify(facts)
    return replace(
        initial,
        outcome=finding.outcome,
        detail=finding.detail or "text entered by a person",
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
