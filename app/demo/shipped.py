"""Where the demo's answers lie, and what the pages that they cite say."""

from __future__ import annotations

import json
from pathlib import Path

import answers


def examples_dir() -> Path:
    """The folder of the shipped answers, in the public layout ``<agent>/<task_id>/answer_<k>.md``."""
    return Path(answers.__path__[0]) / "examples"


def page_texts() -> dict[str, str]:
    """The texts of the pages that the shipped answers cite, by URL, as a browser shows them: for trials without one."""
    texts: dict[str, str] = json.loads((Path(__file__).parent / "page_texts.json").read_text(encoding="utf-8"))
    return texts
