"""Capturer with fixed pages by URL; every other page is not found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cache.capture import CaptureOutcome, Observation


class FixedPages:
    """Capturer of fixed pages."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self.captured_urls: list[str] = []

    async def capture(self, url: str) -> Observation:
        self.captured_urls.append(url)
        text = self._texts.get(url.partition("?utm_")[0])
        return Observation(
            url=url,
            outcome=CaptureOutcome.HTTP_ERROR if text is None else CaptureOutcome.OK,
            gone=text is None,
            captured_at=datetime(2026, 1, 2, tzinfo=UTC),
            duration_s=0.01,
            backend="seen",
            http_status=404 if text is None else 200,
            text=text or "",
        )

    async def aclose(self) -> None: ...
