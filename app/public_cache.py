"""The public toolkit's page-cache folders as a source and a copy of our evidence.

``bring_in`` makes captures of what such a folder holds, so that a page somebody captured before is judged as it was
then; ``keep`` writes our captures there for others to read.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.runtime import Runtime
from cache.backends.documents import read_document
from cache.capture import Capture, CaptureOutcome, Observation, PageKind
from cache.errors import CacheError, DocumentRejected
from cache.pages import SCREENSHOT_ROLE, PageCache
from cache.urls import canonical_key, is_fetchable
from judges.result_files import write_json
from mind2web2.screenshots import shown_jpeg
from mind2web2.utils.cache_filesys import CacheFileSys

BACKEND = "public-layout"
PDF_DEADLINE_S = 60.0


class PublicCache:
    """The folder ``<root>/<agent>/<task_id>`` of each task."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def evidence_folder(self, agent: str) -> Path:
        """Where our own record of the pages lies: beside the public folders, one for each agent."""
        return self._root / ".assay" / agent

    def evidence_folders(self) -> list[Path]:
        """The folders of every agent that has one, sorted."""
        return sorted(path for path in (self._root / ".assay").glob("*") if path.is_dir())

    async def bring_in(self, runtime: Runtime, agent: str, task_id: str, urls: Iterable[str]) -> int:
        """Make captures of stored pages, those of ``urls`` and any other there; returns how many were new or changed.

        A page that is damaged there is left to be captured from the web.

        Raises:
            CacheError: our own store cannot be written.
        """
        stored = await asyncio.to_thread(_open, self._root / agent / task_id)
        if stored is None:
            return 0
        pages = PageCache(
            _StoredPages(stored),
            runtime.blobs,
            runtime.index,
            clock=runtime.clock.now,
            new_id=lambda: runtime.ids.new("page"),
        )
        brought = 0
        for url in dict.fromkeys([*urls, *_urls_in(stored)]):
            if is_fetchable(url) and await asyncio.to_thread(stored.has, url) is not None:
                brought += await self._bring(pages, runtime, stored, url)
        return brought

    async def _bring(self, pages: PageCache, runtime: Runtime, stored: CacheFileSys, url: str) -> bool:
        known = await runtime.index.find(canonical_key(url))
        if known is not None and known.is_evidence and await asyncio.to_thread(_is_same, stored, url, known):
            return False
        capture = await pages.get(url, refresh=True)
        return capture.is_evidence

    async def keep(
        self,
        runtime: Runtime,
        agent: str,
        task_id: str,
        cited: Mapping[str, Sequence[str]],
        looked_at: Iterable[str] = (),
    ) -> None:
        """Write the evidence of pages into the folder, and beside it what is cited where.

        ``cited`` maps each URL to the names of the answers that cite it; ``looked_at`` are further pages that
        judges asked for.
        """
        folder = self._root / agent / task_id
        stored = await asyncio.to_thread(CacheFileSys, folder)
        for url in dict.fromkeys([*cited, *looked_at]):
            capture = await runtime.index.find(canonical_key(url))
            if (
                capture is not None
                and capture.is_evidence
                and not await asyncio.to_thread(_is_same, stored, url, capture)
            ):
                await _put(runtime, stored, url, capture)
        await asyncio.to_thread(stored.save)
        types = {url: kind for url in cited if (kind := stored.has(url)) is not None}
        overview = {
            "agent_name": agent,
            "task_id": task_id,
            "total_unique_urls": len(cited),
            "all_unique_urls": list(cited),
            "urls": {url: list(names) for url, names in cited.items()},
            "url_types": types,
            "cached_url_count": len(types),
        }
        await asyncio.to_thread(write_json, folder.with_name(f"{task_id}.json"), overview)


class _StoredPages:
    """Implements Capturer over a public cache folder: each look is a look at its files."""

    def __init__(self, stored: CacheFileSys) -> None:
        self._stored = stored

    async def capture(self, url: str) -> Observation:
        seen = await asyncio.to_thread(self._read, url)
        if seen.pdf is None:
            return seen
        try:
            document = await read_document(seen.pdf, "application/pdf", deadline_s=PDF_DEADLINE_S)
        except DocumentRejected as error:
            return _damaged(url, str(error))
        return document.observed_as(seen)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _read(self, url: str) -> Observation:
        facts = self._stored.facts(url)
        kind = self._stored.has(url)
        text, shot, pdf = "", None, None
        try:
            if kind == "pdf":
                pdf = self._stored.get_pdf(url)
            else:
                text, shot = self._stored.get_web(url)
        except KeyError:
            return _damaged(url, "its files are gone")
        shown = None if shot is None else shown_jpeg(shot)
        return Observation(
            url=url,
            outcome=CaptureOutcome.OK,
            captured_at=datetime.now(UTC) if facts is None else datetime.fromisoformat(facts.captured_at),
            duration_s=0.0,
            backend=BACKEND,
            detail="brought in; the time is that of bringing in" if facts is None else "",
            final_url=None if facts is None else facts.final_url,
            http_status=None if facts is None else facts.status,
            kind=PageKind.PDF if kind == "pdf" else PageKind.WEB,
            text=text,
            screenshots=() if shown is None else (shown,),
            pdf=pdf,
            headers={} if facts is None else facts.headers,
        )


def _damaged(url: str, detail: str) -> Observation:
    return Observation(
        url=url,
        outcome=CaptureOutcome.DAMAGED,
        captured_at=datetime.now(UTC),
        duration_s=0.0,
        backend=BACKEND,
        detail=detail,
    )


def _open(folder: Path) -> CacheFileSys | None:
    """The cache in a folder; None where there is no folder, which opening would make."""
    return CacheFileSys(folder) if folder.is_dir() else None


def _urls_in(stored: CacheFileSys) -> list[str]:
    """Every stored page by the URL it was put under, or by its key where nobody wrote that down."""
    return [key if (facts := stored.facts(key)) is None else facts.url for key in stored.get_all_urls()]


def _is_same(stored: CacheFileSys, url: str, capture: Capture) -> bool:
    """Whether a capture shows what the folder holds: the same text, or the same bytes of a PDF."""
    kind = stored.has(url)
    if kind is None or (kind == "pdf") != ("pdf" in capture.blobs):
        return False
    try:
        data = stored.get_pdf(url) if kind == "pdf" else stored.get_web(url, get_screenshot=False)[0].encode()
    except KeyError:
        return False
    blob = capture.blobs.get("pdf" if kind == "pdf" else "text")
    return blob is not None and blob.sha256 == hashlib.sha256(data).hexdigest()


async def _put(runtime: Runtime, stored: CacheFileSys, url: str, capture: Capture) -> None:
    """Copy one capture's bodies into the folder; one whose bodies cannot be had is left out."""

    async def body(role: str) -> bytes | None:
        return None if role not in capture.blobs else await runtime.blobs.get(capture.blobs[role].sha256)

    try:
        text, shot, pdf = await body("text"), await body(f"{SCREENSHOT_ROLE}0"), await body("pdf")
    except CacheError:
        return

    def put() -> None:
        status, final_url, at = capture.http_status, capture.final_url, capture.captured_at
        if pdf is not None:
            stored.put_pdf(url, pdf, status=status, final_url=final_url, headers=capture.headers, captured_at=at)
        else:
            page = (text or b"").decode("utf-8", "replace")
            stored.put_web(url, page, shot, status=status, final_url=final_url, headers=capture.headers, captured_at=at)

    await asyncio.to_thread(put)
