"""Juries: panels of judges whose verdicts on labelled claims are combined by a rule. Pure.

No judge is asked for a jury: its votes are the verdicts of its members, asked now or recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from judges.analysis.meta_eval.items import Item, PartialRule, judged_as
from judges.analysis.meta_eval.judge_agreement import JudgeAgreement, JudgeTally
from judges.analysis.statistics.agreement import Estimate, confusion_of, kappa
from judges.analysis.statistics.panel import effective_votes, kappa_gain
from judges.voting import JuryRule, check_members, jury_verdict

MISSING_VOTES: Final = "member_not_judged"
"""Reason of a jury without a verdict: too few members have one."""


class Member(NamedTuple):
    """Judge that is a member of a jury. ``run`` is the run of recorded verdicts, empty if it was asked."""

    model: str
    run: str
    asked: bool


@dataclass(frozen=True, slots=True)
class Jury:
    """Panel of 2 to 9 different judges and the rule that combines their verdicts.

    Raises:
        ValueError: the number of members does not fit the rule, or a judge is in the jury twice.
    """

    members: tuple[Member, ...]
    rule: JuryRule

    def __post_init__(self) -> None:
        check_members(self.members, self.rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class JuryAgreement:
    """Agreement of a jury with people, and a comparison with its members on the claims that all of them judged.

    Attributes:
        common: Number of claims with a verdict of every member. The other figures are computed on them.
        error_correlation: Pooled correlation of the members' errors, None if no member errs.
        effective_votes: Number of independent votes that the panel is worth, see ``effective_votes``.
        best: Index of the member with the highest kappa, None if no member has one.
        gain: Kappa of the jury minus that of the best member.
    """

    jury: Jury
    agreement: JudgeAgreement
    common: int
    error_correlation: float | None
    effective_votes: Estimate
    best: int | None
    gain: Estimate


class JuryTally:
    """Running agreement of a jury with people. Memory grows with the number of different votes only."""

    def __init__(self, jury: Jury) -> None:
        self._jury = jury
        self._tally = JudgeTally(",".join(member.model for member in jury.members), listed=0)
        self._common: Counter[tuple[tuple[bool, ...], bool]] = Counter()

    def add(self, item: Item, asked: Mapping[tuple[str, int], bool | None], rule: PartialRule) -> None:
        """Add an item that is not left out. ``asked`` has the verdicts of models by model and ``id`` of the item."""
        recorded = {verdict.judge: judged_as(verdict, rule) for verdict in item.recorded}
        votes = [
            asked.get((member.model, id(item))) if member.asked else recorded.get((member.model, member.run))
            for member in self._jury.members
        ]
        self._tally.add_combined(item, jury_verdict(votes, self._jury.rule), MISSING_VOTES)
        given = tuple(vote for vote in votes if vote is not None)
        if len(given) == len(votes):
            self._common[given, bool(item.human)] += 1

    def result(self) -> JuryAgreement:
        errors: Counter[tuple[bool, ...]] = Counter()
        for (votes, human), count in self._common.items():
            errors[tuple(vote != human for vote in votes)] += count
        correlation, votes_worth = effective_votes(errors)
        kappas = {n: self._kappa(n) for n in range(len(self._jury.members))}
        known = {n: value for n, value in kappas.items() if value is not None}
        best = max(known, key=lambda n: known[n], default=None)
        compared: Counter[tuple[bool, bool, bool]] = Counter()
        for (votes, human), count in self._common.items():
            compared[bool(jury_verdict(votes, self._jury.rule)), votes[best or 0], human] += count
        return JuryAgreement(
            jury=self._jury,
            agreement=self._tally.result(),
            common=self._common.total(),
            error_correlation=correlation,
            effective_votes=votes_worth,
            best=best,
            gain=kappa_gain(compared),
        )

    def _kappa(self, member: int) -> float | None:
        table: Counter[tuple[bool, bool]] = Counter()
        for (votes, human), count in self._common.items():
            table[votes[member], human] += count
        return kappa(confusion_of(table).table).value
