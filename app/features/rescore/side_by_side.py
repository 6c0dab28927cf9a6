"""Old and new scores of rescored answers: per answer and per agent, with flipped leaves and ranks. Pure functions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.storage.records import Job
from judges.agent_figures import AnswerOutcome, score_of, scorecard_row, usage_of
from judges.analysis.flips import Leaf, comparable_result, flips
from judges.analysis.statistics.agreement import kappa
from judges.result import score_json
from rubrics.scoring import Score
from rubrics.tree_json import BAD_STATES, GOOD_STATES, script_sha256_of
from rubrics.verdict import Usage

MAX_FLIPS = 1000
"""Maximum number of flips in one document. All are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoredAnswer:
    """Answer with its score before and after the rescore. A result that does not exist is None."""

    fields: Mapping[str, Any]
    before: Score | None
    after: Score | None
    usage: Usage
    flips: Sequence[Mapping[str, Any]] = ()
    verdicts: Sequence[tuple[bool, bool]] = ()
    """Whether each claim that both results judged passed, before and after."""

    @property
    def agent(self) -> str:
        return str(self.fields["agent"])


def rescored_answer(job: Job, before: str | None, after: str | None) -> RescoredAnswer:
    """Compare the results (JSON texts) of an answer from before and after a rescore. CPU-bound."""
    old, new = (None if body is None else json.loads(body) for body in (before, after))
    before_score, after_score = (None if result is None else score_of(result) for result in (old, new))
    difference = None if before_score is None or after_score is None else score_json(after_score.minus(before_score))
    flipped, verdicts, judge_changed = [], [], None
    if old is not None and new is not None:
        judge_changed = script_sha256_of(old) != script_sha256_of(new)
        sides = comparable_result(old), comparable_result(new)
        flipped = [{"agent": job.agent, **asdict(flip)} for flip in flips([sides[0]], [sides[1]])]
        verdicts = _verdicts_of_both(*(side.leaves for side in sides))
    rejudged = (new or {}).get("rejudged") or {}
    return RescoredAnswer(
        fields={
            "job_id": job.id,
            "agent": job.agent,
            "task_id": job.task_id,
            "answer_name": job.answer_name,
            "status": job.status.value,
            "stage": job.stage,
            "error": None if job.error is None else {"code": job.error.code, "detail": job.error.detail},
            "before": _side(old),
            "after": _side(new),
            "difference": difference,
            "judge_changed": judge_changed,
            "reused": rejudged.get("reused"),
            "asked": rejudged.get("again"),
            "because": rejudged.get("because") or {},
            "flipped": len(flipped),
        },
        before=before_score,
        after=after_score,
        usage=usage_of(new),
        flips=flipped,
        verdicts=verdicts,
    )


def _verdicts_of_both(before: Mapping[str, Leaf], after: Mapping[str, Leaf]) -> list[tuple[bool, bool]]:
    pairs = [(leaf.state, after[key].state) for key, leaf in before.items() if leaf.claim is not None and key in after]
    judged = GOOD_STATES | BAD_STATES
    return [(old in GOOD_STATES, new in GOOD_STATES) for old, new in pairs if old in judged and new in judged]


def comparison_json(answers: Sequence[RescoredAnswer]) -> dict[str, Any]:
    """Return the answers, the agents with their ranks, the agreement of both judges, the flips, and the usage."""
    every_flip = [flip for answer in answers for flip in answer.flips]
    usage = sum((answer.usage for answer in answers), Usage())
    usd = None if usage.usd is None else round(usage.usd, 6)
    return {
        "answers": [dict(answer.fields) for answer in answers],
        "agents": agents_json(answers),
        "agreement": _agreement_json([pair for answer in answers for pair in answer.verdicts]),
        "flips": every_flip[:MAX_FLIPS],
        "flipped": len(every_flip),
        "usage": {"calls": usage.calls, "cached_calls": usage.cached_calls, "usd": usd},
    }


def _agreement_json(verdicts: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    """Return how often the verdicts before and after are equal, and Cohen's kappa."""
    counted = Counter(verdicts)
    table = [[counted[before, after] for after in (True, False)] for before in (True, False)]
    return {
        "claims": len(verdicts),
        "equal": sum(before is after for before, after in verdicts),
        "kappa": asdict(kappa(table)),
    }


def agents_json(answers: Iterable[RescoredAnswer]) -> list[dict[str, Any]]:
    """Return the mean scores of each agent before and after, and its ranks, by new rank and name.

    The means are over the answers that have both scores, of the ``tasks`` that all agents have; without such a task,
    the agents cannot be compared and none is returned. Ranks are by the lower bound of the mean, in which leaves that
    were not judged count 0. Agents with equal means share a rank.
    """
    scored = [answer for answer in answers if answer.before is not None and answer.after is not None]
    tasks: dict[str, set[str]] = {}
    for answer in scored:
        tasks.setdefault(answer.agent, set()).add(answer.fields["task_id"])
    shared = set[str]().union(*tasks.values()).intersection(*tasks.values())
    by_agent: dict[str, list[RescoredAnswer]] = {}
    for answer in scored:
        if answer.fields["task_id"] in shared:
            by_agent.setdefault(answer.agent, []).append(answer)
    before = {agent: _mean(agent, each, "before") for agent, each in by_agent.items()}
    after = {agent: _mean(agent, each, "after") for agent, each in by_agent.items()}
    ranks_before, ranks_after = _ranks(before), _ranks(after)
    rows = [
        {
            "agent": agent,
            "answers": len(by_agent[agent]),
            "tasks": len(shared),
            "before": score_json(before[agent]),
            "after": score_json(after[agent]),
            "difference": score_json(after[agent].minus(before[agent])),
            "rank_before": ranks_before[agent],
            "rank_after": ranks_after[agent],
        }
        for agent in by_agent
    ]
    return sorted(rows, key=lambda row: (row["rank_after"], row["agent"]))


def _mean(agent: str, answers: Iterable[RescoredAnswer], side: str) -> Score:
    outcomes = [
        AnswerOutcome(
            task_id=answer.fields["task_id"],
            answer_name=answer.fields["answer_name"],
            result={"score": score_json(getattr(answer, side)), "status": answer.fields[side]["status"]},
        )
        for answer in answers
    ]
    mean = scorecard_row(agent, outcomes).partial
    assert mean is not None  # noqa: S101 - there is at least one answer
    return mean


def _ranks(means: Mapping[str, Score]) -> dict[str, int]:
    """Return the rank of each agent, from 1. Means that are equal to nine decimals share a rank."""
    lows = {agent: round(mean.low, 9) for agent, mean in means.items()}
    return {agent: 1 + sum(other > low for other in lows.values()) for agent, low in lows.items()}


def _side(result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "result_id": result.get("id"),
        "status": result.get("status", "complete"),
        "score": score_json(score_of(result)),
    }
