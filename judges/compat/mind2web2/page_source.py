"""Evidence for the claims of a task script: from the script's page cache, then from the live web.

The cache may be ours or any object with the same methods. A page is prepared once per run, in a thread, and the same
bytes are used for every claim and vote.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from cache.capture import Blob, Capture, CaptureOutcome, Evidence, Observation, PageKind
from cache.errors import (
    BlobCorrupt,
    BrowserUnavailable,
    CacheError,
    DocumentRejected,
    NoEvidence,
    SandboxUnavailable,
)
from cache.image_jobs import run_image_job
from cache.page_text.screenshot_parts import PartFiles, ScreenshotLimits, join_tiles, scaled_image, screenshot_parts
from cache.single_flight import LRUCache, SingleFlight
from cache.urls import canonical_key
from judges.isolation.remote import EvidenceReference
from mind2web2.config import EvaluatorConfig
from mind2web2.external_services import external_services
from mind2web2.foreign_client import foreign_object
from mind2web2.llm_client.judge import HarnessError
from mind2web2.page_keys import address_of, file_stems, storage_key
from mind2web2.page_metadata import PageMetadata
from mind2web2.text_limits import truncate_to_tokens
from mind2web2.utils.misc import normalize_url_markdown
from mind2web2.utils.page_info_retrieval import capture_problem

KEPT_BYTES = 4 * 1024 * 1024
"""Memory for loaded pages per evaluator. Several run at once, and reading a page again is cheap."""
PDF_DEADLINE_S = 60.0
PARTS_FOLDER = ".parts"
"""Folder in that of a task, with the parts of its screenshots. The public toolkit does not look at it."""
BACKEND = "public-layout"
NOT_KNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""Capture time of a page that was stored without one."""


class LivePages(Protocol):
    """Captures pages now. The observation is not necessarily evidence."""

    async def observe(self, url: str) -> Observation: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """Cache entry of a page. ``body`` is a screenshot or a PDF.

    ``damage`` is set if the data differs from what was stored. ``body_sha256`` (hex) is set if it was computed for this
    check.
    """

    kind: PageKind
    text: str
    body: bytes | None
    metadata: PageMetadata | None
    damage: BlobCorrupt | None = None
    body_sha256: str = ""


class StoredPages(ABC):
    """Pages of a cache in the public layout. A subclass provides pages that the cache does not have."""

    def __init__(self, cache: Any, *, config: EvaluatorConfig) -> None:
        """``config`` limits what is shown of a page. ``cache=None`` stands for an empty cache."""
        self._cache = cache
        self._config = config
        self._part_files = _part_files(cache)
        self._loads: SingleFlight[str, Evidence] = SingleFlight()
        # The newest page is always cached: otherwise a long PDF would be rendered again for every claim.
        self._kept: LRUCache[str, Evidence] = LRUCache(KEPT_BYTES, keeps_newest=True)
        self._absent: dict[str, CacheError] = {}
        self._used: dict[str, Capture] = {}

    async def evidence(self, url: str) -> Evidence:
        """Return the evidence of a page. A page that failed is not requested again.

        Raises:
            NoEvidence: the page is not evidence; has the outcome and whether the page is known to be gone.
            CacheError: the page could not be fetched.
            HarnessError: tokenizer, browser or cache cannot be used.
        """
        cleaned = normalize_url_markdown(url)
        stored = self._kept.get(cleaned)
        if stored is not None:
            return stored
        if cleaned in self._absent:
            raise self._absent[cleaned]
        return await self._loads.run(cleaned, lambda: self._load(cleaned))

    async def whole(self, url: str) -> Evidence:
        """Return the page with text and screenshots, fetched from the service if necessary.

        Same errors as ``evidence``.
        """
        evidence = await self.evidence(url)
        return await evidence.complete_page() if isinstance(evidence, EvidenceReference) else evidence

    def used(self) -> list[Capture]:
        """Return all requested pages in the order of the first request."""
        return list(self._used.values())

    async def _load(self, url: str) -> Evidence:
        try:
            evidence = await self._find(url)
        except CacheError as error:
            self._absent[url] = error
            if isinstance(error, NoEvidence) and error.capture is not None:
                self._used[url] = error.capture
            raise
        self._used[url] = evidence.capture
        self._kept.put(url, evidence, evidence.size)
        return evidence

    async def _find(self, url: str) -> Evidence:
        stored = None if self._cache is None else await asyncio.to_thread(self._read_cache, url)
        if stored is None:
            return await self._from_web(url)
        if stored.damage is not None:
            try:
                return await self._from_web(url)
            except CacheError as error:
                raise stored.damage from error
        return await self._from_cache(url, stored)

    def _read_cache(self, url: str) -> StoredPage | None:
        try:
            with foreign_object(_cache_failed, passing=(KeyError, UnicodeDecodeError, NoEvidence)):
                return self._look_up(url)
        except KeyError:
            return None
        except UnicodeDecodeError as error:
            detail = f"the stored text is not UTF-8: {error}"
            raise NoEvidence(url, CaptureOutcome.DAMAGED, detail, gone=False, capture=None) from error

    def _look_up(self, url: str) -> StoredPage | None:
        """Return the page of a URL.

        Raises:
            NoEvidence: a failure of the URL is recorded. It is not requested again.
        """
        stored = read_page(self._cache, url)
        record = self._cache.failure(url) if stored is None and hasattr(self._cache, "failure") else None
        if record is not None:
            raise _recorded_failure(url, record)
        return stored

    async def _from_cache(self, url: str, stored: StoredPage) -> Evidence:
        metadata = stored.metadata
        at = NOT_KNOWN if metadata is None else datetime.fromisoformat(metadata.captured_at)
        capture = _capture_of(url, observation_of(url, stored, at, metadata))
        if stored.kind is PageKind.WEB:
            shots = () if stored.body is None else (stored.body,)
            return await self._evidence(capture, stored.text, shots, known=stored)
        try:
            pdf = await external_services().read_document(
                stored.body or b"", "application/pdf", deadline_s=PDF_DEADLINE_S
            )
        except DocumentRejected as error:
            raise NoEvidence(url, error.outcome, str(error), gone=False, capture=capture) from error
        return await asyncio.to_thread(self._build_evidence, capture, pdf.text, pdf.screenshots)

    async def _from_web(self, url: str) -> Evidence:
        address = address_of(url)
        if address is None:
            raise NoEvidence(url, CaptureOutcome.UNSUPPORTED, "this is not a web address", gone=True, capture=None)
        return await self._look(url, address)

    @abstractmethod
    async def _look(self, url: str, address: str) -> Evidence:
        """Capture a page that the cache does not have. ``address`` is ``url`` with a scheme."""

    def _shown_screenshots(self, shots: Sequence[bytes], kind: PageKind) -> tuple[bytes, ...]:
        """Return the images to show: the pages of a PDF, or the parts of any other screenshot."""
        limits = self._limits()
        if kind is not PageKind.PDF:
            if self._part_files is None or len(shots) != 1:
                return screenshot_parts(shots, limits)
            return self._part_files.parts(shots[0], limits)
        scaled = (scaled_image(shot, limits) for shot in shots)
        return tuple(shot for shot in scaled if shot is not None)

    def _limits(self) -> ScreenshotLimits:
        config = self._config
        return ScreenshotLimits(
            max_width=config.image_max_width,
            part_height=config.image_part_height,
            part_overlap=config.image_part_overlap,
            max_parts=config.image_max_parts,
            jpeg_quality=config.jpeg_quality,
        )

    def _shown_text(self, text: str) -> str:
        """Raises HarnessError: the tokenizer cannot be used."""
        return truncate_to_tokens(text, self._config.max_text_tokens)

    async def _evidence(
        self,
        capture: Capture,
        text: str,
        shots: Sequence[bytes],
        links: tuple[tuple[str, str], ...] = (),
        known: StoredPage | None = None,
    ) -> Evidence:
        shown = await run_image_job(self._shown_screenshots, shots, capture.kind)
        return await asyncio.to_thread(self._build_evidence, capture, text, shown, links, known)

    def _build_evidence(
        self,
        capture: Capture,
        text: str,
        shots: tuple[bytes, ...],
        links: tuple[tuple[str, str], ...] = (),
        known: StoredPage | None = None,
    ) -> Evidence:
        visible_text = self._shown_text(text)
        digests = _digests(visible_text, shots, known)
        whole = digests[0] if visible_text is text else _sha256(text.encode("utf-8", errors="replace"))
        body = Blob(sha256=whole, size=len(text), media_type="text/plain; charset=utf-8")
        capture = replace(capture, blobs={"text": body})
        return Evidence(capture=capture, text=visible_text, links=links, screenshots=shots, digests=digests)


class CachedPages(StoredPages):
    """Pages of a cache that is filled from the live web."""

    def __init__(
        self,
        cache: Any,
        live: LivePages,
        *,
        capture_slot: Callable[[], AbstractAsyncContextManager[Any]],
        config: EvaluatorConfig,
        before_load: Callable[[], None] = lambda: None,
    ) -> None:
        """``capture_slot`` is held during each capture. ``before_load`` is called before each load and may raise."""
        super().__init__(cache, config=config)
        self._before_load = before_load
        self._live = live
        self._capture_slot = capture_slot

    async def _find(self, url: str) -> Evidence:
        self._before_load()
        return await super()._find(url)

    async def _look(self, url: str, address: str) -> Evidence:
        async with self._capture_slot():
            self._before_load()
            try:
                seen = await self._live.observe(address)
            except (BrowserUnavailable, SandboxUnavailable) as error:
                raise HarnessError(f"The browser cannot be used: {error}") from error
        problem = capture_problem(seen)
        if problem is not None and seen.is_evidence:
            outcome = CaptureOutcome.BLOCKED if problem.blocked else CaptureOutcome.HTTP_ERROR
            seen = replace(seen, outcome=outcome, detail=problem.reason)
        capture = _capture_of(url, seen)
        if problem is not None:
            raise NoEvidence(url, seen.outcome, seen.detail, gone=seen.gone, capture=capture)
        if self._cache is not None:
            await asyncio.to_thread(self._store, url, seen)
        return await self._evidence(capture, seen.text, seen.screenshots, seen.links)

    def _store(self, url: str, seen: Observation) -> None:
        with foreign_object(_cache_failed):
            store_observation(self._cache, url, seen)


def _cache_failed(error: Exception) -> HarnessError:
    return HarnessError(f"The page cache cannot be used: {type(error).__name__}: {error}")


def _part_files(cache: Any) -> PartFiles | None:
    """Return the files for the parts of a cache's screenshots; None if the cache is not a folder."""
    folder = getattr(cache, "task_dir", None)
    return PartFiles(Path(folder) / PARTS_FOLDER) if isinstance(folder, str | Path) else None


def store_observation(cache: Any, url: str, seen: Observation) -> None:
    """Store an observation in a cache of the public layout, with its metadata if the cache accepts them."""
    known = {"capture": seen} if hasattr(cache, "metadata") else {}
    if seen.pdf is not None:
        cache.put_pdf(url, seen.pdf, **known)
    else:
        cache.put_web(url, seen.text, join_tiles(seen.screenshots), **known)


def read_page(cache: Any, url: str) -> StoredPage | None:
    """Return the stored page of a URL, with ``damage`` if its bytes differ from the stored digests; None without one.

    Pages without metadata are not checked. Raises KeyError if the files of the page are missing.
    """
    kind = cache.has(url)
    metadata = cache.metadata(url) if hasattr(cache, "metadata") else None
    if kind == "web":
        text, screenshot = cache.get_web(url)
        return _checked(StoredPage(kind=PageKind.WEB, text=text, body=screenshot, metadata=metadata))
    if kind == "pdf":
        return _checked(StoredPage(kind=PageKind.PDF, text="", body=cache.get_pdf(url), metadata=metadata))
    return None


def observation_of(url: str, stored: StoredPage, captured_at: datetime, metadata: PageMetadata | None) -> Observation:
    """Return a stored page as an observation without bodies."""
    return Observation(
        url=url,
        outcome=CaptureOutcome.OK,
        captured_at=captured_at,
        duration_s=0.0,
        backend=BACKEND,
        final_url=None if metadata is None else metadata.final_url,
        http_status=None if metadata is None else metadata.status,
        kind=stored.kind,
        text=stored.text,
        headers={} if metadata is None else metadata.headers,
    )


def _recorded_failure(url: str, record: Mapping[str, Any]) -> NoEvidence:
    """Return a recorded failure as an error. The reason starts with the outcome if this program recorded it."""
    reason = str(record.get("reason", ""))
    name, _, detail = reason.partition(": ")
    blocked = record.get("blocked") is True
    try:
        outcome = CaptureOutcome(name)
    except ValueError:
        fault = CaptureOutcome.HTTP_ERROR if reason.startswith("HTTP") else CaptureOutcome.CONNECT_ERROR
        outcome, detail = CaptureOutcome.BLOCKED if blocked else fault, reason
    detail = f"{detail}; recorded {record.get('time')}, not requested again"
    return NoEvidence(url, outcome, detail, gone=record.get("gone") is True, capture=None)


def _capture_of(url: str, seen: Observation) -> Capture:
    return Capture(
        id=file_stems(storage_key(url))[0],
        url=url,
        key=canonical_key(url),
        outcome=seen.outcome,
        captured_at=seen.captured_at,
        duration_s=seen.duration_s,
        backend=seen.backend,
        detail=seen.detail,
        final_url=seen.final_url,
        http_status=seen.http_status,
        kind=seen.kind,
        title=seen.title,
        chain=seen.chain,
        headers=seen.headers,
        versions=seen.versions,
        gone=seen.gone,
    )


def _digests(text: str, shots: tuple[bytes, ...], known: StoredPage | None) -> tuple[str, ...]:
    """Return the SHA-256 (hex) of the text and of each screenshot. Known digests are not recomputed."""

    def of(shot: bytes) -> str:
        is_known = known is not None and shot is known.body
        return (known.body_sha256 if known is not None and is_known else "") or _sha256(shot)

    return (_sha256(text.encode("utf-8", errors="replace")), *map(of, shots))


def _checked(stored: StoredPage) -> StoredPage:
    """Return the entry with ``damage`` set if its bytes differ from the stored digests."""
    known: Mapping[str, str] = {} if stored.metadata is None else stored.metadata.sha256
    is_page = stored.kind is PageKind.WEB
    body_sha256 = _sha256(stored.body or b"") if ("jpg" if is_page else "pdf") in known else ""
    files = {"jpg" if is_page else "pdf": body_sha256}
    if is_page and "txt" in known:
        files["txt"] = _sha256(stored.text.encode("utf-8", errors="replace"))
    changed = next((suffix for suffix, sha256 in files.items() if known.get(suffix, sha256) != sha256), None)
    damage = None if changed is None else BlobCorrupt(known[changed], f"the stored {changed} has changed")
    return replace(stored, damage=damage, body_sha256=body_sha256)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
