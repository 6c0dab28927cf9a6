"""Metadata of cached pages that the public page-cache layout does not store: capture time, headers, digests.

Stored in one file next to ``index.json`` that the public toolkit ignores. A page without an entry was stored by another
program. If the file is damaged, the metadata is unknown, but the pages remain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

METADATA_FILE = "index.metadata.json"
_VERSION = 1


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


def metadata_text(metadata: Mapping[str, PageMetadata]) -> str:
    """Return the content of the metadata file for ``metadata`` by index key."""
    return json.dumps(
        {"version": _VERSION, "pages": {key: asdict(each) for key, each in metadata.items()}},
        ensure_ascii=False,
        indent=2,
    )


def read_metadata(folder: Path) -> dict[str, PageMetadata]:
    """Return the metadata of a folder's pages by index key; empty if the file is missing or damaged."""
    try:
        document = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))
        return {key: PageMetadata(**_fields(entry)) for key, entry in document["pages"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in PageMetadata.__dataclass_fields__ if name in entry}
