"""Where the records of captures are kept: the seam, and the two implementations that need no database.

A record is never overwritten: each attempt is one row. The look-up by key answers with the newest
capture that is evidence, or else with the newest attempt.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Protocol

import structlog

from cache.capture import Capture
from cache.errors import IndexFailed
from cache.record import capture_from_json, capture_to_json

_log = structlog.get_logger(__name__)


class CaptureIndex(Protocol):
    """Finds the record of a capture. Raises IndexFailed when it cannot say."""

    async def find(self, key: str) -> Capture | None:
        """The newest capture of this canonical key that is evidence, else the newest attempt, else None."""

    async def get(self, capture_id: str) -> Capture | None: ...

    async def record(self, capture: Capture) -> None:
        """Keep a record; when this returns it survives a crash (where the implementation is durable at all)."""


class MemoryIndex:
    """Records for the life of one process."""

    def __init__(self) -> None:
        self._by_id: dict[str, Capture] = {}
        self._best: dict[str, Capture] = {}

    async def find(self, key: str) -> Capture | None:
        return self._best.get(key)

    async def get(self, capture_id: str) -> Capture | None:
        return self._by_id.get(capture_id)

    async def record(self, capture: Capture) -> None:
        self._by_id[capture.id] = capture
        known = self._best.get(capture.key)
        if known is None or _rank(capture) >= _rank(known):
            self._best[capture.key] = capture


class FolderIndex:
    """One JSON file per attempt in a folder. What is looked up is derived from the files at opening.

    One process writes; others see its records when they open the folder.
    """

    def __init__(self, folder: Path, known: MemoryIndex) -> None:
        """Use ``open``."""
        self._folder = folder
        self._known = known

    @classmethod
    async def open(cls, folder: Path) -> FolderIndex:
        """Read all records of a folder, which is made if need be. A damaged file is logged and left out.

        Raises:
            IndexFailed: the folder cannot be used.
        """
        known = MemoryIndex()
        for capture in await asyncio.to_thread(_read_records, folder):
            await known.record(capture)
        return cls(folder, known)

    async def find(self, key: str) -> Capture | None:
        return await self._known.find(key)

    async def get(self, capture_id: str) -> Capture | None:
        return await self._known.get(capture_id)

    async def record(self, capture: Capture) -> None:
        text = json.dumps(capture_to_json(capture), ensure_ascii=False, indent=1)
        try:
            await asyncio.to_thread(_write_whole, self._folder / f"{capture.id}.json", text)
        except OSError as fault:
            raise IndexFailed(f"record of {capture.url}: {fault}") from fault
        await self._known.record(capture)


def _rank(capture: Capture) -> tuple[bool, float]:
    return capture.is_evidence, capture.captured_at.timestamp()


def _read_records(folder: Path) -> list[Capture]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted(folder.glob("*.json"))
    except OSError as fault:
        raise IndexFailed(f"capture records in {folder}: {fault}") from fault
    found = []
    for file in files:
        try:
            found.append(capture_from_json(json.loads(file.read_text(encoding="utf-8"))))
        except (IndexFailed, OSError, ValueError) as damage:
            _log.warning("capture_record_unreadable", file=file.name, error=str(damage))
    return found


def _write_whole(target: Path, text: str) -> None:
    """Write-temp, sync, rename, sync the folder: the file is there whole or not at all."""
    draft = target.with_suffix(".tmp")
    with draft.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
