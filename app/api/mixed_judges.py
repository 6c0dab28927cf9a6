"""Refusal to mix the scores of different judges in one figure, with the figures of each judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query

from answers.submission import MAX_LABEL_CHARS
from app.api.problems import Problem

MixQuery = Annotated[bool, Query(description="Accept scores of different judges in one figure or comparison")]
JudgeQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=MAX_LABEL_CHARS,
        pattern="^[!-~]+$",
        description="Only answers of this judge, as named in `judges`. Answers without a result always count",
    ),
]
_DETAIL = (
    "The scores come from different judges: {judges}. Select one with judge, judge the answers again with "
    "one model (POST /v1/rescores), or accept it with mix_judges=true"
)


def total_judges(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the number of answers by judge over several figures, most first."""
    return dict(sum(map(Counter, counts), Counter[str]()).most_common())


def refuse_to_mix(
    judges: Mapping[str, int], figures: Mapping[str, Mapping[str, Any]], path: str | None = None
) -> Problem:
    """Return the refusal. ``figures`` has the figures of each judge, which ``path`` returns with ``judge=NAME``."""
    offered: Sequence[Mapping[str, Any]] = [
        {"judge": judge, "answers": answers, **figures.get(judge, {})}
        | ({} if path is None else {"url": f"{path}{'&' if '?' in path else '?'}judge={quote(judge, safe='')}"})
        for judge, answers in judges.items()
    ]
    listed = ", ".join(f"{judge} ({answers} answers)" for judge, answers in judges.items())
    return Problem(409, "MIXED_JUDGES", _DETAIL.format(judges=listed), fields={"judges": offered})
