"""Metadata of cached pages that the public page-cache layout does not store: capture time, headers, digests.

Stored in one file next to ``index.json`` that the public toolkit ignores. Each line is a JSON object with the key of a
page; the last line of a key counts. A page without an entry was stored by another program. Damaged lines are skipped,
so the metadata of their pages is unknown, but the pages remain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

METADATA_FILE = "index.metadata.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMetadata:
    """Metadata of one stored page.

    Attributes:
        url: URL as given.
        captured_at: Capture time, UTC in ISO 8601.
        status: HTTP status.
        sha256: Hex digest of each file by its suffix (txt, jpg, pdf).
    """

    url: str
    captured_at: str
    status: int | None = None
    final_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)


def append_metadata(folder: Path, key: str, metadata: PageMetadata | None) -> None:
    """Append the metadata of a page, or None for a page that was removed. The folder must be locked."""
    line = json.dumps({"key": key, "page": None if metadata is None else asdict(metadata)})
    with (folder / METADATA_FILE).open("ab+") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 1))
        # A line that a crash left incomplete is ended first.
        file.write(b"\n" * (file.read(1) not in (b"", b"\n")) + line.encode("ascii") + b"\n")


def read_metadata(folder: Path, start: int = 0) -> tuple[dict[str, PageMetadata | None], int]:
    """Return the metadata by key from a position in the file on, and the position of its end."""
    try:
        with (folder / METADATA_FILE).open("rb") as file:
            file.seek(start)
            lines = file.read().splitlines(keepends=True)
            end = file.tell()
    except FileNotFoundError:
        return {}, 0
    return dict(filter(None, map(_entry, lines))), end


def _entry(line: bytes) -> tuple[str, PageMetadata | None] | None:
    """Return key and metadata of a line; None if the line is damaged."""
    try:
        entry = json.loads(line)
        return str(entry["key"]), None if entry["page"] is None else PageMetadata(**_fields(entry["page"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in PageMetadata.__dataclass_fields__ if name in entry}
