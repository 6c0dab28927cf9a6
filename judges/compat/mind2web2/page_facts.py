"""What the public page-cache layout has no room for: when and how a page was seen, and the hash of its bytes.

Kept in one file beside ``index.json`` that the public toolkit does not read. A page without an entry was
put there by somebody else; a damaged file means that nothing is known, never that a page is gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FACTS_FILE = "index.facts.json"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """Provenance of one stored page.

    ``url`` as it was given, ``captured_at`` UTC in ISO 8601, ``status`` the HTTP status, ``sha256`` the digest
    (hex) of each file by its suffix (txt, jpg, pdf).
    """

    url: str
    captured_at: str
    status: int | None = None
    final_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)


def facts_text(facts: Mapping[str, PageFacts]) -> str:
    """The content of the facts file for ``facts`` by index key."""
    return json.dumps(
        {"version": _VERSION, "pages": {key: asdict(each) for key, each in facts.items()}},
        ensure_ascii=False,
        indent=2,
    )


def read_facts(folder: Path) -> dict[str, PageFacts]:
    """What is known of the pages of a folder, by index key; empty where the file is missing or damaged."""
    try:
        document = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        return {key: PageFacts(**_fields(entry)) for key, entry in document["pages"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in PageFacts.__dataclass_fields__ if name in entry}
