"""Import and export of the page cache folders of the public toolkit.

``import_pages`` imports the pages of a folder as captures, so that a page is judged as it was when it was captured.
``export_pages`` exports our captures to the folder.

Stored pages are converted to observations and compared with captures.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from w3lib.url import safe_url_string

from app.async_tools import unwrapped
from app.engine.runtime import Runtime
from cache.backends.documents import read_document
from cache.capture import PART_PREFIX, SCREENSHOT_PREFIX, Capture, CaptureOutcome, CaptureSource, Observation, PageKind
from cache.errors import CacheError, DocumentRejected
from cache.page_text.screenshot_parts import is_showable, join_tiles
from cache.urls import canonical_key, is_fetchable
from mind2web2.page_keys import storage_key
from mind2web2.page_metadata import PageMetadata
from mind2web2.page_source import BACKEND, observation_of, read_page
from mind2web2.task_pages import TaskFolder
from mind2web2.utils.cache_filesys import CacheFileSys, overview_file, write_overview

DECODING_DEADLINE_S = 60.0
MAX_WIDTH_PX, MAX_HEIGHT_PX = 2000, 20_000
"""Larger pictures are decoded in a child process, because they may be decompression bombs."""


async def read_stored_page(stored: CacheFileSys, url: str) -> Observation:
    seen = await asyncio.to_thread(_read, stored, url)
    if seen.pdf is None:
        return seen if seen.original is None else await _with_decoded_picture(seen, seen.original)
    try:
        document = await read_document(seen.pdf, "application/pdf", deadline_s=DECODING_DEADLINE_S)
    except DocumentRejected as error:
        return _damaged(url, str(error))
    return document.complete_observation(seen)


def read_shown_page(stored: CacheFileSys, url: str) -> Observation | None:
    """Read a stored page whose picture is shown as it is. None: use ``read_stored_page``, which decodes. Blocks."""
    if stored.has(url) == "pdf":
        return None
    seen = _read(stored, url)
    return seen if seen.original is None else None


async def _with_decoded_picture(seen: Observation, picture: bytes) -> Observation:
    """Add a stored picture, which is huge or not a JPEG, as the screenshot. It is decoded in a child process."""
    try:
        screenshots = (await read_document(picture, "", deadline_s=DECODING_DEADLINE_S)).screenshots
    except DocumentRejected:
        screenshots = ()
    return replace(seen, screenshots=screenshots)


def _read(stored: CacheFileSys, url: str) -> Observation:
    try:
        page = read_page(stored, url)
    except KeyError:
        page = None
    if page is None:
        return _damaged(url, "its files are missing")
    # Without damage, another program has not replaced the page since, without writing metadata.
    metadata = page.metadata if page.damage is None else None
    seen = observation_of(url, page, _when(metadata), metadata)
    detail = "imported; the time is that of the import" if metadata is None else ""
    seen = replace(seen, detail=detail, source=CaptureSource.IMPORT)
    if page.body is None or page.kind is PageKind.PDF:
        return replace(seen, pdf=page.body)
    if is_showable(page.body, MAX_WIDTH_PX, MAX_HEIGHT_PX):
        return replace(seen, screenshots=(page.body,))
    return replace(seen, original=page.body)


def _when(metadata: PageMetadata | None) -> datetime:
    """Return the time of capture of a stored page; the current time if it is missing or invalid."""
    try:
        at = datetime.now(UTC) if metadata is None else datetime.fromisoformat(metadata.captured_at)
    except (ValueError, TypeError):
        return datetime.now(UTC)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _damaged(url: str, detail: str) -> Observation:
    return Observation(
        url=url,
        outcome=CaptureOutcome.DAMAGED,
        captured_at=datetime.now(UTC),
        duration_s=0.0,
        backend=BACKEND,
        detail=detail,
        source=CaptureSource.IMPORT,
    )


def urls_in(stored: CacheFileSys, overview: Path) -> list[str]:
    """Return the URLs of all stored pages.

    If the URL of a page was not recorded, return the URLs of the overview file that have the same key. There may be
    several, because keys are percent-decoded. Without an overview, return the percent-encoded key.
    """
    by_key: dict[str, list[str]] = {}
    for url in _cited_urls(overview):
        by_key.setdefault(storage_key(url), []).append(url)
    urls: list[str] = []
    for key in stored.get_all_urls():
        metadata = stored.metadata(key)
        urls += [metadata.url] if metadata is not None else by_key.get(key) or [safe_url_string(key)]
    return urls


def _cited_urls(overview: Path) -> list[str]:
    """Return the URLs in the overview file of a folder; empty if there is no readable one."""
    try:
        urls = json.loads(overview.read_text(encoding="utf-8"))["all_unique_urls"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [url for url in urls if isinstance(url, str)] if isinstance(urls, list) else []


def stored_bodies(stored: CacheFileSys, url: str) -> dict[str, str] | None:
    """Return the SHA-256 of the stored bodies of a page by name; None if the page is missing or incomplete."""
    try:
        page = read_page(stored, url)
    except KeyError:
        page = None
    if page is None:
        return None
    body = {} if page.body is None else {"original": page.body_sha256 or _sha256(page.body)}
    if page.kind is PageKind.PDF:
        return {"pdf": body["original"]}
    return {"text": _sha256(page.text.encode("utf-8", "replace"))} | body


def same_bodies(stored: Mapping[str, str], shown: Mapping[str, str]) -> bool:
    """Return whether the bodies of a stored page equal those of a capture: the PDF, or the text and the picture if any.

    The stored picture may equal the screenshot of the capture, or the original that the screenshot was scaled from.
    """
    if "pdf" in stored or "pdf" in shown:
        return stored.get("pdf") == shown.get("pdf")
    if stored.get("text") != shown.get("text"):
        return False
    picture = stored.get("original")
    return picture is None or picture in (shown.get("original"), shown.get(f"{SCREENSHOT_PREFIX}0"))


def equals_capture(stored: CacheFileSys, url: str, capture: Capture) -> bool:
    """Return whether the stored page equals a capture, or is our unchanged export of that capture."""
    bodies = stored_bodies(stored, url)
    if bodies is None:
        return False
    if same_bodies(bodies, {name: blob.sha256 for name, blob in capture.blobs.items()}):
        return True
    metadata = stored.metadata(url)
    if metadata is None or metadata.captured_at != capture.captured_at.isoformat():
        return False
    written = {suffix: bodies.get(name) for suffix, name in (("txt", "text"), ("jpg", "original"), ("pdf", "pdf"))}
    return all(written[suffix] == digest for suffix, digest in metadata.sha256.items())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


PAGES_PER_THREAD = 32
"""Pages that a thread imports at a time, one after the other, which takes 0.1 s. Handing over each page is slower."""
MAX_CONCURRENT_DECODINGS = 4
"""PDFs and large pictures that are decoded at once."""


class PublicCache:
    """Page cache in the public layout, with a folder ``<root>/<agent>/<task_id>`` per task."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def evidence_folder(self, agent: str) -> Path:
        """Return the folder of our own captures of an agent, next to the public folders."""
        return self._root / ".assay" / agent

    def evidence_folders(self) -> list[Path]:
        """Return the existing folders of our own captures, one per agent, sorted."""
        return sorted(path for path in (self._root / ".assay").glob("*") if path.is_dir())

    def folder(self, agent: str, task_id: str) -> Path:
        """Return the public folder of a task."""
        return self._root / agent / task_id

    async def import_pages(
        self, runtime: Runtime, agent: str, task_id: str, urls: Iterable[str], *, with_parts: bool = False
    ) -> ImportSummary:
        """Import the stored pages of a task as captures: ``urls`` and all other pages of the folder.

        A damaged page is skipped, so it is captured from the web later. Without ``with_parts``, the screenshots of a
        page are prepared when a judge requests the page: judges request only some of the pages.

        Raises:
            CacheError: Our own store cannot be written, or the index of the folder cannot be read.
        """
        folder = self.folder(agent, task_id)
        stored = await asyncio.to_thread(_open, folder)
        if stored is None:
            return ImportSummary()
        keys = await asyncio.to_thread(_stored_keys, stored, list(urls), overview_file(folder))
        spellings = {key: url for url, key in reversed(keys.items())}  # the first URL of each page
        found = [url for url, key in keys.items() if spellings[key] == url]
        known = {url: await runtime.index.find(keys[url]) for url in found}
        same: dict[str, Capture] = {}
        new: dict[str, Capture] = {}
        damaged: list[str] = []
        undecoded: list[str] = []

        def read(url: str) -> Observation | None:
            capture = known[url]
            if capture is not None and _is_current(runtime, stored, url, capture):
                same[url] = capture
            elif with_parts or (seen := read_shown_page(stored, url)) is None:
                undecoded.append(url)
            elif not seen.is_evidence:
                damaged.append(url)
            else:
                return seen
            return None

        for start in range(0, len(found), PAGES_PER_THREAD):
            new |= await runtime.pages.add_imports(found[start : start + PAGES_PER_THREAD], read)
        slots = asyncio.Semaphore(MAX_CONCURRENT_DECODINGS)

        async def decode(url: str) -> None:
            async with slots:
                seen = await read_stored_page(stored, url)
                if seen.is_evidence:
                    new[url] = await runtime.pages.add(url, seen, with_parts=with_parts, synced=False)
                else:
                    damaged.append(url)

        with unwrapped(CacheError):
            async with asyncio.TaskGroup() as group:
                for url in undecoded:
                    group.create_task(decode(url))
        by_key = {keys[url]: capture for url, capture in (same | new).items()}
        pages = {url: by_key[key] for url, key in keys.items() if key in by_key}
        return ImportSummary(
            new=len(new), same=len(same), damaged=len(damaged), pages=pages, folder=_task_folder(stored, pages)
        )

    async def export_pages(
        self,
        runtime: Runtime,
        agent: str,
        task_id: str,
        cited: Mapping[str, Sequence[str]],
        requested: Iterable[str] = (),
        *,
        imported: ImportSummary | None = None,
    ) -> None:
        """Export pages to the folder of a task, with an overview file of the citations next to it.

        ``cited`` maps each URL to the names of the answers that cite it. ``requested`` are additional pages that judges
        requested. Pages that were imported from the folder (``imported``) and are still current are not written.
        """
        folder = self._root / agent / task_id
        unchanged = {} if imported is None else imported.pages
        stored = await asyncio.to_thread(CacheFileSys, folder)
        for url in dict.fromkeys([*cited, *requested]):
            capture = await runtime.index.find(canonical_key(url))
            if (
                capture is not None
                and capture.is_evidence
                and not _is_same_page(unchanged.get(url), capture)
                and not await asyncio.to_thread(equals_capture, stored, url, capture)
            ):
                await _export(runtime, stored, url, capture)
        types = {url: kind for url in cited if (kind := stored.has(url)) is not None}
        await asyncio.to_thread(write_overview, folder, cited, types)

    async def missing_urls(self, agent: str, task_id: str, urls: Iterable[str]) -> list[str]:
        """Return those ``urls`` that have no page in the folder of a task."""
        stored = await asyncio.to_thread(_open, self.folder(agent, task_id))
        return [url for url in urls if stored is None or stored.has(url) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """Summary of an import: number of new or changed pages, unchanged pages and damaged pages.

    ``pages`` maps URLs to their captures, ``folder`` the keys of the folder.
    """

    new: int = 0
    same: int = 0
    damaged: int = 0
    pages: Mapping[str, Capture] = field(default_factory=dict)
    folder: TaskFolder = field(default_factory=TaskFolder)


def _stored_keys(stored: CacheFileSys, urls: Sequence[str], overview: Path) -> dict[str, str]:
    """Return the keys of those URLs that have a stored page: ``urls``, then the URLs of all stored pages."""
    candidates = dict.fromkeys([*urls, *urls_in(stored, overview)])
    return {url: canonical_key(url) for url in candidates if is_fetchable(url) and stored.has(url) is not None}


def _task_folder(stored: CacheFileSys, pages: Mapping[str, Capture]) -> TaskFolder:
    """Return the contents of a folder. ``pages`` maps the URLs of its pages to their captures."""
    by_key: dict[str, Capture] = {}
    keys: dict[str, str] = {}
    for url, capture in pages.items():
        key = stored.lookup(url)
        if key is not None:
            by_key.setdefault(key, capture)
            keys.setdefault(capture.key, key)
    return TaskFolder(
        pages={key: by_key[key] for key in stored.get_all_urls() if key in by_key},
        keys=keys,
        redirects=stored.redirects(),
        failures=stored.failures(),
    )


def _is_current(runtime: Runtime, stored: CacheFileSys, url: str, capture: Capture) -> bool:
    """Return whether a capture equals the stored page and, if it is an import, its files were not lost in a crash."""
    if not capture.is_evidence or not equals_capture(stored, url, capture):
        return False
    # Parts are prepared again if they were lost.
    copied = [blob for name, blob in capture.blobs.items() if not name.startswith(PART_PREFIX)]
    return capture.source is not CaptureSource.IMPORT or runtime.blobs.has_all(copied)


def _is_same_page(imported: Capture | None, capture: Capture) -> bool:
    """Return whether a capture is an imported one, or the one with the parts of its screenshots."""
    return imported is not None and imported.key == capture.key and imported.blobs.items() <= capture.blobs.items()


def _open(folder: Path) -> CacheFileSys | None:
    """Open the cache in a folder; None if the folder does not exist, because ``CacheFileSys`` would create it."""
    return CacheFileSys(folder) if folder.is_dir() else None


async def _export(runtime: Runtime, stored: CacheFileSys, url: str, capture: Capture) -> None:
    """Copy the bodies of one capture into the folder. A capture with unavailable bodies is skipped."""

    async def body(name: str) -> bytes | None:
        return None if name not in capture.blobs else await runtime.blobs.get(capture.blobs[name].sha256)

    try:
        text, pdf, original = await body("text"), await body("pdf"), await body("original")
        tiles = [await body(name) or b"" for name in capture.screenshot_names]
    except CacheError:
        return

    def write() -> None:
        if pdf is not None:
            stored.put_pdf(url, pdf, capture=capture)
        else:
            page = (text or b"").decode("utf-8", "replace")
            stored.put_web(url, page, original or join_tiles(tiles), capture=capture)

    await asyncio.to_thread(write)
