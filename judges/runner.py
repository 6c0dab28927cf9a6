"""Runner for native judges: one judge, one answer.

The judge's coroutine declares a rubric; the runner then settles every leaf. The runner is the only place that turns an
exception of a task file into ``JudgeBug``, and a failed extraction into leaves that are not judged.

Equal requests are sent once, and which caller is charged depends on the order in which they arrive. In a result, the
first leaf in tree order that needed a request carries its cost; every other leaf has a cached call. Costs move only
between equal requests, so totals do not change.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel

from answers.submission import Answer
from cache.capture import Evidence
from cache.errors import CacheError
from judges.context import JudgeContext, extraction_failed_verdict
from judges.cpu_bound import run_on_leaves
from judges.errors import ExtractionFailed, JudgeBug
from judges.extractor import ExtractionQuestion, ExtractorBase
from judges.forbidden_sources import NONE_FORBIDDEN, ForbiddenSources
from judges.prompting.prompts import load_prompt
from judges.prompting.rendering import TRANSCRIBE
from judges.registry import Judge
from judges.settling import JudgeClaim, Progress, Settler
from judges.source_code import judge_code
from judges.source_policy import verdict_without_evidence
from judges.verifier import DEFAULT_TRIALS, ClaimJudge, ClaimQuestion, EvidenceLookup
from rubrics.rubric import Rubric
from rubrics.scoring import Score, bounded_score, score, score_strict, score_unclipped
from rubrics.tree import RubricNode, leaves_below
from rubrics.verdict import Claim, ModelRequest, Outcome, QuoteOrigin, Reason, Usage, Verdict, Vote

_Costs: TypeAlias = dict[str, list[Usage]]
"""Costs by request key, in the order of assignment."""


def assign_usage_in_tree_order(
    verdicts: Sequence[Verdict], requests: Iterable[ModelRequest] | None = None
) -> list[Verdict]:
    """Return the verdicts of an answer's leaves, given in tree order, with costs assigned in that order.

    ``requests`` are all requests of the answer, if some belong to no leaf. Those, and the unneeded ones, get the costs
    that no leaf takes.
    """
    if requests is None:
        requests = [request for verdict in verdicts for request in (*verdict.requests, *verdict.unneeded)]
    costs = _by_key(requests)
    for cost in costs.values():
        cost.sort(key=_size, reverse=True)
    charged = [_charged(verdict, costs) if verdict.requests else verdict for verdict in verdicts]
    return [
        replace(verdict, unneeded=_assigned(verdict.unneeded, costs)) if verdict.unneeded else verdict
        for verdict in charged
    ]


def _by_key(requests: Iterable[ModelRequest]) -> _Costs:
    costs: _Costs = defaultdict(list)
    for request in requests:
        costs[request.key].append(request.usage)
    return costs


def _size(usage: Usage) -> tuple[int, int, int, float]:
    return usage.calls, usage.input_tokens, usage.output_tokens, usage.usd or 0.0


def _charged(verdict: Verdict, costs: _Costs) -> Verdict:
    requests = _assigned(verdict.requests, costs)
    own = _by_key(requests)
    return replace(
        verdict,
        requests=requests,
        votes=tuple(_vote(vote, own) for vote in verdict.votes),
        usage=sum((request.usage for request in requests), Usage()),
    )


def _assigned(requests: Iterable[ModelRequest], costs: _Costs) -> tuple[ModelRequest, ...]:
    return tuple(replace(request, usage=costs[request.key].pop(0)) if request.key else request for request in requests)


def _vote(vote: Vote, own: _Costs) -> Vote:
    """Return the vote, marked as cached if its request cost nothing in this verdict."""
    if not vote.request or not own[vote.request]:
        return vote
    usage = own[vote.request].pop(0)
    return replace(vote, cached=usage.cached_calls > 0 and usage.calls == 0)


log = logging.getLogger(__name__)

S = TypeVar("S", bound=BaseModel)

UNREAD_LEAF = "extraction"
"""Id of the leaf that represents everything a judge could not declare because an extraction failed."""
UNDECIDED_LEAF = "undecided"
"""Id of the leaf that represents what a judge may have left out because it continued without what it asked for."""
_UNDECLARED: Final = {
    UNREAD_LEAF: "The values can be extracted from the answer",
    UNDECIDED_LEAF: "Everything that the judge asked for is known",
}
_UNFINISHED: Final = Verdict(
    outcome=Outcome.NOT_JUDGED,
    reason=Reason.TIMEOUT,
    reasoning="The judge did not wait for the end of an extraction or settlement.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTools:
    """Services that a run uses: a model in two roles, and pages. ``trials`` is the number of votes per claim.

    Claims whose sources are all ``forbidden`` fail without a request.
    """

    verifier: ClaimJudge
    extractor: ExtractorBase
    evidence_for: EvidenceLookup
    trials: int = DEFAULT_TRIALS
    forbidden: ForbiddenSources = NONE_FORBIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionRecord:
    """One extraction as stored in the result. If it failed, ``value`` is None and ``error`` gives the reason."""

    name: str
    value: dict[str, Any] | None = None
    prompt: str | None = None
    usage: Usage = field(default_factory=Usage)
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Outcome of judging one answer once: the settled rubric and all extractions."""

    judge: Judge
    answer: Answer
    rubric: Rubric
    model: str
    extractions: tuple[ExtractionRecord, ...] = ()
    undeclared: Verdict | None = None
    """Verdict on the parts that the rubric lacks because of a fault, if any. The score is then open."""

    @property
    def score(self) -> Score:
        return score(self.rubric) if self.undeclared is None else bounded_score(0.0, 1.0)

    @property
    def score_strict(self) -> Score:
        return score_strict(self.rubric) if self.undeclared is None else bounded_score(0.0, 1.0)

    @property
    def score_unclipped(self) -> Score | None:
        """Score before it is clipped to 0..1; None if the rubric has no penalty, or lacks parts."""
        return score_unclipped(self.rubric) if self.undeclared is None else None

    @property
    def nothing_applies(self) -> bool:
        """Whether the judge declared no leaf for this answer, so that its result has no score."""
        return self.undeclared is None and not self.rubric.root.children

    @property
    def complete(self) -> bool:
        """Whether every leaf has a verdict other than ``not_judged``."""
        return all(verdict.outcome is not Outcome.NOT_JUDGED for verdict in self.verdicts)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(leaf.verdict for leaf in self.rubric.leaves() if leaf.verdict is not None)

    @property
    def usage(self) -> Usage:
        spent = [*(extraction.usage for extraction in self.extractions), *(verdict.spent for verdict in self.verdicts)]
        return sum(spent, Usage())

    @property
    def prompts(self) -> tuple[str, ...]:
        """``id@version`` of every prompt that was sent, sorted."""
        sent = {extraction.prompt for extraction in self.extractions} | {verdict.prompt for verdict in self.verdicts}
        if any(verdict.grounding is QuoteOrigin.IMAGE for verdict in self.verdicts):
            sent.add(load_prompt(TRANSCRIBE).ref)
        return tuple(sorted(prompt for prompt in sent if prompt is not None))


async def run_judge(
    judge: Judge,
    answer: Answer,
    tools: JudgeTools,
    *,
    progress: Progress | None = None,
    deadline_s: float | None = None,
) -> Judgement:
    """Judge ``answer``. Leaves that are not settled within ``deadline_s`` are not judged (``timeout``).

    Raises:
        JudgeBug: the task file raised, did not return in time, or declared a rubric that cannot be settled.
    """
    if judge.coroutine is None:
        raise JudgeBug(f"the judge of {judge.task!r} is a public script; run it with the mind2web2 host")
    rubric = Rubric(judge.task, judge.description or judge.task, judge.strategy)
    runner_time = _RunnerTime()
    reader = _Reader(answer, judge.description, tools, runner_time)
    settler = Settler(rubric, _judging(judge, answer, tools), progress, known=tools.forbidden.verdict)
    settling = _Settling(rubric, settler, runner_time)
    context = JudgeContext(
        rubric=rubric, task=judge.description, answer=answer, reading=reader, settling=settling.settle
    )
    unread: str | None = None
    limit = asyncio.timeout(deadline_s)
    try:
        async with limit:
            try:
                with judge_code(f"the judge of {judge.task!r} raised"), _failed_extraction_alone():
                    await judge.coroutine(context)
            except ExtractionFailed as error:
                unread = str(error)
                _leave_unread(rubric, unread)
            if limit.expired():  # the judge has ignored its cancellation
                raise TimeoutError
            runner_time.has_returned = True
            await asyncio.sleep(0)  # declaring many leaves takes as long as settling them
            await settler.settle(rubric.root)
    except TimeoutError as error:
        if not limit.expired():
            raise
        if runner_time.is_unfinished:
            unread = f"extraction not finished within {deadline_s:g} s"
            _leave_unread(rubric, unread)
        elif not runner_time.has_returned:
            raise JudgeBug(f"the judge of {judge.task!r} did not return within {deadline_s:g} s") from error
        else:
            late = f"not settled within {deadline_s:g} s"
            leaves = [leaf for leaf in rubric.leaves() if leaf.claim is not None or leaf.check is not None]
            _leave_open(leaves, Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.TIMEOUT, reasoning=late))
    if unread is None:  # a judge that caught the error could not declare what depends on the values
        unread = next((record.error for record in reader.records if record.error is not None), None)
    undeclared = settling.unknown or (_UNFINISHED if runner_time.is_unfinished else None)
    if unread is not None:
        undeclared = extraction_failed_verdict(unread)
    if undeclared is not None:
        _add_undeclared(rubric, UNDECIDED_LEAF if unread is None else UNREAD_LEAF, undeclared)
    await tools.verifier.before_result()
    await run_on_leaves(lambda: _assign_usage(rubric), len(rubric))
    judgement = Judgement(
        judge=judge,
        answer=answer,
        rubric=rubric,
        model=tools.verifier.model,
        extractions=tuple(reader.records),
        undeclared=undeclared,
    )
    log.info("answer judged", extra={"task_id": judge.task, "answer": answer.name, "complete": judgement.complete})
    return judgement


def _judging(judge: Judge, answer: Answer, tools: JudgeTools) -> JudgeClaim:
    async def judging(claim: Claim) -> Verdict:
        return await tools.verifier.settle_any(
            ClaimQuestion(claim=claim, task=judge.description, answer=answer.text, trials=tools.trials),
            tools.evidence_for,
        )

    return judging


@contextmanager
def _failed_extraction_alone() -> Iterator[None]:
    """Raise a failed extraction without the exception group of a judge's task group, if the group has no other error.

    Raises:
        ExtractionFailed: extractions failed and nothing else.
    """
    try:
        yield
    except ExceptionGroup as group:
        failed, others = group.split(ExtractionFailed)
        if failed is None or others is not None:
            raise
        error: ExtractionFailed | ExceptionGroup[ExtractionFailed] = failed
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from group


class _RunnerTime:
    """Tells a judge that hangs from one that waits for the runner, and whether a judge returned without waiting."""

    def __init__(self) -> None:
        self.has_returned = False
        self._was_cancelled = False
        self._pending = 0
        """Number of extractions and settlements that did not end before the judge returned."""

    @property
    def is_unfinished(self) -> bool:
        return self._was_cancelled or self._pending > 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        self._pending += 1
        try:
            yield
        except asyncio.CancelledError:
            self._was_cancelled = True
            raise
        finally:
            if not self.has_returned:
                self._pending -= 1


@dataclass(slots=True)
class _Settling:
    """Settler of a ``JudgeContext``.

    ``unknown`` is set if faults leave open whether a node has a full score. The judge then goes on as if it had not.
    """

    rubric: Rubric
    settler: Settler
    runner_time: _RunnerTime
    unknown: Verdict | None = None

    async def settle(self, node: RubricNode) -> bool:
        with self.runner_time.counted():
            is_full = await self.settler.settle(node)
        if not is_full and self.unknown is None and score(self.rubric, node).high == 1.0:
            leaves = (*leaves_below(node), *self.rubric.leaves())  # its leaves may be skipped because of another one
            verdicts = [leaf.verdict for leaf in leaves if leaf.verdict is not None]
            reason = next(each.reason for each in verdicts if each.outcome is Outcome.NOT_JUDGED)
            reasoning = f"The judge continued without the verdict on {node.id!r}."
            self.unknown = Verdict(outcome=Outcome.NOT_JUDGED, reason=reason, reasoning=reasoning)
        return is_full


@dataclass(slots=True)
class _Reader:
    """Extractor of a ``JudgeContext``. Records every extraction."""

    answer: Answer
    task: str
    tools: JudgeTools
    runner_time: _RunnerTime
    records: list[ExtractionRecord] = field(default_factory=list)

    async def read(self, schema: type[S], prompt: str, *, source: str | None, instruction: str | None, name: str) -> S:
        try:
            with self.runner_time.counted():
                evidence = None if source is None else await self._evidence(source)
                extraction = await self.tools.extractor.extract(
                    schema,
                    ExtractionQuestion(
                        prompt=prompt,
                        task=self.task,
                        answer=self.answer.text,
                        evidence=evidence,
                        instruction=instruction,
                    ),
                )
        except ExtractionFailed as error:
            self.records.append(ExtractionRecord(name=name, usage=error.usage, error=str(error)))
            raise
        self.records.append(
            ExtractionRecord(
                name=name,
                value=extraction.value.model_dump(mode="json", warnings=False),  # an empty extraction is not validated
                prompt=extraction.prompt,
                usage=extraction.usage,
            )
        )
        return extraction.value

    async def _evidence(self, source: str) -> Evidence:
        try:
            return await self.tools.evidence_for(source)
        except CacheError as error:
            verdict = verdict_without_evidence(error)
            raise ExtractionFailed(f"extraction failed: {verdict.reasoning}", cause_reason=verdict.reason) from error


def _leave_unread(rubric: Rubric, reasoning: str) -> None:
    """Mark all declared leaves as not judged."""
    _leave_open([leaf for leaf in rubric.leaves() if leaf is not rubric.root], extraction_failed_verdict(reasoning))


def _leave_open(leaves: Iterable[RubricNode], verdict: Verdict) -> None:
    """Give the leaves without a verdict this one."""
    for leaf in leaves:
        if leaf.verdict is None:
            leaf.verdict = verdict


def _add_undeclared(rubric: Rubric, leaf_id: str, verdict: Verdict) -> None:
    """Add one critical leaf for what could not be declared."""
    desc = _UNDECLARED[leaf_id]
    while leaf_id in rubric:
        leaf_id += "_"
    leaf = RubricNode(id=leaf_id, desc=desc, critical=True)
    leaf.verdict = verdict
    rubric.add(rubric.root, leaf)


def _assign_usage(rubric: Rubric) -> None:
    """Make the usage of each leaf independent of the order in which the leaves were settled."""
    settled = [(leaf, leaf.verdict) for leaf in rubric.leaves() if leaf.verdict is not None]
    charged = assign_usage_in_tree_order([verdict for _, verdict in settled])
    for (leaf, _), verdict in zip(settled, charged, strict=True):
        leaf.verdict = verdict
