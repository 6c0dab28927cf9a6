"""Pages that a script finds in its page cache: those of its task's folder, those of the answer, and captured ones.

Used in the process that has the pages. A script in a child process calls it with RPC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from cache.capture import Capture, Evidence, PageKind
from cache.urls import canonical_key
from mind2web2.page_keys import changes_when_decoded, storage_key
from mind2web2.utils.cache_filesys import PageType, Spellings, match_spelling


class EvidenceSource(Protocol):
    """Source of evidence by URL: the service's page cache, or a wrapper that records accesses."""

    async def evidence_for(self, url: str) -> Evidence: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFolder:
    """Page cache folder of a task when its answers are judged.

    Attributes:
        pages: Captures of the pages by key, in the order of the index.
        keys: Key by the canonical key of each spelling that was imported.
        redirects: Key of the page by the key of its final URL.
        failures: Recorded failures by key.
    """

    pages: Mapping[str, Capture] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    redirects: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def recorded(cls, record: Mapping[str, Any], find: Callable[[str], Capture | None]) -> Self:
        """Return the part of a folder that a run has read, from ``TaskPages.record``. ``find`` gets canonical keys."""
        urls = {str(key): str(url) for key, url in record["pages"].items()}
        found = {key: capture for key, url in urls.items() if (capture := find(canonical_key(url))) is not None}
        return cls(
            pages=found,
            keys={capture.key: key for key, capture in found.items()},
            redirects=record["redirects"],
            failures=record["failures"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageListing:
    """Contents of a page cache without the pages: types, redirects and failures by key.

    ``failed_captures`` has the cited pages that are not evidence, by canonical key.
    """

    types: dict[str, PageType]
    redirects: dict[str, str]
    failures: dict[str, dict[str, Any]]
    failed_captures: dict[str, Capture]


class TaskPages:
    """Pages that one run of a script can use. What it reads in the folder is recorded."""

    def __init__(
        self,
        pages: EvidenceSource,
        captures: Iterable[Capture],
        folder: TaskFolder | None,
        *,
        on_use: Callable[[Capture], None] = lambda capture: None,
    ) -> None:
        """``captures`` are those of the answer. ``on_use`` is called with each capture that the script reads."""
        self._pages = pages
        self._captures = {capture.key: capture for capture in captures}
        self._folder = folder or TaskFolder()
        self._on_use = on_use
        self._entries: dict[str, Capture] | None = None
        self._spellings, self._finals = Spellings(), Spellings()
        self._read: dict[str, str] = {}
        self._read_failures = False

    async def evidence_for(self, url: str) -> Evidence:
        """Return the evidence of a URL. Like the page cache, ignores more differences than ``canonical_key``."""
        evidence = await self._pages.evidence_for(self._known_spelling(url))
        self._captures[evidence.capture.key] = evidence.capture
        if self._entries is not None:
            self._add(self._entries, evidence.capture)
        return evidence

    def listing(self) -> PageListing:
        """Return all pages that the script finds now."""
        return PageListing(
            types={key: type_of(capture) for key, capture in self._all().items()},
            redirects=dict(self._folder.redirects),
            failures={key: dict(record) for key, record in self._folder.failures.items()},
            failed_captures={key: each for key, each in self._captures.items() if not each.is_evidence},
        )

    def read(self, key: str) -> Capture | None:
        """Return the capture of a listed page, which the script has found."""
        capture = self._all().get(key)
        if capture is not None and key not in self._read:
            self._read[key] = capture.url
            self._on_use(capture)
        return capture

    def read_all(self) -> None:
        """Record that the script has read which pages and failures there are."""
        self._read_failures = True
        for key in self._all():
            self.read(key)

    def read_failures(self) -> None:
        """Record that the script has read the recorded failures."""
        self._read_failures = True

    def record(self) -> dict[str, Any] | None:
        """Return what the script has read in the folder, for ``TaskFolder.recorded``; None if that is nothing."""
        pages = {key: url for key, url in self._read.items() if key in self._folder.pages}
        failures = self._folder.failures if self._read_failures else {}
        if not pages and not failures:
            return None
        return {
            "pages": {key: pages[key] for key in self._folder.pages if key in pages},
            "redirects": {final: key for final, key in self._folder.redirects.items() if key in pages},
            "failures": {key: dict(record) for key, record in failures.items()},
        }

    def _known_spelling(self, url: str) -> str:
        """Return the URL of the capture that the page cache finds for ``url``, else ``url``."""
        key = canonical_key(url)
        if key in self._captures or key in self._folder.keys:
            return url
        entries, stored = self._all(), storage_key(url)
        if stored not in entries and changes_when_decoded(stored):
            return url
        found = stored if stored in entries else match_spelling(stored, self._spellings, self._finals)
        return entries[found].url if found in entries else url

    def _all(self) -> dict[str, Capture]:
        if self._entries is None:
            self._entries = dict(self._folder.pages)
            for key in self._entries:
                self._spellings.add(key)
            for final, key in self._folder.redirects.items():
                self._finals.add(final, key)
            for capture in self._captures.values():
                self._add(self._entries, capture)
        return self._entries

    def _add(self, entries: dict[str, Capture], capture: Capture) -> None:
        """Add a capture that is evidence. That of the answer replaces that of another spelling."""
        key = self._folder.keys.get(capture.key) or storage_key(capture.url)
        if capture.is_evidence:
            if key not in entries:
                self._spellings.add(key)
            entries[key] = capture


def type_of(capture: Capture) -> PageType:
    """Return the type of a capture in the page cache."""
    return "pdf" if capture.kind is PageKind.PDF and "pdf" in capture.blobs else "web"
