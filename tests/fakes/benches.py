"""Bench reports of scripted judges on 60 labelled claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from judges.analysis.labels import HumanDecision, Label, RecordedVerdict
from judges.analysis.meta_eval.bench import SetTally, bench_report, bench_row
from judges.analysis.meta_eval.items import PartialRule, items_of
from judges.analysis.meta_eval.judge_agreement import agreement_of_recorded
from rubrics.verdict import Outcome

BENCH_JUDGES: Mapping[str, tuple[int, float | None]] = {
    "careful": (12, 0.01),
    "middling": (5, 0.0009),
    "quick": (3, 0.0008),
    "wordlist": (2, 0.0),
}
"""Name of each judge, after how many claims it errs, and the price of a claim."""
_START = datetime(2026, 11, 20, tzinfo=UTC)


def bench_of(
    day: int, names: Sequence[str], judges: Mapping[str, tuple[int, float | None]] = BENCH_JUDGES
) -> dict[str, Any]:
    """Return the report of a bench with label sets of these names. A higher ``day`` is newer."""
    sets, rows = [], []
    for name in names:
        items, tally = items_of(_labels(60, judges)), SetTally(name)
        for item in items:
            tally.add(item)
        sets.append(tally.as_json("a" * 64))
        rows += [bench_row(name, one, lambda model: None) for one in agreement_of_recorded(items)]
    return bench_report(
        sets,
        rows,
        id=f"bench_{day:024x}",
        at=_START + timedelta(days=day),
        tool_version="0.1.0",
        rule=PartialRule.FAILED,
        sample=None,
    )


def _labels(count: int, judges: Mapping[str, tuple[int, float | None]]) -> list[Label]:
    def verdict(n: int, model: str) -> RecordedVerdict:
        period, usd = judges[model]
        is_right = n % period != 1
        return RecordedVerdict(
            outcome=Outcome.PASSED if (n % 2 == 0) is is_right else Outcome.FAILED,
            model=model,
            usd=usd,
            input_tokens=1000,
            output_tokens=50,
            seconds=1.5,
        )

    return [
        Label(
            human=HumanDecision.PASSED if n % 2 == 0 else HumanDecision.FAILED,
            claim=f"Claim {n}",
            judges=tuple(verdict(n, model) for model in judges),
        )
        for n in range(count)
    ]
