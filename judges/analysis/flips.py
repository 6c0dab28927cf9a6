"""Flipped leaves between two sides and their causes. Pure functions; results are JSON values.

Answers are paired by task and name. If both sides have exactly one answer to a task, the two are paired even
if their names differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field

from judges.analysis.overrides import judged_leaves
from rubrics.tree_json import GOOD_STATES, script_of

MAX_DESCRIPTION_CHARS = 500
"""Maximum length in characters. It identifies the leaf; the result has the full description."""


class Cause(StrEnum):
    """Cause of a flipped leaf: what differs between the two sides."""

    ANSWER = "answer"
    PAGE = "page"
    JUDGE = "judge"
    MODEL = "model"
    GATE = "gate"
    """Only one side judged the leaf: an earlier leaf has another outcome."""
    VOTE = "vote"
    """Nothing differs but the votes: same claim, pages, judge and model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """Compared fields of a leaf. ``claim`` is a digest, because claims are long and numerous."""

    description: str
    state: str
    claim: str | None
    sources: tuple[str, ...]
    prompt: str | None
    blocked_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableResult:
    """Compared fields of a result. ``pages`` maps URL to (outcome, digest of the text)."""

    result_id: str
    task_id: str
    answer_name: str
    answer_sha256: str
    judge: tuple[str | None, str | None]
    model: str
    pages: Mapping[str, tuple[str, str | None]]
    leaves: Mapping[str, Leaf]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipCause:
    """Cause of a flip: something that differs between the two sides."""

    cause: Cause
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Leaf whose outcome differs. An outcome is null if the tree of that side has no such leaf.

    A penalty ``applies`` or is ``avoided``.
    """

    task_id: str
    answer_name: str
    leaf: str
    description: Annotated[str, Field(description="First 500 characters of the description")]
    before: str | None
    after: str | None
    causes: list[FlipCause]
    result_before: str
    result_after: str

    @property
    def gain(self) -> int:
        """1 if the leaf is now good, -1 if it was good before, 0 if it is good on neither side."""
        return (self.after in GOOD_STATES) - (self.before in GOOD_STATES)


def comparable_result(result: Mapping[str, Any]) -> ComparableResult:
    """Extract the compared fields of a result."""
    script = script_of(result)
    return ComparableResult(
        result_id=str(result["id"]),
        task_id=str(result["task_id"]),
        answer_name=str(result["answer_name"]),
        answer_sha256=str(result.get("answer_sha256")),
        judge=(script.get("sha256"), script.get("version")),
        model=str(result.get("model")),
        pages={page["url"]: (str(page["outcome"]), page.get("sha256")) for page in result.get("pages") or ()},
        leaves={key: _leaf(leaf.data, leaf.state) for key, leaf in judged_leaves(result).items()},
    )


def flips(before: Iterable[ComparableResult], after: Iterable[ComparableResult]) -> list[Flip]:
    """Return the flips of all shared tasks, by task and answer. Leaves that no longer pass come first."""
    before_by_task, after_by_task = _by_task(before), _by_task(after)
    return [
        flip
        for task in sorted(before_by_task.keys() & after_by_task.keys())
        for old, new in _pairs(before_by_task[task], after_by_task[task])
        for flip in _flips(old, new)
    ]


def _leaf(data: Mapping[str, Any], state: str) -> Leaf:
    claim, prompt, blocker = data.get("claim"), data.get("prompt"), data.get("blocked_by")
    return Leaf(
        description=str(data.get("desc") or "")[:MAX_DESCRIPTION_CHARS],
        state=state,
        claim=None if claim is None else sha256(str(claim).encode("utf-8", "surrogatepass")).hexdigest(),
        sources=tuple(str(url) for url in data.get("sources") or ()),
        prompt=None if prompt is None else str(prompt),
        blocked_by=None if blocker is None else str(blocker),
    )


def _by_task(side: Iterable[ComparableResult]) -> dict[str, dict[str, ComparableResult]]:
    grouped: dict[str, dict[str, ComparableResult]] = {}
    for result in side:
        grouped.setdefault(result.task_id, {})[result.answer_name] = result
    return grouped


def _pairs(
    before: Mapping[str, ComparableResult], after: Mapping[str, ComparableResult]
) -> Sequence[tuple[ComparableResult, ComparableResult]]:
    if len(before) == len(after) == 1:
        return list(zip(before.values(), after.values(), strict=True))
    return [(before[name], after[name]) for name in sorted(before.keys() & after.keys())]


def _flips(before: ComparableResult, after: ComparableResult) -> list[Flip]:
    keys = [*before.leaves, *(key for key in after.leaves if key not in before.leaves)]
    flipped = []
    for key in keys:
        old, new = before.leaves.get(key), after.leaves.get(key)
        described_leaf = new or old
        if described_leaf is None or (old and old.state) == (new and new.state):
            continue
        flipped.append(
            Flip(
                task_id=after.task_id,
                answer_name=after.answer_name,
                leaf=key,
                description=described_leaf.description,
                before=None if old is None else old.state,
                after=None if new is None else new.state,
                causes=[FlipCause(cause=cause, detail=detail) for cause, detail in _causes(before, after, old, new)],
                result_before=before.result_id,
                result_after=after.result_id,
            )
        )
    return sorted(flipped, key=lambda flip: flip.gain)


def _causes(
    before: ComparableResult, after: ComparableResult, old: Leaf | None, new: Leaf | None
) -> Iterable[tuple[Cause, str]]:
    """Yield everything that differs, starting with the inputs of the leaf."""
    same_judge = before.judge == after.judge
    if old is None or new is None:
        yield (
            (Cause.ANSWER, "the judge built another tree from the answer")
            if same_judge
            else (Cause.JUDGE, "the judge builds another tree")
        )
        return
    causes = [*_answer_causes(before, after, old, new), *_page_causes(before, after, old, new)]
    if not same_judge:
        causes.append((Cause.JUDGE, "the judge's file changed"))
    elif old.prompt and new.prompt and old.prompt != new.prompt:
        causes.append((Cause.JUDGE, f"{old.prompt} → {new.prompt}"))
    if before.model != after.model:
        causes.append((Cause.MODEL, f"{before.model} → {after.model}"))
    yield from causes or [(Cause.VOTE, "same claim, pages, judge and model")]


def _answer_causes(
    before: ComparableResult, after: ComparableResult, old: Leaf, new: Leaf
) -> Iterable[tuple[Cause, str]]:
    if "skipped" in (old.state, new.state):
        gated_leaf = new if new.state == "skipped" else old
        yield Cause.GATE, f"skipped because of {gated_leaf.blocked_by or 'an earlier leaf'}"
    if before.answer_sha256 == after.answer_sha256:
        return
    if old.claim != new.claim:
        yield Cause.ANSWER, "the claim in the answer changed"
    elif old.sources != new.sources:
        yield Cause.ANSWER, "the answer cites other pages"
    elif old.claim is None:
        yield Cause.ANSWER, "the text of the answer changed"


def _page_causes(
    before: ComparableResult, after: ComparableResult, old: Leaf, new: Leaf
) -> Iterable[tuple[Cause, str]]:
    for url in sorted(set(old.sources) & set(new.sources)):
        old_page, now = before.pages.get(url), after.pages.get(url)
        if old_page is None or now is None or old_page == now:
            continue
        yield Cause.PAGE, f"{url}: " + (f"{old_page[0]} → {now[0]}" if old_page[0] != now[0] else "its text changed")
