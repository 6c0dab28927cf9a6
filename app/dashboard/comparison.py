"""Two sides judged on the same tasks: for every leaf that came out otherwise, why. Pure.

How far the sides are apart and how sure that is, ``GET /v1/compare`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.dashboard.outline import Node, outline


class Cause(StrEnum):
    """What was not the same when a leaf came out otherwise."""

    ANSWER = "answer"
    PAGE = "page"
    JUDGE = "judge"
    MODEL = "model"
    GATE = "gate"
    """It was only looked at on one side: something before it came out otherwise."""
    VOTE = "vote"
    """Nothing: the same claim, pages, judge and model. The model voted otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One result, as far as it is compared. ``pages`` are (outcome, digest of the text) by URL."""

    result_id: str
    task_id: str
    answer_name: str
    answer_sha256: str
    judge: tuple[str | None, str | None]
    model: str
    pages: Mapping[str, tuple[str, str | None]]
    leaves: Mapping[str, Node]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A leaf whose outcome is not the same on both sides. None: that side's tree has no such leaf."""

    key: str
    desc: str
    before: str | None
    after: str | None
    causes: tuple[tuple[Cause, str], ...]

    @property
    def gain(self) -> int:
        """1: it passes now; -1: it passed before; 0: neither side passes."""
        return (self.after == "passed") - (self.before == "passed")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPair:
    """The same answer's name on both sides, and the leaves that flipped."""

    before: Judged
    after: Judged
    flips: tuple[Flip, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPair:
    """One task: what the API says of both sides' scores, and its answers on both."""

    figures: Mapping[str, Any]
    answers: tuple[AnswerPair, ...]

    @property
    def task_id(self) -> str:
        return str(self.figures["task_id"])

    @property
    def flips(self) -> int:
        return sum(len(pair.flips) for pair in self.answers)


def judged(result: Mapping[str, Any]) -> Judged:
    """What of a result is compared."""
    judge = result.get("judge") or {}
    return Judged(
        result_id=str(result["id"]),
        task_id=str(result["task_id"]),
        answer_name=str(result["answer_name"]),
        answer_sha256=str(result.get("answer_sha256")),
        judge=(judge.get("script_sha256"), judge.get("version")),
        model=str(result.get("model")),
        pages={page["url"]: (str(page["outcome"]), page.get("sha256")) for page in result.get("pages") or ()},
        leaves={leaf.key: leaf for leaf in outline(result).leaves},
    )


def paired(
    tasks: Iterable[Mapping[str, Any]], before: Iterable[Judged], after: Iterable[Judged]
) -> tuple[TaskPair, ...]:
    """The tasks of a comparison with the answers that have the same name on both sides."""
    left, right = _by_task(before), _by_task(after)
    return tuple(_task(task, left.get(task["task_id"], {}), right.get(task["task_id"], {})) for task in tasks)


def flips(before: Judged, after: Judged) -> tuple[Flip, ...]:
    """The leaves that came out otherwise, those that were lost first."""
    keys = [*before.leaves, *(key for key in after.leaves if key not in before.leaves)]
    found = []
    for key in keys:
        old, new = before.leaves.get(key), after.leaves.get(key)
        if (old and old.outcome) == (new and new.outcome):
            continue
        shown = new or old
        found.append(
            Flip(
                key=key,
                desc=shown.desc if shown else "",
                before=None if old is None else old.outcome,
                after=None if new is None else new.outcome,
                causes=tuple(_causes(before, after, old, new)),
            )
        )
    return tuple(sorted(found, key=lambda flip: flip.gain))


def _by_task(side: Iterable[Judged]) -> dict[str, dict[str, Judged]]:
    found: dict[str, dict[str, Judged]] = {}
    for one in side:
        found.setdefault(one.task_id, {})[one.answer_name] = one
    return found


def _task(figures: Mapping[str, Any], before: Mapping[str, Judged], after: Mapping[str, Judged]) -> TaskPair:
    pairs = [(before[name], after[name]) for name in sorted(before.keys() & after.keys())]
    return TaskPair(
        figures=figures, answers=tuple(AnswerPair(before=old, after=new, flips=flips(old, new)) for old, new in pairs)
    )


def _causes(before: Judged, after: Judged, old: Node | None, new: Node | None) -> Iterable[tuple[Cause, str]]:
    """Everything that was not the same; what a leaf was judged by first."""
    same_judge = before.judge == after.judge
    if old is None or new is None:
        yield (Cause.ANSWER, "the judge built another tree from it") if same_judge else (Cause.JUDGE, "another tree")
        return
    found = [*_asked_otherwise(before, after, old, new), *_pages_otherwise(before, after, old, new)]
    if not same_judge:
        found.append((Cause.JUDGE, "the judge's file changed"))
    elif old.facts.get("prompt") != new.facts.get("prompt") and old.facts.get("prompt") and new.facts.get("prompt"):
        found.append((Cause.JUDGE, f"{old.facts['prompt']} → {new.facts['prompt']}"))
    if before.model != after.model:
        found.append((Cause.MODEL, f"{before.model} → {after.model}"))
    yield from found or [(Cause.VOTE, "same claim, pages, judge and model")]


def _asked_otherwise(before: Judged, after: Judged, old: Node, new: Node) -> Iterable[tuple[Cause, str]]:
    if "skipped" in (old.outcome, new.outcome):
        gated = new if new.outcome == "skipped" else old
        yield Cause.GATE, f"behind {gated.facts.get('blocked_by') or 'an earlier leaf'}"
    if before.answer_sha256 == after.answer_sha256:
        return
    if old.facts.get("claim") != new.facts.get("claim"):
        yield Cause.ANSWER, "it says something else"
    elif (old.facts.get("sources") or []) != (new.facts.get("sources") or []):
        yield Cause.ANSWER, "it cites other pages"
    elif old.facts.get("claim") is None:
        yield Cause.ANSWER, "it is another text"


def _pages_otherwise(before: Judged, after: Judged, old: Node, new: Node) -> Iterable[tuple[Cause, str]]:
    for url in set(old.facts.get("sources") or ()) & set(new.facts.get("sources") or ()):
        was, now = before.pages.get(url), after.pages.get(url)
        if was is None or now is None or was == now:
            continue
        yield Cause.PAGE, f"{url}: " + (f"{was[0]} → {now[0]}" if was[0] != now[0] else "its text changed")
