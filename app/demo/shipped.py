"""Where the demo's answers lie."""

from __future__ import annotations

from pathlib import Path

import answers


def examples_dir() -> Path:
    """The folder of the shipped answers, in the public layout ``<agent>/<task_id>/answer_<k>.md``."""
    return Path(answers.__path__[0]) / "examples"
