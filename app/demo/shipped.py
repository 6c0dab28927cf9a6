"""Shipped example answers, and the texts of the pages that they cite."""

from __future__ import annotations

import json
from pathlib import Path

import answers


def examples_dir() -> Path:
    """Return the folder of the shipped answers, in the public layout ``<agent>/<task_id>/answer_<k>.md``."""
    return Path(answers.__path__[0]) / "examples"


def page_texts() -> dict[str, str]:
    """Return the visible texts of the cited pages by URL, for tests of judges without a browser."""
    texts: dict[str, str] = json.loads((Path(__file__).parent / "page_texts.json").read_text(encoding="utf-8"))
    return texts
