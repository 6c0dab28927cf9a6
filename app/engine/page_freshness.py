"""Comparison of the pages of a result with the stored pages, to decide whether the result can be reused.

Reads only stored pages: the page cache in the public layout if there is one, and our own captures. It never opens the
web.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.engine.estimate import PageSize
from app.engine.public_cache import PublicCache, read_shown_page, same_bodies, stored_bodies
from cache.capture import CaptureSource
from cache.capture_index import FolderIndex
from cache.urls import canonical_key
from mind2web2.utils.cache_filesys import CacheFileSys

_SHOWN = ("text", "links", "pdf", "screenshot-")


class CurrentPages:
    """Stored pages of the tasks of an agent. Blocks on disk reads."""

    def __init__(self, index: FolderIndex | None, public: PublicCache | None) -> None:
        """Use ``open`` instead."""
        self._index = index
        self._public = public
        self._stored: dict[Path, CacheFileSys | None] = {}

    @classmethod
    async def open(cls, captures: Path, public: PublicCache | None) -> CurrentPages:
        """Open the stored pages. ``captures`` is the folder of our own captures, which need not exist.

        Raises:
            IndexFailed: The folder cannot be read.
        """
        exists = await asyncio.to_thread(captures.is_dir)
        return cls(await FolderIndex.open(captures) if exists else None, public)

    def changed_page(self, agent: str, task_id: str, result: Mapping[str, Any]) -> str | None:
        """Return a message that names the first changed page of a result; None if no page changed."""
        stored = self._folder(agent, task_id)
        for page in result.get("pages") or ():
            url, bodies = page.get("url"), page.get("bodies")
            if not isinstance(url, str) or not isinstance(bodies, Mapping):
                continue  # results of the public toolkit do not record their pages
            if page.get("source") == CaptureSource.SUPPLIED:
                continue  # compared with the other inputs
            in_folder = None if stored is None else stored_bodies(stored, url)
            changed = not same_bodies(in_folder, bodies) if in_folder is not None else self._has_newer(url, page)
            if changed:
                return f"a page changed: {url}"
        return None

    def _has_newer(self, url: str, page: Mapping[str, Any]) -> bool:
        """Return whether a newer capture would be used now and has other content."""
        known = None if self._index is None else self._index.find_sync(canonical_key(url))
        if known is None or not known.is_evidence or known.id == page.get("page_id"):
            return False
        now = {name: blob.sha256 for name, blob in known.blobs.items()}
        return _shown(now) != _shown(page["bodies"])

    def size_of(self, agent: str, task_id: str, url: str) -> PageSize | None:
        """Return the size of the stored page of a URL; None if there is none, or if it must be decoded first."""
        known = None if self._index is None else self._index.find_sync(canonical_key(url))
        if known is not None:
            return PageSize.of(known)
        stored = self._folder(agent, task_id)
        seen = None if stored is None or stored.has(url) is None else read_shown_page(stored, url)
        return None if seen is None else PageSize(len(seen.text.encode("utf-8", "replace")), len(seen.screenshots))

    def _folder(self, agent: str, task_id: str) -> CacheFileSys | None:
        if self._public is None:
            return None
        folder = self._public.folder(agent, task_id)
        if folder not in self._stored:
            self._stored[folder] = CacheFileSys(folder) if folder.is_dir() else None
        return self._stored[folder]


def _shown(bodies: Mapping[str, str]) -> dict[str, str]:
    """Return the bodies of a capture that a judge reads."""
    return {name: sha256 for name, sha256 in bodies.items() if name.startswith(_SHOWN)}
