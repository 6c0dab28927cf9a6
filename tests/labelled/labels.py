"""Labelled pages, and the comparison of a classification with the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cache.capture import EVIDENCE_OUTCOMES, CaptureOutcome

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPage:
    """A page with its correct outcome. ``hard``: a good page with signals of a bad one."""

    name: str
    html: str
    outcome: CaptureOutcome
    url: str
    final_url: str
    status: int
    hard: bool

    @property
    def is_good(self) -> bool:
        return self.outcome in EVIDENCE_OUTCOMES


@cache
def labelled_pages() -> tuple[LabelledPage, ...]:
    """Return all labelled pages, sorted by name."""
    files = sorted(file for kind in ("good", "bad") for file in (_FOLDER / kind).glob("*.html"))
    return tuple(map(_read, files))


def _read(file: Path) -> LabelledPage:
    first, _, html = file.read_text(encoding="utf-8").partition("\n")
    label = json.loads(first.removeprefix("<!--").removesuffix("-->"))
    return LabelledPage(
        name=file.stem,
        html=html,
        outcome=CaptureOutcome(label.get("outcome", "ok")),
        url=label["url"],
        final_url=label.get("final_url", label["url"]),
        status=label.get("status", 200),
        hard=label.get("hard", False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """Detection of bad pages. ``exact``: number of bad pages with the correct outcome.

    ``false_alarms`` and ``missed`` are names of pages.
    """

    found: int
    bad: int
    pages: int
    exact: int
    false_alarms: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + len(self.false_alarms))

    @property
    def recall(self) -> float:
        return self.found / max(1, self.bad)


def compare_with_labels(outcomes: Mapping[str, CaptureOutcome]) -> Detection:
    """Compare outcomes, by name of page, with the labels of these pages."""
    pages = [page for page in labelled_pages() if page.name in outcomes]
    bad = [page for page in pages if not page.is_good]
    found = [page for page in bad if outcomes[page.name] not in EVIDENCE_OUTCOMES]
    return Detection(
        found=len(found),
        bad=len(bad),
        pages=len(pages),
        exact=sum(outcomes[page.name] is page.outcome for page in bad),
        false_alarms=tuple(
            page.name for page in pages if page.is_good and outcomes[page.name] not in EVIDENCE_OUTCOMES
        ),
        missed=tuple(page.name for page in bad if outcomes[page.name] in EVIDENCE_OUTCOMES),
    )
