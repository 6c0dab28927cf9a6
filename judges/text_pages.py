"""Evidence that consists of a given text, without a capture."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from cache.capture import Blob, Capture, CaptureOutcome, Evidence
from cache.urls import canonical_key

CAPTURED_AT = datetime(2000, 1, 1, tzinfo=UTC)


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
