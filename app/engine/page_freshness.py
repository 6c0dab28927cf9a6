"""Whether the pages that a result was judged by are still what would be shown, so that it need not be made again.

Looks at what is stored, never at the web: the page cache in the public layout where there is one, and our own records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.engine.public_cache import PublicCache
from app.engine.stored_pages import same_bodies, stored_bodies
from cache.store import FolderIndex
from cache.urls import canonical_key
from mind2web2.utils.cache_filesys import CacheFileSys

_SHOWN = ("text", "links", "pdf", "screenshot-")


class PagesNow:
    """The stored pages of an agent's tasks, as they are now. Blocks on the disk."""

    def __init__(self, index: FolderIndex | None, public: PublicCache | None) -> None:
        """Use ``open``."""
        self._index = index
        self._public = public
        self._stored: dict[Path, CacheFileSys | None] = {}

    @classmethod
    async def open(cls, captures: Path, public: PublicCache | None) -> PagesNow:
        """``captures`` is the folder of our own records, which need not be there.

        Raises:
            IndexFailed: it cannot be read.
        """
        there = await asyncio.to_thread(captures.is_dir)
        return cls(await FolderIndex.open(captures) if there else None, public)

    def why_again(self, agent: str, task_id: str, result: Mapping[str, Any]) -> str | None:
        """Which page of a result has changed since, in words; None where none has."""
        stored = self._folder(agent, task_id)
        for page in result.get("pages") or ():
            url, bodies = page.get("url"), page.get("bodies")
            if not isinstance(url, str) or not isinstance(bodies, Mapping):
                continue  # a result of the public toolkit, or of an earlier release, does not say what it saw
            there = None if stored is None else stored_bodies(stored, url)
            changed = not same_bodies(there, bodies) if there is not None else self._has_newer(url, page)
            if changed:
                return f"a page changed: {url}"
        return None

    def _has_newer(self, url: str, page: Mapping[str, Any]) -> bool:
        """Whether another capture would be shown now, and shows something else."""
        known = None if self._index is None else self._index.peek(canonical_key(url))
        if known is None or not known.is_evidence or known.id == page.get("page_id"):
            return False
        now = {role: blob.sha256 for role, blob in known.blobs.items()}
        return _shown(now) != _shown(page["bodies"])

    def _folder(self, agent: str, task_id: str) -> CacheFileSys | None:
        if self._public is None:
            return None
        folder = self._public.folder(agent, task_id)
        if folder not in self._stored:
            self._stored[folder] = CacheFileSys(folder) if folder.is_dir() else None
        return self._stored[folder]


def _shown(bodies: Mapping[str, str]) -> dict[str, str]:
    """Of the bodies of a capture those that a judge reads."""
    return {role: sha256 for role, sha256 in bodies.items() if role.startswith(_SHOWN)}
