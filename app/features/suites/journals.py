"""The journal of a run in a folder: one JSON line for each step as it ends, under a first line that says of which run.

A process that is killed may leave half a line at the end; it is cut off, and that step is asked again.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from app.features.suites.errors import RunMismatch, RunUnwritable
from app.features.suites.records import Record, without_trace

_RUN = "run"


class NoJournal:
    """For a run without a folder: keeps nothing, since the traces of a large split are gigabytes."""

    async def known(self) -> Mapping[str, dict[str, Any]]:
        return {}

    async def keep(self, record: Record) -> None:
        """The figures need no more than what the run itself remembers."""


class FileJournal:
    """A journal in a file, opened with ``opened``. One process at a time writes to it."""

    def __init__(self, file: BinaryIO, known: dict[str, dict[str, Any]], places: dict[str, tuple[int, int]]) -> None:
        self._file = file
        self._known = known
        self._places = places
        self._turn = asyncio.Lock()

    @classmethod
    def opened(cls, path: Path, run: Mapping[str, Any]) -> FileJournal:
        """Go on with the journal of this run, or begin one; ``run`` is what must be equal for steps to be reused.

        Blocks.

        Raises:
            RunMismatch: the file is the journal of another run.
            RunUnwritable
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b")
            try:
                return cls(file, *_read(file, path, run))
            except BaseException:
                file.close()
                raise
        except OSError as error:
            raise RunUnwritable(f"{path}: {error.strerror}") from error

    async def known(self) -> Mapping[str, dict[str, Any]]:
        return dict(self._known)

    async def keep(self, record: Record) -> None:
        async with self._turn:
            await asyncio.to_thread(self._append, record)

    def records(self) -> Iterator[Record]:
        """Whole records by position, read back one at a time. Blocks."""
        for id in sorted(self._places, key=lambda id: int(self._known[id]["position"])):
            start, length = self._places[id]
            self._file.seek(start)
            yield json.loads(self._file.read(length))

    def close(self) -> None:
        self._file.close()

    def _append(self, record: Record) -> None:
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        try:
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunUnwritable(f"the journal cannot be written: {error.strerror}") from error
        self._known[record["id"]] = without_trace(record)
        self._places[record["id"]] = (start, len(line))


def _read(
    file: BinaryIO, path: Path, run: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[int, int]]]:
    known: dict[str, dict[str, Any]] = {}
    places: dict[str, tuple[int, int]] = {}
    file.seek(0)
    end = 0
    for number, line in enumerate(file):
        value = _whole(line)
        if value is None:
            break
        if number == 0:
            _check(value.get(_RUN), run, path)
        else:
            known[value["id"]] = without_trace(value)
            places[value["id"]] = (end, len(line))
        end += len(line)
    file.truncate(end)
    if end == 0:
        file.write(json.dumps({_RUN: run}, ensure_ascii=False).encode() + b"\n")
        file.flush()
    return known, places


def _whole(line: bytes) -> dict[str, Any] | None:
    """A line that was written to its end; None for what a killed process left."""
    if not line.endswith(b"\n"):
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _check(before: Any, now: Mapping[str, Any], path: Path) -> None:
    normal = json.loads(json.dumps(now))
    if before == normal:
        return
    if not isinstance(before, Mapping):
        raise RunMismatch(f"{path} is no journal of a run; name another --output-dir")
    differing = [name for name in sorted({*before, *normal}) if before.get(name) != normal.get(name)]
    raise RunMismatch(
        f"{path.parent} holds a run with another {', '.join(differing)}; "
        f"name another --output-dir, or remove {path.name}"
    )
