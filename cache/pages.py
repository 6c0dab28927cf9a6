"""Page cache: looks up captures, captures missing pages once, and loads evidence for judges.

Evidence does not change while an answer is judged: bodies are verified against their hashes when loaded, and all
claims and votes get the same objects.

Bodies are stored first, then the record, then the index entry. A crash can therefore leave unreferenced bodies or
records, but never an index entry without its bodies.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol
from uuid import uuid4

import structlog

from cache.blobs import BlobStore, Bodies, RecordOf
from cache.capture import (
    PART_PREFIX,
    SCREENSHOT_PREFIX,
    Blob,
    Capture,
    CaptureOutcome,
    Capturer,
    CaptureSource,
    Evidence,
    Observation,
    PageKind,
    Renderer,
)
from cache.capture_index import CaptureIndex, capture_to_bytes
from cache.errors import BlobCorrupt, BlobMissing, BrowserUnavailable, CacheError, NoEvidence
from cache.image_jobs import run_image_job
from cache.pacing import Askers, SlowHosts
from cache.page_text.screenshot_parts import screenshot_parts
from cache.single_flight import LRUCache, SingleFlight
from cache.urls import canonical_key, unfetchable_reason


class CaptureRecorder:
    """Stores observations as captures. Stored data is never changed."""

    def __init__(self, blobs: BlobStore, index: CaptureIndex, new_id: Callable[[], str]) -> None:
        self._blobs = blobs
        self._index = index
        self._new_id = new_id

    async def store(
        self,
        url: str,
        key: str,
        observation: Observation,
        *,
        owner: str | None = None,
        with_parts: bool = True,
        synced: bool = True,
    ) -> Capture:
        """Store an observation of ``url`` and return its capture. For ``owner``, see ``Capture``.

        ``with_parts``: also prepare and store the parts that models are shown of its screenshots. ``synced``: wait
        until the bodies and the record are on disk.

        Raises:
            BlobStoreFailed, IndexFailed: the capture cannot be stored.
        """
        bodies = _bodies_to_store(observation)
        if with_parts and observation.is_evidence and observation.kind is not PageKind.PDF:
            bodies |= await _parts_to_store(observation.screenshots)
        capture = _capture_of(observation, id=self._new_id(), url=url, key=key, owner=owner)
        capture = await self._store(capture, bodies, synced=synced)
        _log_captured(capture)
        return capture

    async def store_imports(self, urls: Sequence[str], read: Callable[[str], Observation | None]) -> dict[str, Capture]:
        """Store imported pages without their parts, see ``PageCache.add_imports``."""
        ids = {url: self._new_id() for url in urls}  # not in the thread that reads the pages
        stored: dict[str, Capture] = {}

        def captures() -> Iterator[tuple[Bodies, RecordOf]]:
            for url in urls:
                if (observation := read(url)) is not None:
                    capture = _capture_of(observation, id=ids[url], url=url, key=canonical_key(url))
                    yield _bodies_to_store(observation), partial(record, capture)

        def record(capture: Capture, blobs: Mapping[str, Blob]) -> tuple[str, bytes]:
            stored[capture.url] = replace(capture, blobs=blobs)
            return capture.id, capture_to_bytes(stored[capture.url])

        await self._blobs.put_many(captures(), synced=False)
        await self._index.record(*stored.values(), synced=False)
        for capture in stored.values():
            _log_captured(capture)
        return stored

    async def store_with_parts(
        self, capture: Capture, screenshots: Sequence[bytes]
    ) -> tuple[Capture, dict[str, bytes]]:
        """Store another capture of the same observation, with the parts of its ``screenshots``. Return both by name.

        The capture itself is not changed, because results refer to its bodies. It is returned if it needs no parts.
        Parts are not synced: those that a crash of the machine loses are prepared again.

        Raises:
            BlobStoreFailed, IndexFailed: the capture cannot be stored.
        """
        parts = await _parts_to_store(screenshots)
        if not parts:
            return capture, {}
        prepared = await self._store(replace(capture, id=self._new_id()), parts, synced=False)
        _log.info("screenshots prepared", url=capture.url, page_id=prepared.id, prepared_from=capture.id)
        return prepared, {name: part for name, (part, _) in parts.items()}

    async def store_alias(
        self,
        url: str,
        key: str,
        target: Capture,
        *,
        provenance: Mapping[str, str] | None = None,
        owner: str | None = None,
    ) -> Capture:
        """Store a capture of another URL for ``url`` as an alias.

        ``provenance``: set if a person chose the alias; None if the other URL has the same final URL.
        ``owner``: owner of the alias; an alias of an owner's capture always has this owner.

        Raises:
            BlobStoreFailed, IndexFailed: the alias cannot be stored.
        """
        capture = replace(
            target,
            id=self._new_id(),
            url=url,
            key=key,
            alias_of=target.alias_of or target.id,
            owner=target.owner or owner,
        )
        if provenance is not None:
            capture = replace(capture, provenance={**target.provenance, **provenance})
        await self._store(capture, {})
        _log.info("page stored as alias", url=url, page_id=capture.id, alias_of=capture.alias_of, cited_as=target.url)
        return capture

    async def _store(self, capture: Capture, bodies: Bodies, *, synced: bool = True) -> Capture:
        """Store a capture with further bodies. Return it with all of them."""

        def with_bodies(blobs: Mapping[str, Blob]) -> Capture:
            return replace(capture, blobs={**capture.blobs, **blobs})

        def record(blobs: Mapping[str, Blob]) -> tuple[str, bytes]:
            return capture.id, capture_to_bytes(with_bodies(blobs))

        blobs = await self._blobs.put_all(bodies, record, synced=synced)
        stored = with_bodies(blobs)
        await self._index.record(stored, synced=synced)
        return stored


def _capture_of(observation: Observation, *, id: str, url: str, key: str, owner: str | None = None) -> Capture:
    """Return the capture of an observation, without its bodies."""
    return Capture(
        id=id,
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
        hidden_words=observation.hidden_words,
        gone=observation.gone,
        source=observation.source,
        provenance=observation.provenance,
        owner=owner,
    )


def _log_captured(capture: Capture) -> None:
    _log.info(
        "page captured",
        url=capture.url,
        outcome=capture.outcome.value,
        http_status=capture.http_status,
        seconds=round(capture.duration_s, 3),
        page_id=capture.id,
        source=capture.source.value,
    )


async def _parts_to_store(screenshots: Sequence[bytes]) -> dict[str, tuple[bytes, str]]:
    """Return the parts of a page; none if its screenshots are shown unchanged or cannot be decoded."""
    parts = await run_image_job(screenshot_parts, screenshots) if screenshots else ()
    if parts == tuple(screenshots):
        return {}
    return {f"{PART_PREFIX}{number}": (part, "image/jpeg") for number, part in enumerate(parts)}


def _bodies_to_store(observation: Observation) -> dict[str, tuple[bytes, str]]:
    """Return the bodies to store, by name, with their media types."""
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
        bodies[f"{SCREENSHOT_PREFIX}{number}"] = (shot, "image/jpeg")
    return bodies


def _utf8(text: str) -> bytes:
    """Encode as UTF-8. Lone surrogates, which pages can contain, are replaced."""
    return text.encode("utf-8", errors="replace")


_log = structlog.get_logger(__name__)

FAILURE_TTL = timedelta(seconds=60)
EVIDENCE_CACHE_BYTES = 8 * 1024 * 1024
_KEPT_LOOKUPS = 4096


def utc_now() -> datetime:
    return datetime.now(UTC)


def new_page_id() -> str:
    return uuid4().hex


class CaptureLocks(Protocol):
    """Lock per page, so that only one process captures it. The lock of a process that was killed expires."""

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Acquire the lock for ``key``. Raises IndexFailed if the lock state is unavailable."""


class NoCaptureLocks:
    """CaptureLocks without locking, for an index that no other process shares."""

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        yield


class Archive(Protocol):
    """Archive with older copies of pages that are no longer available."""

    async def find_copy(self, url: str, live: Observation, near: datetime | None) -> Observation:
        """Return the copy closest to ``near``, or ``live`` with added details if there is none."""


class PageCache:
    """Captures by URL. Use one instance per process. ``aclose`` cancels running captures and closes the capturer."""

    def __init__(
        self,
        capturer: Capturer,
        blobs: BlobStore,
        index: CaptureIndex,
        *,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], str] = new_page_id,
        keeps_failures: bool = False,
        max_age_s: float | None = None,
        locks: CaptureLocks | None = None,
        archive: Archive | None = None,
        slow_hosts: SlowHosts | None = None,
        renderer: Renderer | None = None,
    ) -> None:
        """Create a page cache.

        Args:
            capturer: Captures missing pages. It is closed with the cache.
            blobs: Store of the bodies.
            index: Index of the captures.
            clock: Returns the current time.
            new_id: Returns a new capture id.
            keeps_failures: Whether failed attempts of any age are reused. By default, they are reused for
                ``FAILURE_TTL``, and only by the instance that existed then.
            max_age_s: Maximum age of reused evidence in seconds (None: unlimited).
            locks: Capture locks, shared by all processes that use the index.
            archive: Searched if a page cannot be captured and has no stored evidence.
            slow_hosts: Record of hosts that timed out.
            renderer: Renders supplied HTML. Without one, its text is read as it is.
        """
        self._capturer = capturer
        self._blobs = blobs
        self._index = index
        self._clock = clock
        self._recorder = CaptureRecorder(blobs, index, new_id)
        self._locks = locks or NoCaptureLocks()
        self._archive = archive
        self._renderer = renderer
        self.slow_hosts = slow_hosts or SlowHosts()
        """Hosts that timed out in captures of this instance."""
        self._askers = Askers()
        self._keeps_failures = keeps_failures
        self._max_age = None if max_age_s is None else timedelta(seconds=max_age_s)
        self._lookups: SingleFlight[tuple[str, bool, str | None], Capture] = SingleFlight()
        self._captures: SingleFlight[tuple[str, str | None], Capture] = SingleFlight()
        self._loads: SingleFlight[str, Evidence] = SingleFlight()
        self._evidence_cache: LRUCache[str, Evidence] = LRUCache(EVIDENCE_CACHE_BYTES)
        self._found: LRUCache[tuple[str, str | None], tuple[float, Capture]] = LRUCache(_KEPT_LOOKUPS)
        """Captures that were looked up last, with the time (monotonic) of the lookup. Each counts as one byte."""
        self._opened_at = clock()

    async def get(
        self,
        url: str,
        *,
        refresh: bool = False,
        near: datetime | None = None,
        owner: str | None = None,
        lookup_age_s: float = 0.0,
    ) -> Capture:
        """Return the capture of a page: a stored one or a new one. ``refresh`` always makes a new one.

        ``near``: time of the citation, to choose among several copies in the archive. ``owner``: owner of the answers,
        whose own captures are found, too. A new capture is used for all owners, unless this owner replaces a capture
        that the others keep. ``lookup_age_s``: use evidence that this process looked up at most so many seconds ago,
        although it may have been replaced or excluded since.

        Raises:
            BlobStoreFailed, IndexFailed: the capture cannot be stored.
            BrowserUnavailable: this machine has no usable browser.
            CacheError: this machine lacks another resource, for example space for temporary files.
        """
        key = canonical_key(url)
        if refresh:
            self._found.clear()
        known = self._found.get((key, owner)) if lookup_age_s and not refresh else None
        if known is not None and time.monotonic() - known[0] < lookup_age_s:
            return known[1]
        with self._askers.waiting(key):
            capture = await self._lookups.run(
                (key, refresh, owner), lambda: self._find_or_capture(url, key, near, owner, refresh=refresh)
            )
        if lookup_age_s and capture.is_evidence:
            self._found.put((key, owner), (time.monotonic(), capture), 1)
        return capture

    async def add(
        self,
        url: str,
        observation: Observation,
        *,
        owner: str | None = None,
        key: str | None = None,
        with_parts: bool = True,
        synced: bool = True,
    ) -> Capture:
        """Store an observation from another source, for example an upload. If it is evidence, later lookups return it.

        ``key``: key to store it under, instead of that of ``url``. Lookups of the URL then do not return it.
        ``owner``: only lookups for this owner return it. Without ``with_parts``, the parts of an import's screenshots
        are prepared when it is first used. Without ``synced``, a crash of the machine may lose it.

        Raises:
            BlobStoreFailed, IndexFailed: the capture cannot be stored.
        """
        self._found.clear()
        key = key or canonical_key(url)
        return await self._recorder.store(url, key, observation, owner=owner, with_parts=with_parts, synced=synced)

    async def add_imports(
        self, urls: Sequence[str], read: Callable[[str], Observation | None]
    ) -> Mapping[str, Capture]:
        """Store imported pages and return their captures by URL. A crash of the machine may lose them.

        ``read`` is called in a thread with one URL after the other, and returns None for a page that is not stored. The
        parts of screenshots are prepared when they are first used.

        Raises:
            BlobStoreFailed, IndexFailed: a capture cannot be stored.
        """
        self._found.clear()
        return await self._recorder.store_imports(urls, read)

    async def add_alias(
        self, url: str, target: Capture, provenance: Mapping[str, str], *, owner: str | None = None
    ) -> Capture:
        """Store an alias: use the capture ``target`` for ``url`` because a person said so (see ``provenance``).

        Raises:
            BlobStoreFailed, IndexFailed: the alias cannot be stored.
        """
        self._found.clear()
        return await self._recorder.store_alias(url, canonical_key(url), target, provenance=provenance, owner=owner)

    async def evidence(self, capture: Capture) -> Evidence:
        """Return the evidence of a capture, or of another capture of the same observation with parts (``add``).

        Raises:
            NoEvidence: the capture is not evidence.
            BlobMissing, BlobCorrupt, BlobStoreFailed: its bodies cannot be read.
        """
        if not capture.is_evidence:
            raise NoEvidence(capture.url, capture.outcome, capture.detail, gone=capture.gone, capture=capture)
        cached = self._evidence_cache.get(capture.id)
        return cached if cached is not None else await self._loads.run(capture.id, lambda: self._load(capture))

    async def evidence_for(self, url: str, *, near: datetime | None = None, owner: str | None = None) -> Evidence:
        """Return the evidence of a page. Capture it again if the stored bodies are damaged. For options, see ``get``.

        Raises:
            NoEvidence: there is none; carries the outcome and whether the page is known to be gone.
            CacheError: a failure of this service.
        """
        stored = await self.get(url, near=near, owner=owner)
        try:
            return await self.evidence(stored)
        except (BlobMissing, BlobCorrupt) as damage:
            _log.warning("evidence damaged", url=url, sha256=damage.sha256, page_id=stored.id)
        recaptured = await self._recapture(url, near, stored.owner)
        try:
            return await self.evidence(recaptured)
        except (BlobMissing, BlobCorrupt, NoEvidence) as failed:
            # The page existed and the stored copy was lost, so ``gone`` must be False: it is a fault, not a finding.
            detail = f"the stored copy is damaged, and a new capture ended with {recaptured.outcome.value}"
            raise NoEvidence(url, CaptureOutcome.CORRUPT, detail, gone=False, capture=stored) from failed

    async def rendered(self, supplied: Capture) -> Capture:
        """Return a capture of the rendered HTML of a supplied page, from the first call on always the same.

        It is the capture itself if it has no HTML, there is no browser, or nothing is visible without a network.

        Raises:
            BlobError, IndexFailed: a failure of this service.
        """
        html = supplied.blobs.get("html")
        if html is None or self._renderer is None or supplied.screenshot_names:
            return supplied
        key = f"rendered:{html.sha256}:{canonical_key(supplied.url)}"
        known = await self._index.find(key, supplied.owner)
        if known is not None and known.is_evidence and known.owner == supplied.owner:
            return known
        [body] = await self._blobs.get_all([html.sha256])
        try:
            seen = await self._renderer.render(supplied.url, body)
        except BrowserUnavailable as error:
            _log.warning("supplied page not rendered", url=supplied.url, detail=str(error))
            return supplied
        if not seen.is_evidence:
            return supplied
        seen = replace(
            seen,
            html=body,
            title=supplied.title or seen.title,
            final_url=None,
            chain=(),
            http_status=None,
            headers={},
            source=supplied.source,
            provenance=supplied.provenance,
        )
        return await self._recorder.store(supplied.url, key, seen, owner=supplied.owner, synced=False)

    async def stored(self, url: str, *, owner: str | None = None) -> Capture | None:
        """Return the stored capture of a page, of any age and outcome, or None. Captures nothing.

        Raises:
            IndexFailed, BlobStoreFailed: a failure of this service.
        """
        key = canonical_key(url)
        capture = await self._index.find(key, owner)
        if capture is None or capture.key == key:
            return capture
        return await self._recorder.store_alias(url, key, capture)

    async def stored_evidence_for(self, url: str, *, owner: str | None = None) -> Evidence:
        """Return the stored evidence of a page. Captures nothing.

        Raises:
            NoEvidence: there is none; carries the outcome of the stored capture, or ``NOT_STORED`` without one.
            IndexFailed, BlobStoreFailed: a failure of this service.
        """
        capture = await self.stored(url, owner=owner)
        if capture is None:
            detail = "this run captures no pages"
            raise NoEvidence(url, CaptureOutcome.NOT_STORED, detail, gone=False, capture=None)
        try:
            return await self.evidence(capture)
        except (BlobMissing, BlobCorrupt) as damage:
            detail = "the stored copy is damaged, and this run captures no pages"
            raise NoEvidence(url, CaptureOutcome.CORRUPT, detail, gone=False, capture=capture) from damage

    async def _recapture(self, url: str, near: datetime | None, owner: str | None) -> Capture:
        """Return a new capture, or a recent failure, so that not every claim on the page waits for the next failure."""
        newest = await self._index.newest(canonical_key(url), owner)
        if newest is not None and not newest.is_evidence and self._is_fresh(newest):
            return newest
        return await self.get(url, refresh=True, near=near, owner=owner)

    async def aclose(self) -> None:
        closing = [asyncio.create_task(each.aclose()) for each in (self._lookups, self._captures, self._loads)]
        await asyncio.sleep(0)  # let the cancellation start
        # Close the browsers while captures are still unwinding. Otherwise each capture waits until its page is closed.
        try:
            await self._capturer.aclose()
        finally:
            await asyncio.gather(*closing)

    async def _find_or_capture(
        self, url: str, key: str, near: datetime | None, owner: str | None, *, refresh: bool
    ) -> Capture:
        before = await self._index.newest(key, owner) if refresh else None
        if not refresh and (known := await self._find_reusable(url, key, owner)) is not None:
            return known
        new_owner = owner if refresh else await self._owner_of_new(key, owner)

        async def with_lock() -> Capture:
            async with self._locks.lock(key):
                # Another process may have captured the page while this one waited for the lock.
                if refresh:
                    known = await self._find_newer(before, key, owner)
                else:
                    known = await self._find_reusable(url, key, new_owner)
                return known if known is not None else await self._capture(url, key, near, new_owner)

        return await self._captures.run((key, new_owner), with_lock)

    async def _owner_of_new(self, key: str, owner: str | None) -> str | None:
        """Return the owner of a capture that replaces one without a request to capture the page again.

        It is shared, unless it replaces a capture of the owner, or one that the owner deleted and all others use.
        """
        if owner is None:
            return None
        own, shared = await self._index.find(key, owner), await self._index.find(key)
        if own is not None and own.is_evidence and own.owner == owner:
            return owner
        return owner if shared is not None and shared.is_evidence and self._is_fresh(shared) else None

    async def _find_reusable(self, url: str, key: str, owner: str | None) -> Capture | None:
        """Return the stored capture to reuse, or None if a new capture is needed."""
        capture = await self._index.find(key, owner)
        if capture is None:
            return None
        if self._is_fresh(capture):
            return capture if capture.key == key else await self._recorder.store_alias(url, key, capture)
        newest = await self._index.newest(key, owner)
        return newest if newest is not None and not newest.is_evidence and self._is_fresh(newest) else None

    async def _find_newer(self, before: Capture | None, key: str, owner: str | None) -> Capture | None:
        newest = await self._index.newest(key, owner)
        is_new = newest is not None and newest.owner == owner and (before is None or newest.id != before.id)
        return newest if is_new else None

    def _is_fresh(self, known: Capture) -> bool:
        age = self._clock() - known.captured_at
        if known.is_evidence:
            return self._max_age is None or age <= self._max_age
        # A run after a failed one opens the pages again: a person has repaired something in between.
        return self._keeps_failures or (known.captured_at >= self._opened_at and age <= FAILURE_TTL)

    async def _capture(self, url: str, key: str, near: datetime | None, owner: str | None) -> Capture:
        try:
            return await self._captured(url, key, near, owner)
        except OSError as fault:  # a full disk, too many open files: a failure of this service, not of the page
            raise CacheError(f"{url} could not be captured: {fault}") from fault

    async def _captured(self, url: str, key: str, near: datetime | None, owner: str | None) -> Capture:
        observation = await self._observe(url)
        capture = await self._recorder.store(url, key, observation, owner=owner)
        if self._archive is None or capture.is_evidence:
            return capture
        stored = await self._index.find(key, owner)
        if stored is not None and stored.is_evidence:
            return capture  # stored evidence from the page's own server has precedence over an archive
        copy = await self._archive.find_copy(url.strip(), observation, near)
        return capture if copy is observation else await self._recorder.store(url, key, copy, owner=owner)

    async def _observe(self, url: str) -> Observation:
        refusal = unfetchable_reason(url)
        if refusal is None:
            seen = await self._capturer.capture(url.strip())
            self.slow_hosts.record(seen)
            return seen
        return Observation(
            url=url,
            outcome=CaptureOutcome.UNSUPPORTED,
            captured_at=self._clock(),
            duration_s=0.0,
            backend="none",
            detail=refusal,
        )

    async def _load(self, imported: Capture) -> Evidence:
        capture, read = await self._with_parts(imported)
        if capture is not imported and (cached := self._evidence_cache.get(capture.id)) is not None:
            return cached
        try:
            evidence = await self._read(capture, read)
        except (BlobMissing, BlobCorrupt):
            if capture.source is not CaptureSource.IMPORT or not capture.part_names:
                raise
            evidence = await self._read(*await self._prepare_parts(capture))
        self._evidence_cache.put(evidence.page_id, evidence, evidence.size)
        return evidence

    async def _read(self, capture: Capture, read: Mapping[str, bytes]) -> Evidence:
        """Return the evidence of a capture. ``read``: bodies that are in memory, by name."""
        shots = capture.part_names or capture.screenshot_names
        names = _in_blobs(capture, *_TEXTS, *shots)
        # The hidden text of web pages mostly repeats visible text. Only that of PDFs is useful for a judge.
        hidden = _in_blobs(capture, "hidden_text") if capture.kind is PageKind.PDF else []
        unread = [name for name in (*names, *hidden) if name not in read]
        bodies = {**read, **(await self._bodies(capture, unread) if unread else {})}
        return Evidence(
            capture=capture,
            text=bodies.get("text", b"").decode("utf-8"),
            links=tuple((label, target) for label, target in json.loads(bodies.get("links") or b"[]")),
            screenshots=tuple(bodies[name] for name in shots),
            digests=tuple(capture.blobs[name].sha256 for name in names),
            hidden_text=bodies.get("hidden_text", b"").decode("utf-8"),
            in_parts=bool(capture.part_names),
        )

    async def _with_parts(self, capture: Capture) -> tuple[Capture, Mapping[str, bytes]]:
        """Return a capture of the same observation with parts, if the capture is an import that needs them.

        Also return the bodies that are in memory, by name.
        """
        if capture.source is not CaptureSource.IMPORT or capture.kind is PageKind.PDF or not capture.screenshot_names:
            return capture, {}
        known = capture if capture.part_names else await self._index.find(capture.key, capture.owner)
        if known is not None and known.part_names and capture.blobs.items() <= known.blobs.items():
            return known, {}
        return await self._prepare_parts(capture)

    async def _prepare_parts(self, capture: Capture) -> tuple[Capture, Mapping[str, bytes]]:
        """Prepare the parts of an import, or those that were lost. Return the same as ``_with_parts``."""
        shots = capture.screenshot_names
        bodies = await self._bodies(capture, _in_blobs(capture, *_TEXTS, *shots))
        prepared, parts = await self._recorder.store_with_parts(capture, [bodies[name] for name in shots])
        return prepared, {**bodies, **parts}

    async def _bodies(self, capture: Capture, names: Sequence[str]) -> dict[str, bytes]:
        bodies = await self._blobs.get_all([capture.blobs[name].sha256 for name in names])
        return dict(zip(names, bodies, strict=True))


_TEXTS: Final = ("text", "links")
"""Names of the bodies that are read besides the screenshots."""


def _in_blobs(capture: Capture, *names: str) -> list[str]:
    """Return those names that are names of stored bodies of the capture."""
    return [name for name in names if name in capture.blobs]
