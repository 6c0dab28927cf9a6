"""Uploads: conversion of pages that a person uploads to observations, with the same checks as a capture.

The type is determined from the bytes, the size is limited, and PDFs and images are decoded in the child process. Walls
and error pages are detected as in captures, so a saved captcha is not evidence. ``detail`` says that the page was not
rendered, and ``provenance`` contains the uploader.
"""

from __future__ import annotations

import asyncio
import codecs
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from cache.backends.content import read_content, read_page
from cache.backends.document_decoder import read_html_safely
from cache.backends.documents import (
    MAX_PAGE_BYTES,
    MAX_TEXT_CHARS,
    SNIFFED_BYTES,
    ByteKind,
    byte_limit,
    decode_html,
    read_document,
    sniff,
)
from cache.capture import CaptureOutcome, CaptureSource, Observation, PageKind
from cache.classify.quality import PageFacts, classify
from cache.errors import DocumentRejected
from cache.page_text.submitted_boxes import SubmittedBoxes, validate_boxes
from cache.sources.mhtml import is_mhtml, read_mhtml

DEADLINE_S = 60.0
BACKEND = "upload"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserPage:
    """Data that a person's browser sent about the page that it displayed.

    The counts have the same meaning as in ``cache.classify.quality.PageFacts``.

    Attributes:
        places: Position of the text in the screenshot.
        extra_provenance: Entries to add to the provenance.
    """

    url: str = ""
    title: str = ""
    html: bytes | None = None
    password_field: bool = False
    login_form_chars: int = 0
    consent_chars: int = 0
    inputs: int = 0
    large_images: int = 0
    places: SubmittedBoxes | None = None
    extra_provenance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedPage:
    """An uploaded page.

    Attributes:
        uploader: Name of the uploader (never the API key).
        content: PDF, HTML, MHTML, text or image.
        text: Text of the page, if there is no ``content``.
        image: Optional screenshot of the page.
        browser: Set if the text was captured in a person's browser.
    """

    url: str
    uploader: str
    uploaded_at: datetime
    content: bytes | None = None
    content_type: str = ""
    text: str | None = None
    image: bytes | None = None
    browser: BrowserPage | None = None


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
    elif upload.text is not None and upload.browser is not None:
        observation = await _observe_browser_page(initial, upload.text, upload.browser)
    elif upload.text is not None:
        observation = _observe_text(initial, upload.text, has_image=upload.image is not None)
    else:
        raise DocumentRejected(CaptureOutcome.UNSUPPORTED, "upload a document or a text")
    if upload.image is None:
        return observation
    observation = await _add_image(observation, upload.image)
    if upload.browser is None or upload.browser.places is None:
        return observation
    return replace(
        observation,
        places=await asyncio.to_thread(
            validate_boxes, upload.browser.places, observation.text, observation.screenshots
        ),
    )


async def _observe_content(initial: Observation, content: bytes, content_type: str) -> Observation:
    if b"\0" in content[:SNIFFED_BYTES] and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
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


async def _observe_browser_page(initial: Observation, text: str, page_data: BrowserPage) -> Observation:
    """Convert a page captured in a person's browser. It is rendered, and checked for walls like every page.

    Facts that the browser did not send (forms, headings) are read from its HTML.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {MAX_TEXT_CHARS} characters of text")
    if page_data.html is not None and len(page_data.html) > MAX_PAGE_BYTES:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {MAX_PAGE_BYTES} bytes of HTML")
    html = "" if page_data.html is None else page_data.html.decode("utf-8", "replace")
    page = await read_html_safely(html, page_data.url or initial.url)
    normalized = " ".join(text.split())
    facts = PageFacts(
        url=initial.url,
        final_url=page_data.url or initial.url,
        status=None,
        title=page_data.title,
        text=text,
        html=html,
        headlines=tuple(headline for headline in page.headlines if headline in normalized),
        has_password_field=page_data.password_field,
        login_form_chars=page_data.login_form_chars,
        consent_chars=page_data.consent_chars,
        inputs=page_data.inputs,
        large_images=page_data.large_images,
        has_user_field=page.has_user_field,
        is_registration=page_data.password_field and page.is_registration,
    )
    finding = await asyncio.to_thread(classify, facts)
    details = {**initial.provenance, "as": "browser", **page_data.extra_provenance}
    return replace(
        initial,
        outcome=finding.outcome,
        detail=finding.detail or "captured in a person's browser",
        title=page_data.title,
        text=text,
        html=page_data.html,
        provenance=details | ({"saved_url": page_data.url} if page_data.url else {}),
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
