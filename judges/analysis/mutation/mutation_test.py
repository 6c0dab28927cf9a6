"""Report of a mutation test: which expected changes of leaves were missed, and which changes had no reason. Pure.

A leaf must change if it passed on the original answer, has a claim, and the mutation leaves nothing that could support
the claim. Code decides this, without a model:

- Sources: no page that the claim would still have contains all of its numbers and names
  (``judges.grounding.term_overlap.missing_terms``).
- Values from the answer: a value of the claim was replaced by one that occurs in no page, or was removed. For a claim
  about the answer alone this counts only if the claim names the value twice, because it then compares the extracted
  value with the expected one.

Leaves decided by code are never expected to change, because their inputs are unknown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from cache.urls import canonical_key
from judges.analysis.mutation.leaves import ObservedLeaf, ObservedRun, observed_run
from judges.analysis.mutation.mutations import (
    Mutation,
    MutationKind,
    cited_keys,
    count_value,
    mutations_of,
    read_count,
    values_of,
    without_urls,
)
from judges.grounding.term_overlap import missing_terms, stems_of
from rubrics.verdict import Outcome

REPORT_VERSION: Final = 1


class ChangeResult(StrEnum):
    """What happened to a leaf that had to change."""

    MOVED = "moved"
    """Detected: the leaf no longer passes."""
    GATED = "gated"
    """Skipped because another leaf failed, so the leaf itself was not tested."""
    NOT_JUDGED = "not_judged"
    """Not judged because of a fault."""
    GONE = "gone"
    """The judge no longer declares the leaf."""
    REPLACED = "replaced"
    """The leaf is now about the next item of a list, and the same claim about that item passed before."""
    DEAF = "deaf"
    """Missed: it passes with the same request as before, because the answer's value does not reach it."""
    FIXED = "fixed"
    """Missed: it passes with the same request as before, although the judge extracted the change. The claim is fixed in
    the judge, and the answer scores for a statement that it does not contain."""
    UNSOURCED = "unsourced"
    """Missed: without a page, the judge verifies the claim by the answer alone, and it passes."""
    LENIENT = "lenient"
    """Missed: it passes although no evidence supports the claim."""


MISSED: Final = (ChangeResult.DEAF, ChangeResult.FIXED, ChangeResult.UNSOURCED, ChangeResult.LENIENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedChange:
    """Leaf that had to change, before and after. ``after`` is None if the judge no longer declares it."""

    before: ObservedLeaf
    after: ObservedLeaf | None
    fate: ChangeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class UnexpectedChange:
    """Leaf that changed although none of its inputs changed."""

    before: ObservedLeaf
    after: ObservedLeaf


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationResult:
    """Result of one mutation. ``others`` are the keys of leaves that changed for a reason, but did not have to."""

    mutation: Mutation
    watched: tuple[ExpectedChange, ...]
    strays: tuple[UnexpectedChange, ...]
    others: tuple[str, ...]
    not_judged: tuple[str, ...]

    @property
    def missed(self) -> tuple[ExpectedChange, ...]:
        return tuple(one for one in self.watched if one.fate in MISSED)


def compare_runs(mutation: Mutation, base: ObservedRun, after: ObservedRun, expectation: Expectation) -> MutationResult:
    """Compare the run on a changed answer with the run on the original answer."""
    watched = []
    expected = expectation.of(mutation)
    untouched = {leaf.question for leaf in base.passed} - {leaf.question for leaf in expected}
    for leaf in expected:
        now = after.leaves.get(leaf.key)
        fate: ChangeResult | None = _fate(leaf, now)
        if fate is ChangeResult.DEAF:
            fate = _cause_of_same_request(leaf, mutation, base, after, expectation)
        if fate is ChangeResult.LENIENT and now is not None and now.question in untouched:
            fate = ChangeResult.REPLACED
        if fate is not None:
            watched.append(ExpectedChange(before=leaf, after=after.leaves.get(leaf.key), fate=fate))
    known = {one.before.key for one in watched}
    strays, others = [], []
    for key, leaf_before in base.leaves.items():
        now = after.leaves.get(key)
        if key in known or now is None or now.outcome is leaf_before.outcome or now.outcome is Outcome.NOT_JUDGED:
            continue
        if _has_reason(leaf_before, now, mutation, base, after):
            others.append(key)
        else:
            strays.append(UnexpectedChange(before=leaf_before, after=now))
    return MutationResult(
        mutation=mutation,
        watched=tuple(watched),
        strays=tuple(strays),
        others=tuple(others),
        not_judged=tuple(key for key in after.not_judged if base.leaves.get(key) != after.leaves[key]),
    )


def _fate(before: ObservedLeaf, now: ObservedLeaf | None) -> ChangeResult:
    if now is None:
        return ChangeResult.GONE
    if now.outcome is Outcome.PASSED:
        if now.sources is None and before.sources is not None:
            return ChangeResult.UNSOURCED
        return ChangeResult.DEAF if now.question == before.question else ChangeResult.LENIENT
    return {Outcome.SKIPPED: ChangeResult.GATED, Outcome.NOT_JUDGED: ChangeResult.NOT_JUDGED}.get(
        now.outcome, ChangeResult.MOVED
    )


def _cause_of_same_request(
    leaf: ObservedLeaf, mutation: Mutation, base: ObservedRun, after: ObservedRun, expectation: Expectation
) -> ChangeResult | None:
    """Return why the request of a leaf did not change; None if that is correct.

    It is correct if the sources come from the judge and not from the answer, or if the changed value is a single
    character, which may be in the claim for another reason.
    """
    lost = list(expectation.lost_values(leaf, mutation))
    if not lost:
        removed_sources = frozenset(leaf.sources or ()) - expectation.sources_after(leaf, mutation)
        return None if removed_sources and not removed_sources & after.pages else ChangeResult.DEAF
    if any(read_count(value, after) >= read_count(value, base) for value in lost):
        return ChangeResult.DEAF
    return ChangeResult.FIXED if any(len(value) > 1 for value in lost) else None


def _has_reason(
    before: ObservedLeaf, now: ObservedLeaf, mutation: Mutation, base: ObservedRun, after: ObservedRun
) -> bool:
    """Return whether the mutation explains the change of a leaf."""
    if Outcome.SKIPPED in (before.outcome, now.outcome) or now.question != before.question:
        return True
    if before.claim is None:
        return base.values != after.values
    return before.sources is None and mutation.kind is not MutationKind.UNTOUCHED  # the answer itself is the evidence


def report_json(base: ObservedRun, runs: Sequence[MutationResult], *, seed: int, model: str) -> dict[str, Any]:
    exercised = {one.before.key for run in runs for one in run.watched if one.fate is not ChangeResult.GATED}
    return {
        "report_version": REPORT_VERSION,
        "seed": seed,
        "model": model,
        "leaves": {
            "all": len(base.leaves),
            "watched": len(base.passed),
            "never_tested": [leaf.key for leaf in base.passed if leaf.key not in exercised],
        },
        "changes": len(runs),
        "expected": sum(len(run.watched) for run in runs),
        "missed": sum(len(run.missed) for run in runs),
        "strays": sum(len(run.strays) for run in runs),
        "not_judged": sum(len(run.not_judged) for run in runs),
        "mutations": [_tried(run) for run in runs],
    }


def _tried(run: MutationResult) -> dict[str, Any]:
    mutation = run.mutation
    return {
        "kind": mutation.kind.value,
        "title": mutation.title,
        "piece": mutation.piece,
        "by": mutation.by or None,
        "expected": [
            {
                "leaf": one.before.key,
                "fate": one.fate.value,
                "claim_before": one.before.claim,
                "claim_after": one.after and one.after.claim,
                "outcome_after": one.after and one.after.outcome.value,
                "reason_after": one.after and one.after.reason,
            }
            for one in run.watched
        ],
        "strays": [
            {
                "leaf": stray.before.key,
                "claim": stray.before.claim,
                "outcome_before": stray.before.outcome.value,
                "outcome_after": stray.after.outcome.value,
            }
            for stray in run.strays
        ],
        "also_moved": list(run.others),
        "not_judged": list(run.not_judged),
    }


class Expectation:
    """Expected changes of the leaves of one run. ``pages``: the texts of the pages that the answer cites, by URL."""

    def __init__(self, answer: str, base: ObservedRun, pages: Mapping[str, str]) -> None:
        self._answer = answer
        self._base = base
        self._stems = {canonical_key(url): stems_of(text) for url, text in pages.items()}
        self._cited = cited_keys(answer)

    def of(self, mutation: Mutation) -> tuple[ObservedLeaf, ...]:
        """Return the leaves that ``mutation`` must change, in tree order."""
        if mutation.kind is MutationKind.UNTOUCHED:
            return ()
        return tuple(leaf for leaf in self._base.passed if self._must_change(leaf, mutation))

    def _must_change(self, leaf: ObservedLeaf, mutation: Mutation) -> bool:
        return self._loses_its_sources(leaf, mutation) or any(True for _ in self.lost_values(leaf, mutation))

    def _loses_its_sources(self, leaf: ObservedLeaf, mutation: Mutation) -> bool:
        """Return whether none of the remaining sources contains all numbers and names of the claim."""
        if not leaf.sources:
            return False
        remaining_sources = self.sources_after(leaf, mutation)
        if remaining_sources == frozenset(leaf.sources):
            return False
        # A page without text is no evidence, so it cannot support the claim.
        return all(
            key not in self._stems or missing_terms(leaf.claim or "", self._stems[key]) for key in remaining_sources
        )

    def sources_after(self, leaf: ObservedLeaf, mutation: Mutation) -> frozenset[str]:
        """Return the keys of the leaf's sources after the mutation, as far as they come from the answer."""
        before, still_cited = frozenset(leaf.sources or ()), cited_keys(mutation.text)
        after = {key for key in before if key not in self._cited or key in still_cited}
        if mutation.kind is MutationKind.OTHER_PAGE and canonical_key(mutation.piece) in before:
            after.add(canonical_key(mutation.by))
        return frozenset(after)

    def lost_values(self, leaf: ObservedLeaf, mutation: Mutation) -> Iterable[str]:
        """Yield the values that the claim depends on and that the changed answer no longer contains."""
        claim, remaining = leaf.claim or "", without_urls(mutation.text)
        for value in values_of(claim, self._base, self._answer):
            if not count_value(value, remaining) and (leaf.sources is not None or count_value(value, claim) > 1):
                yield value


JudgeText: TypeAlias = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Judges the text of an answer and returns the result, or a ``get_summary()``."""


class MutationTest:
    """Mutation test of one judge on one answer. ``judge`` is called for the answer and for each mutation."""

    def __init__(self, judge: JudgeText, answer: str) -> None:
        self._judge = judge
        self._answer = answer

    async def base(self) -> ObservedRun:
        """Return the run on the original answer."""
        return observed_run(await self._judge(self._answer))

    async def run(
        self,
        base: ObservedRun,
        pages: Mapping[str, str],
        *,
        seed: int,
        per_kind: int | None,
        before: Callable[[int, int, Mutation], None] = lambda done, total, mutation: None,
    ) -> tuple[MutationResult, ...]:
        """Run the mutations. ``pages``: texts of the cited pages by URL. ``before`` is called before each mutation."""
        expectation = Expectation(self._answer, base, pages)
        mutations = mutations_of(
            self._answer,
            base,
            pages,
            seed=seed,
            per_kind=per_kind,
            is_detectable=lambda change: bool(expectation.of(change)),
        )
        runs = []
        for done, mutation in enumerate(mutations):
            before(done, len(mutations), mutation)
            runs.append(compare_runs(mutation, base, observed_run(await self._judge(mutation.text)), expectation))
        return tuple(runs)
