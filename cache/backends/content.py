"""Conversion of fetched or uploaded bytes to observations, without a browser."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cache.backends.documents import ByteKind, decode_html, read_document, read_html_safely, sniff
from cache.backends.plain_html import PlainPage
from cache.capture import CaptureOutcome, Observation
from cache.classify.quality import PageFacts, classify
from cache.errors import DocumentRejected


async def read_content(received: Observation, content: bytes, content_type: str, *, deadline_s: float) -> Observation:
    """Return ``received`` completed with ``content``. Error pages, walls and damaged content become outcomes."""
    kind = sniff(content, content_type)
    if (received.http_status or 200) >= 400 or kind is ByteKind.HTML:
        html = decode_html(content, content_type) if kind in (ByteKind.HTML, ByteKind.TEXT) else ""
        return await read_page(received, html, content)
    try:
        document = await read_document(content, content_type, deadline_s=deadline_s)
    except DocumentRejected as rejected:
        return replace(received, outcome=rejected.outcome, detail=rejected.detail)
    return document.complete_observation(received)


async def read_page(received: Observation, html: str, content: bytes) -> Observation:
    """Return ``received`` completed with the content of an unrendered web page. ``content`` is stored as its HTML."""
    final_url = received.final_url or received.url
    try:
        page = await read_html_safely(html, final_url)
    except DocumentRejected as rejected:
        is_error = (received.http_status or 200) >= 400
        outcome = CaptureOutcome.HTTP_ERROR if is_error else rejected.outcome
        return replace(received, outcome=outcome, detail=rejected.detail, html=content)
    facts = facts_of(page, html, url=received.url, final_url=final_url, status=received.http_status)
    finding = await asyncio.to_thread(classify, facts)
    return replace(
        received,
        outcome=finding.outcome,
        detail=finding.detail or received.detail,
        gone=finding.gone,
        soft_404_confidence=finding.soft_404_confidence,
        title=page.title,
        text=page.text,
        hidden_text=page.hidden,
        links=page.links,
        html=content,
    )


def facts_of(page: PlainPage, html: str, *, url: str, final_url: str, status: int | None) -> PageFacts:
    """Return the facts of an unrendered web page by which it is classified."""
    return PageFacts(
        url=url,
        final_url=final_url,
        status=status,
        title=page.title,
        headlines=page.headlines,
        text=page.text,
        html=html,
        has_password_field=page.has_password_field,
        login_form_chars=page.login_form_chars,
        consent_chars=page.consent_chars,
        consent_covers=page.consent_chars > 0,
        inputs=page.inputs,
        links=len(page.links),
        large_images=page.images,
        has_user_field=page.has_user_field,
        is_registration=page.is_registration,
    )
