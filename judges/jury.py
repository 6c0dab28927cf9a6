"""Claim judge that asks a jury of models and combines their verdicts on a claim.

A member that could not judge a claim counts for neither side, see ``judges.voting.jury_verdict``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from judges.source_policy import combine_checks
from judges.verifier import ClaimJudge, ClaimQuestion, EvidenceLookup
from judges.voting import jury_verdict, members_in
from rubrics.verdict import MemberVerdict, Outcome, Reason, Usage, Verdict

_SIDES = {Outcome.PASSED: True, Outcome.FAILED: False}


def judge_named(name: str, judge_of: Callable[[str], ClaimJudge]) -> ClaimJudge:
    """Return the judge of a model, or of a jury (``a,b,c``) whose members ``judge_of`` creates."""
    members = members_in(name)
    if len(members) == 1:
        return judge_of(name)
    return JuryJudge(name, [judge_of(member) for member in members])


class JuryJudge(ClaimJudge):
    """Claim judge that asks all members of a jury concurrently. ``name`` is that of the jury."""

    def __init__(self, name: str, members: Sequence[ClaimJudge]) -> None:
        self.model = name
        self._members = members

    async def settle(self, question: ClaimQuestion, *, cache_only: bool = False) -> Verdict:
        return await self._combined(lambda member: member.settle(question, cache_only=cache_only))

    async def settle_any(self, question: ClaimQuestion, evidence_for: EvidenceLookup) -> Verdict:
        """Settle a claim as the base class does. Each member decides about all sources, not the jury about each."""
        return await self._combined(lambda member: member.settle_any(question, evidence_for))

    async def before_result(self) -> None:
        await self._members[0].before_result()

    async def _combined(self, ask: Callable[[ClaimJudge], Coroutine[Any, Any, Verdict]]) -> Verdict:
        verdicts = await asyncio.gather(*(ask(member) for member in self._members), return_exceptions=True)
        for verdict in verdicts:
            if isinstance(verdict, BaseException):
                raise verdict
        given = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
        return combine_members(self.model, [member.model for member in self._members], given)


def combine_members(jury: str, models: Sequence[str], verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a jury from those of its members, in their order.

    Reasoning, prompt and quotes are those of a member of the winning side: the first whose quotes were found, else the
    first. If no model decided (no source, no page), the verdicts are equal and the first is returned.
    """
    if all(verdict.model is None for verdict in verdicts):
        return verdicts[0]
    decided = jury_verdict([_SIDES.get(verdict.outcome) for verdict in verdicts])
    winners = [verdict for verdict in verdicts if _SIDES.get(verdict.outcome) is decided and decided is not None]
    deciding = next((verdict for verdict in winners if verdict.grounded), winners[0] if winners else None)
    outcome = Outcome.NOT_JUDGED if deciding is None else deciding.outcome
    asked = next(verdict for verdict in verdicts if verdict.model is not None)
    return Verdict(
        outcome=outcome,
        reason=_loss_reason(verdicts) if deciding is None else deciding.reason,
        reasoning=_losses(models, verdicts) if deciding is None else deciding.reasoning,
        votes=tuple(vote for verdict in verdicts for vote in verdict.votes),
        quotes=() if deciding is None else deciding.quotes,
        evidence=tuple(dict.fromkeys(digest for verdict in verdicts for digest in verdict.evidence)),
        prompt=(deciding and deciding.prompt) or asked.prompt,
        model=jury,
        usage=sum((verdict.usage for verdict in verdicts), Usage()),
        requests=tuple(request for verdict in verdicts for request in verdict.requests),
        unneeded=tuple(request for verdict in verdicts for request in verdict.unneeded),
        grounded=None if deciding is None else deciding.grounded,
        checks=combine_checks([verdict.checks for verdict in (winners or verdicts)], passed=outcome is Outcome.PASSED),
        signals=tuple(sorted({signal for verdict in verdicts for signal in verdict.signals})),
        members=tuple(
            MemberVerdict(model=model, outcome=one.outcome, reason=one.reason, reasoning=one.reasoning)
            for model, one in zip(models, verdicts, strict=True)
        ),
    )


def _loss_reason(verdicts: Sequence[Verdict]) -> Reason:
    """Return the common reason of all members without a verdict if no member has one, else ``NO_MAJORITY``."""
    reasons = {verdict.reason for verdict in verdicts}
    only = reasons.pop() if len(reasons) == 1 else None
    return only or Reason.NO_MAJORITY


def _losses(models: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    """Return what the members without a verdict report."""
    lost = [(model, one) for model, one in zip(models, verdicts, strict=True) if one.outcome not in _SIDES]
    return "\n".join(f"{model}: {one.reasoning or one.reason}" for model, one in lost)
