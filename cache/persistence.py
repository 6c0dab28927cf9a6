"""Storing of observations as captures: first the bodies, then the record in the blob store, then the index entry.

With this order, a crash can leave unreferenced bodies or records, but never an index entry without its bodies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import structlog

from cache.blobs import BlobStore
from cache.capture import SCREENSHOT_ROLE, Blob, Capture, Observation
from cache.record import capture_to_bytes
from cache.store import CaptureIndex

_log = structlog.get_logger(__name__)


class CaptureRecorder:
    """Stores observations as captures. Stored data is never changed."""

    def __init__(self, blobs: BlobStore, index: CaptureIndex, new_id: Callable[[], str]) -> None:
        self._blobs = blobs
        self._index = index
        self._new_id = new_id

    async def file(self, url: str, key: str, observation: Observation) -> Capture:
        """Store an observation of ``url`` and return its capture.

        Raises:
            BlobStoreFailed, IndexFailed: the capture cannot be stored.
        """
        blobs: dict[str, Blob] = {}
        for role, (data, media_type) in _bodies(observation).items():
            blobs[role] = await self._blobs.put(data, media_type)
        capture = Capture(
            id=self._new_id(),
            url=url,
            key=key,
            outcome=observation.outcome,
            captured_at=observation.captured_at,
            duration_s=observation.duration_s,
            backend=observation.backend,
            detail=observation.detail,
            final_url=observation.final_url,
            http_status=observation.http_status,
            kind=observation.kind,
            title=observation.title,
            chain=observation.chain,
            headers=observation.headers,
            versions=observation.versions,
            blobs=blobs,
            hidden_words=observation.hidden_words,
            gone=observation.gone,
            source=observation.source,
            provenance=observation.provenance,
        )
        await self._record(capture)
        _log.info(
            "page_captured",
            url=url,
            outcome=capture.outcome.value,
            http_status=capture.http_status,
            seconds=round(capture.duration_s, 3),
            page_id=capture.id,
            source=capture.source.value,
        )
        return capture

    async def alias(self, url: str, key: str, of: Capture, *, provenance: Mapping[str, str] | None = None) -> Capture:
        """Store a capture of another URL for ``url`` as an alias.

        ``provenance``: set if a person chose the alias; None if the other URL has the same final URL.

        Raises:
            BlobStoreFailed, IndexFailed: the alias cannot be stored.
        """
        capture = replace(of, id=self._new_id(), url=url, key=key, alias_of=of.alias_of or of.id)
        if provenance is not None:
            capture = replace(capture, provenance={**of.provenance, **provenance})
        await self._record(capture)
        _log.info("page_alias", url=url, page_id=capture.id, alias_of=capture.alias_of, cited_as=of.url)
        return capture

    async def _record(self, capture: Capture) -> None:
        await self._blobs.put_record(capture.id, capture_to_bytes(capture))
        await self._index.record(capture)


def _bodies(observation: Observation) -> dict[str, tuple[bytes, str]]:
    """Return the bodies to store, by role, with their media types."""
    bodies: dict[str, tuple[bytes, str]] = {}
    if observation.text or observation.is_evidence:
        bodies["text"] = (_utf8(observation.text), "text/plain; charset=utf-8")
    if observation.hidden_text:
        bodies["hidden_text"] = (_utf8(observation.hidden_text), "text/plain; charset=utf-8")
    if observation.links:
        links = json.dumps([list(link) for link in observation.links], ensure_ascii=False)
        bodies["links"] = (_utf8(links), "application/json")
    if observation.places is not None:
        bodies["places"] = (observation.places, "application/json")
    if observation.original is not None:
        bodies["original"] = (observation.original, "application/octet-stream")
    if observation.html is not None:
        bodies["html"] = (observation.html, "text/html")
    if observation.pdf is not None:
        bodies["pdf"] = (observation.pdf, "application/pdf")
    for number, shot in enumerate(observation.screenshots):
        bodies[f"{SCREENSHOT_ROLE}{number}"] = (shot, "image/jpeg")
    return bodies


def _utf8(text: str) -> bytes:
    """Encode as UTF-8. Lone surrogates, which pages can contain, are replaced."""
    return text.encode("utf-8", errors="replace")
