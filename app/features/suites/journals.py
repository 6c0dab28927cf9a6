"""Journal of a run in a folder: a header line that identifies the run, then one JSON line per finished step.

A killed process can leave an incomplete last line. It is cut off, and the step is judged again.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from app.errors import AppError
from app.features.suites.records import Record, without_trace

_RUN = "run"


class MemoryJournal:
    """Journal of a run that is not resumed. Without ``keeps`` it stores nothing: traces of a split can be gigabytes."""

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._records: list[Record] = []

    async def stored_records(self) -> Mapping[str, dict[str, Any]]:
        return {}

    async def store(self, record: Record) -> None:
        if self._keeps:
            self._records.append(record)

    def records(self) -> Iterator[Record]:
        """Yield complete records by position."""
        return iter(sorted(self._records, key=lambda record: int(record["position"])))

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class FileJournal:
    """Journal in a file, created by ``open``. Only one process may write to it at a time."""

    def __init__(self, file: BinaryIO, stored: dict[str, dict[str, Any]], spans: dict[str, tuple[int, int]]) -> None:
        self._file = file
        self._stored = stored
        self._spans = spans
        self._lock = asyncio.Lock()

    @classmethod
    def open(cls, path: Path, identity: Mapping[str, Any]) -> FileJournal:
        """Open the journal of a run, or create it. Blocks.

        Steps are reused only if ``identity`` equals the identity in the header line.

        Raises:
            AppError: the file is the journal of another run, or cannot be read or written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with ExitStack() as stack:
                file = stack.enter_context(path.open("a+b"))
                journal = cls(file, *_read_journal(file, path, identity))
                stack.pop_all()  # the journal closes the file
                return journal
        except OSError as error:
            raise AppError(f"{path}: {error.strerror}") from error

    async def stored_records(self) -> Mapping[str, dict[str, Any]]:
        return dict(self._stored)

    async def store(self, record: Record) -> None:
        async with self._lock:
            await asyncio.to_thread(self._append, record)

    def records(self) -> Iterator[Record]:
        """Yield complete records by position, read one at a time. Blocks."""
        for id in sorted(self._spans, key=lambda id: int(self._stored[id]["position"])):
            start, length = self._spans[id]
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
            raise AppError(f"Cannot write the journal: {error.strerror}") from error
        self._stored[record["id"]] = without_trace(record)
        self._spans[record["id"]] = (start, len(line))


def _read_journal(
    file: BinaryIO, path: Path, identity: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[int, int]]]:
    records: dict[str, dict[str, Any]] = {}
    spans: dict[str, tuple[int, int]] = {}
    file.seek(0)
    end = 0
    for number, line in enumerate(file):
        value = _parse_line(line)
        if value is None:
            break
        if number == 0:
            _check_identity(value.get(_RUN), identity, path)
        else:
            records[value["id"]] = without_trace(value)
            spans[value["id"]] = (end, len(line))
        end += len(line)
    file.truncate(end)
    if end == 0:
        file.write(json.dumps({_RUN: identity}, ensure_ascii=False).encode() + b"\n")
        file.flush()
    return records, spans


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """Parse a complete line. Return None for an incomplete or damaged one."""
    if not line.endswith(b"\n"):
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _check_identity(stored: Any, identity: Mapping[str, Any], path: Path) -> None:
    current = json.loads(json.dumps(identity))
    if stored == current:
        return
    if not isinstance(stored, Mapping):
        raise AppError(f"{path} is not the journal of a run; use another --output-dir")
    differing = [name for name in sorted({*stored, *current}) if stored.get(name) != current.get(name)]
    raise AppError(
        f"{path.parent} contains a run with different {', '.join(differing)}; "
        f"use another --output-dir, or remove {path.name}"
    )
