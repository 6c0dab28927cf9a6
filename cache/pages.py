"""The page cache: look up, else capture once for everybody who asks, store, and prepare what judges are shown.

Evidence never changes under a judge: the bytes prepared for a capture are hash-checked when loaded and the
same objects are handed to every claim and vote.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import structlog

from cache.blobs import BlobStore
from cache.capture import Blob, Capture, CaptureOutcome, Capturer, Observation, PageKind
from cache.errors import BlobCorrupt, BlobMissing, NoEvidence
from cache.evidence import Evidence
from cache.recent import Recent
from cache.single_flight import SingleFlight
from cache.store import CaptureIndex
from cache.urls import canonical_key, why_unfetchable

_log = structlog.get_logger(__name__)

SCREENSHOT_ROLE = "screenshot-"
FAILURE_TTL_S = 60.0
PREPARED_BYTES = 32 * 1024 * 1024


def utc_now() -> datetime:
    return datetime.now(UTC)


def new_page_id() -> str:
    return uuid4().hex


class PageCache:
    """Captures by URL. One instance serves a whole process; ``aclose`` ends what runs and the capturer with it."""

    def __init__(
        self,
        capturer: Capturer,
        blobs: BlobStore,
        index: CaptureIndex,
        *,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], str] = new_page_id,
        failure_ttl_s: float = FAILURE_TTL_S,
        max_age_s: float | None = None,
        prepared_bytes: int = PREPARED_BYTES,
    ) -> None:
        """``failure_ttl_s``: how long a failed attempt answers for its page. ``max_age_s``: how old evidence may be
        (None: any age). ``prepared_bytes``: how much evidence is kept ready in memory."""
        self._capturer = capturer
        self._blobs = blobs
        self._index = index
        self._clock = clock
        self._new_id = new_id
        self._failure_ttl = timedelta(seconds=failure_ttl_s)
        self._max_age = None if max_age_s is None else timedelta(seconds=max_age_s)
        self._lookups: SingleFlight[tuple[str, bool], Capture] = SingleFlight()
        self._captures: SingleFlight[str, Capture] = SingleFlight()
        self._loads: SingleFlight[str, Evidence] = SingleFlight()
        self._prepared: Recent[str, Evidence] = Recent(prepared_bytes)

    async def get(self, url: str, *, refresh: bool = False) -> Capture:
        """The capture of a page: a stored one, or a new one made now. ``refresh`` always makes a new one.

        Raises:
            BlobStoreFailed, IndexFailed: the capture cannot be kept.
            BrowserUnavailable: nothing can be captured on this machine.
        """
        key = canonical_key(url)
        return await self._lookups.run((key, refresh), lambda: self._find_or_capture(url, key, refresh=refresh))

    async def evidence(self, capture: Capture) -> Evidence:
        """What a judge is shown of a capture.

        Raises:
            NoEvidence: the attempt did not end in evidence.
            BlobMissing, BlobCorrupt, BlobStoreFailed: its bodies cannot be had.
        """
        if not capture.is_evidence:
            raise NoEvidence(capture.url, capture.outcome, capture.detail, gone=capture.gone, capture=capture)
        ready = self._prepared.get(capture.id)
        return ready if ready is not None else await self._loads.run(capture.id, lambda: self._load(capture))

    async def evidence_for(self, url: str) -> Evidence:
        """The evidence of a page, captured again when what was stored has gone bad.

        Raises:
            NoEvidence: there is none, with the outcome and whether the page is known to be gone.
            BlobStoreFailed, IndexFailed, BrowserUnavailable: we cannot find out.
        """
        try:
            return await self.evidence(await self.get(url))
        except (BlobMissing, BlobCorrupt) as damage:
            _log.warning("evidence_recaptured", url=url, sha256=damage.sha256)
        capture = await self.get(url, refresh=True)
        try:
            return await self.evidence(capture)
        except (BlobMissing, BlobCorrupt) as damage:
            raise NoEvidence(
                url, CaptureOutcome.DAMAGED, "the stored evidence is damaged", gone=False, capture=capture
            ) from damage

    async def aclose(self) -> None:
        for flight in (self._lookups, self._captures, self._loads):
            await flight.aclose()
        await self._capturer.aclose()

    async def _find_or_capture(self, url: str, key: str, *, refresh: bool) -> Capture:
        if not refresh:
            known = await self._index.find(key)
            if known is not None and self._still_answers(known):
                return known
        return await self._captures.run(key, lambda: self._capture(url, key))

    def _still_answers(self, known: Capture) -> bool:
        age = self._clock() - known.captured_at
        if known.is_evidence:
            return self._max_age is None or age <= self._max_age
        return age <= self._failure_ttl

    async def _capture(self, url: str, key: str) -> Capture:
        refusal = why_unfetchable(url)
        if refusal is None:
            seen = await self._capturer.capture(url.strip())
        else:
            seen = Observation(
                url=url,
                outcome=CaptureOutcome.UNSUPPORTED,
                captured_at=self._clock(),
                duration_s=0.0,
                backend="none",
                detail=refusal,
            )
        capture = await self._store(url, key, seen)
        await self._index.record(capture)
        _log.info(
            "page_captured",
            url=url,
            outcome=capture.outcome.value,
            http_status=capture.http_status,
            seconds=round(capture.duration_s, 3),
            page_id=capture.id,
        )
        return capture

    async def _store(self, url: str, key: str, seen: Observation) -> Capture:
        blobs: dict[str, Blob] = {}
        for role, (data, media_type) in _bodies(seen).items():
            blobs[role] = await self._blobs.put(data, media_type)
        return Capture(
            id=self._new_id(),
            url=url,
            key=key,
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
            blobs=blobs,
            gone=seen.gone,
        )

    async def _load(self, capture: Capture) -> Evidence:
        text = await self._body(capture, "text")
        links = await self._body(capture, "links")
        shots = sorted(
            (role for role in capture.blobs if role.startswith(SCREENSHOT_ROLE)),
            key=lambda role: int(role.removeprefix(SCREENSHOT_ROLE)),
        )
        roles = [role for role in ("text", "links", *shots) if role in capture.blobs]
        # Web pages repeat in hidden parts what they show; only a PDF's hidden text tells a judge anything.
        hidden = await self._body(capture, "hidden_text") if capture.kind is PageKind.PDF else b""
        evidence = Evidence(
            capture=capture,
            text=text.decode("utf-8"),
            links=tuple((label, target) for label, target in json.loads(links or b"[]")),
            screenshots=tuple([await self._body(capture, role) for role in shots]),
            digests=tuple(capture.blobs[role].sha256 for role in roles),
            hidden_text=hidden.decode("utf-8"),
        )
        self._prepared.put(evidence.page_id, evidence, evidence.size)
        return evidence

    async def _body(self, capture: Capture, role: str) -> bytes:
        blob = capture.blobs.get(role)
        return b"" if blob is None else await self._blobs.get(blob.sha256)


def _bodies(seen: Observation) -> dict[str, tuple[bytes, str]]:
    """What of an observation is kept, by role."""
    bodies: dict[str, tuple[bytes, str]] = {}
    if seen.text or seen.is_evidence:
        bodies["text"] = (_utf8(seen.text), "text/plain; charset=utf-8")
    if seen.hidden_text:
        bodies["hidden_text"] = (_utf8(seen.hidden_text), "text/plain; charset=utf-8")
    if seen.links:
        links = json.dumps([list(link) for link in seen.links], ensure_ascii=False)
        bodies["links"] = (_utf8(links), "application/json")
    if seen.html is not None:
        bodies["html"] = (seen.html, "text/html")
    if seen.pdf is not None:
        bodies["pdf"] = (seen.pdf, "application/pdf")
    for number, shot in enumerate(seen.screenshots):
        bodies[f"{SCREENSHOT_ROLE}{number}"] = (shot, "image/jpeg")
    return bodies


def _utf8(text: str) -> bytes:
    """Pages may hold lone surrogates, which have no UTF-8."""
    return text.encode("utf-8", errors="replace")
