"""Expected scores of the shipped answers and outcomes of the shipped report, and the paths of both.

Determined by hand from the texts of the pages; ``docs/demo.md`` explains them. A test compares the demo with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import answers
from rubrics.scoring import Score, bounded_score

EXPECTED: Final[Mapping[str, Mapping[str, Score]]] = MappingProxyType(
    {
        "demo": {
            "velm_directors": bounded_score(1.0, 1.0),
            "pellard_gauges": bounded_score(1.0, 1.0),
            "karrow_visit": bounded_score(1.0, 1.0),
        },
        "demo-careless": {
            "velm_directors": bounded_score(2 / 3, 2 / 3),
            "pellard_gauges": bounded_score(7 / 8, 7 / 8),
            "karrow_visit": bounded_score(74 / 105, 89 / 105),
        },
        "demo-inventive": {
            "velm_directors": bounded_score(1 / 6, 1 / 6),
            "pellard_gauges": bounded_score(1 / 9, 1 / 9),
            "karrow_visit": bounded_score(1 / 14, 1 / 14),
        },
    }
)
"""By agent, then by task."""


def examples_dir() -> Path:
    """Return the folder of the shipped answers, in the public layout ``<agent>/<task_id>/answer_<k>.md``."""
    return Path(answers.__path__[0]) / "examples"


def report_path() -> Path:
    """Return the shipped report, which cites pages of the demo website."""
    return Path(__file__).parent / "report.md"


def page_texts() -> dict[str, str]:
    """Return the visible texts of the cited pages by URL, for tests of judges without a browser."""
    texts: dict[str, str] = json.loads((Path(__file__).parent / "page_texts.json").read_text(encoding="utf-8"))
    return texts


EXPECTED_CHECK: Final[Mapping[str, int]] = MappingProxyType(
    {"supported": 5, "partly_supported": 1, "not_supported": 2, "dead": 1, "unreadable": 1, "uncited": 1}
)
"""Number of statements of the shipped report by outcome."""
