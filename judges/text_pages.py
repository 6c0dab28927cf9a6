"""Pages given as text instead of captures, for trials of judge files and for labels that include their pages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime

from cache.capture import Blob, Capture, CaptureOutcome, Evidence
from cache.errors import NoEvidence
from cache.urls import canonical_key

CAPTURED_AT = datetime(2000, 1, 1, tzinfo=UTC)


class TextPages:
    """Page texts by URL. Any other URL counts as gone (404)."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._by_key = {canonical_key(url): evidence_of(url, text) for url, text in texts.items()}

    async def evidence_for(self, url: str) -> Evidence:
        """Return the evidence for a URL.

        Raises:
            NoEvidence: there is no text for this URL.
        """
        evidence = self._by_key.get(canonical_key(url))
        if evidence is None:
            raise NoEvidence(url, CaptureOutcome.HTTP_ERROR, "HTTP 404", gone=True, capture=None)
        return evidence


def evidence_of(url: str, text: str) -> Evidence:
    """Return evidence that consists of this text only."""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    capture = Capture(
        id=sha256[:12],
        url=url,
        key=canonical_key(url),
        outcome=CaptureOutcome.OK,
        captured_at=CAPTURED_AT,
        duration_s=0.0,
        backend="trial",
        http_status=200,
        blobs={"text": Blob(sha256=sha256, size=len(text.encode()), media_type="text/plain")},
    )
    return Evidence(capture=capture, text=text, digests=(sha256,))
