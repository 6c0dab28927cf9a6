"""Published figures of Mind2Web, for comparison (contracts/mind2web.md, 7). In percent, as means over tasks (macro)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SPLITS: Final = ("test_task", "test_website", "test_domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """Published figures of one system on one split, in percent. None: not published."""

    system: str
    setting: str
    split: str
    element: float
    operation: float | None = None
    step: float | None = None
    task_success: float | None = None


_TOP_50 = "top 50"
_FEW = "top 10, 50 tasks"
_PAPER: Final = (
    ("DeBERTa-B classification", "", ((26.8,), (21.6,), (24.5,))),
    ("Flan-T5-B generation", "", ((20.2, 52.0, 17.5, 0.0), (13.9, 44.7, 11.0, 0.0), (14.2, 44.7, 11.9, 0.4))),
    ("MindAct Flan-T5-B", _TOP_50, ((43.6, 76.8, 41.0, 4.0), (32.1, 67.6, 29.5, 1.7), (33.9, 67.3, 31.6, 1.6))),
    ("MindAct Flan-T5-L", _TOP_50, ((53.4, 75.7, 50.3, 7.1), (39.2, 67.1, 35.3, 1.1), (39.7, 67.2, 37.3, 2.7))),
    ("MindAct Flan-T5-XL", _TOP_50, ((55.1, 75.7, 52.0, 5.2), (42.0, 65.2, 38.9, 5.1), (42.1, 66.5, 39.6, 2.9))),
    ("GPT-3.5, 3 examples", _TOP_50, ((20.3, 56.6, 17.4, 0.8), (19.3, 48.8, 16.2, 0.6), (21.6, 52.8, 18.6, 1.0))),
    ("GPT-4, 3 examples", _FEW, ((41.6, 60.6, 36.2, 2.0), (35.8, 51.1, 30.1, 2.0), (37.1, 46.5, 26.4, 2.0))),
)
RANKER_RECALL_AT_50: Final = {"test_task": 88.9, "test_website": 85.3, "test_domain": 85.7}


def published(split: str) -> list[PublishedRow]:
    """Return the rows of the paper's Table 2 for a split, or an empty list for an unknown split."""
    if split not in SPLITS:
        return []
    place = SPLITS.index(split)
    return [
        PublishedRow(system=system, setting=setting, split=split, **_named(figures[place]))
        for system, setting, figures in _PAPER
    ]


def _named(figures: tuple[float, ...]) -> dict[str, float]:
    return dict(zip(("element", "operation", "step", "task_success"), figures, strict=False))
