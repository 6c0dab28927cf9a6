"""Expected scores of the shipped answers, and the leaves that do not pass.

Determined by hand from the texts of the pages; ``docs/demo.md`` explains them. A test compares the demo with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import answers
from rubrics.verdict import Outcome, Reason

_GONE = (Outcome.FAILED, Reason.SOURCE_GONE)
_REFUTED = (Outcome.FAILED, Reason.REFUTED)
_GATED = (Outcome.SKIPPED, Reason.GATED)
_UNREADABLE = (Outcome.NOT_JUDGED, Reason.CAPTURE_BLOCKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedScore:
    """Expected outcome of one answer. ``missed`` contains every leaf that does not pass."""

    leaves: int
    low: float
    high: float
    missed: Mapping[str, tuple[Outcome, Reason]] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """The score; None if leaves that were not judged could change it."""
        return self.low if self.low == self.high else None


EXPECTED: Final[Mapping[str, Mapping[str, ExpectedScore]]] = MappingProxyType(
    {
        "demo": {
            "velm_directors": ExpectedScore(leaves=18, low=1.0, high=1.0),
            "pellard_gauges": ExpectedScore(leaves=17, low=1.0, high=1.0),
            "karrow_visit": ExpectedScore(leaves=14, low=1.0, high=1.0),
        },
        "demo-careless": {
            "velm_directors": ExpectedScore(
                leaves=18,
                low=2 / 3,
                high=2 / 3,
                missed={
                    "succession/d2/thesis": _REFUTED,
                    "succession/d3/name": _GATED,
                    "succession/d3/office": _GATED,
                    "succession/d3/thesis": _GATED,
                    "lecture/date": _REFUTED,
                },
            ),
            "pellard_gauges": ExpectedScore(
                leaves=17,
                low=7 / 8,
                high=7 / 8,
                missed={"gauges/kestrel_6/battery": _REFUTED, "gauges/heron_2/price": _REFUTED},
            ),
            "karrow_visit": ExpectedScore(
                leaves=14,
                low=74 / 105,
                high=89 / 105,
                missed={"museum/closes": _REFUTED, "talk/starts": _REFUTED, "members/price": _UNREADABLE},
            ),
        },
        "demo-inventive": {
            "velm_directors": ExpectedScore(
                leaves=18,
                low=1 / 6,
                high=1 / 6,
                missed={
                    "succession/d1/office": _GONE,
                    "succession/d1/thesis": _GONE,
                    "succession/d2/name": _GATED,
                    "succession/d2/office": _GATED,
                    "succession/d2/thesis": _GATED,
                    "succession/d3/name": _GATED,
                    "succession/d3/office": _GATED,
                    "succession/d3/thesis": _GATED,
                    "institute/meaning": _REFUTED,
                    "lecture/speaker": _REFUTED,
                },
            ),
            "pellard_gauges": ExpectedScore(
                leaves=17,
                low=1 / 9,
                high=1 / 9,
                missed={
                    "gauges/kestrel_4/weight": _GONE,
                    "gauges/kestrel_4/battery": _GONE,
                    "gauges/kestrel_4/price": _GONE,
                    "gauges/kestrel_6/weight": _REFUTED,
                    "gauges/kestrel_6/battery": _REFUTED,
                    "gauges/kestrel_6/price": _REFUTED,
                    "gauges/heron_2/weight": _GONE,
                    "gauges/heron_2/battery": _GONE,
                    "gauges/heron_2/price": _GONE,
                    "choice/right": _REFUTED,
                    "older/status": _REFUTED,
                },
            ),
            "karrow_visit": ExpectedScore(
                leaves=14,
                low=1 / 14,
                high=1 / 14,
                missed={
                    "ferry/leaves": _REFUTED,
                    "ferry/arrives": _GATED,
                    "museum/opens": _GONE,
                    "museum/closes": _GONE,
                    "museum/ticket": _GONE,
                    "museum/wheelchairs": _GONE,
                    "talk/speaker": _REFUTED,
                    "talk/starts": _REFUTED,
                    "members/price": _REFUTED,
                },
            ),
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
