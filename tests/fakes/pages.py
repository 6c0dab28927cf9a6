"""Evidence without a browser: constructors of evidence, and a lookup of fixed pages."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from datetime import UTC, datetime

from PIL import Image

from cache.capture import Blob, Capture, CaptureOutcome, Evidence
from cache.errors import CacheError, NoEvidence

CAPTURED_AT = datetime(2025, 8, 1, 12, 0, tzinfo=UTC)


def jpeg(width: int = 60, height: int = 40, colour: str = "red") -> bytes:
    """Return a screenshot of one colour."""
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "JPEG", quality=85)
    return out.getvalue()


def page(
    url: str = "https://example.com/page",
    text: str = "A page.",
    *,
    screenshots: tuple[bytes, ...] = (),
    links: tuple[tuple[str, str], ...] = (),
) -> Evidence:
    """Return the evidence of a page that was captured without problems."""
    digests = tuple(hashlib.sha256(body).hexdigest() for body in (text.encode(), *screenshots))
    blob = Blob(sha256=digests[0], size=len(text), media_type="text/plain")
    capture = Capture(
        id=f"page-{hashlib.sha256((url + text).encode()).hexdigest()[:8]}",
        url=url,
        key=url,
        outcome=CaptureOutcome.OK,
        captured_at=CAPTURED_AT,
        duration_s=0.1,
        backend="fake",
        final_url=url,
        http_status=200,
        blobs={"text": blob},
    )
    return Evidence(capture=capture, text=text, links=links, screenshots=screenshots, digests=digests)


def long_text(chars: int) -> str:
    """Return a text that repeats no sentence and is about as long."""
    first = "Ida Norrstad was director of the institute until 2004."
    return " ".join([first, *(f"Shelf {number} has a lamp." for number in range(chars // 20))])


def missing(url: str, outcome: CaptureOutcome, *, gone: bool = False) -> NoEvidence:
    """Return the error for a page that has no evidence."""
    return NoEvidence(url, outcome, "scripted", gone=gone, capture=None)


class FixedEvidence:
    """``evidence_for`` over a mapping. An error in the mapping is raised. Counts its calls."""

    def __init__(self, pages: Mapping[str, Evidence | CacheError]) -> None:
        self._pages = dict(pages)
        self.requested_urls: list[str] = []

    async def __call__(self, url: str) -> Evidence:
        self.requested_urls.append(url)
        found = self._pages.get(url) or missing(url, CaptureOutcome.CONNECT_ERROR)
        if isinstance(found, CacheError):
            raise found
        return found
