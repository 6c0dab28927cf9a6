"""Capturer with fixed pages by URL, and page caches of scripts without a script."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cache.blobs import BlobStore
from cache.capture import CaptureOutcome, Observation
from judges.isolation.serialization import to_base64
from mind2web2.host import LocalCalls, page_handlers
from mind2web2.hosted_objects import HostedCache, RemoteTaskPages
from mind2web2.task_pages import TaskPages


def hosted_cache(folder: Path, pages: TaskPages, blobs: BlobStore) -> HostedCache:
    """Return the page cache that a script gets from the service."""

    async def body(params: Mapping[str, Any]) -> Any:
        return to_base64(await blobs.get(params["sha256"]))

    return HostedCache(folder, RemoteTaskPages(LocalCalls({**page_handlers(pages), "evidence": body})))


class FixedPages:
    """Capturer of fixed pages. Every other page is not found."""

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
