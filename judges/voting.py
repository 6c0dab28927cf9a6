"""Majority voting, and the rules of juries. Pure functions: no I/O, no models.

A majority counts against all planned votes. A lost vote can therefore prevent a majority but never create one. Voting
stops as soon as no further vote can change the outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum, StrEnum
from typing import Final, Literal, TypeAlias


class _NoMajority(Enum):
    NO_MAJORITY = "no_majority"


NO_MAJORITY: Final = _NoMajority.NO_MAJORITY
"""Result if too many votes are lost for either side to reach a majority."""

NoMajority: TypeAlias = Literal[_NoMajority.NO_MAJORITY]


def decide_votes(votes: Sequence[bool | None], trials: int) -> bool | NoMajority | None:
    """Return the certain outcome of ``votes`` (None = lost vote), or None while more votes are needed.

    >>> decide_votes([True, True], 3), decide_votes([True, False], 3), decide_votes([True, None], 3)
    (True, None, None)
    >>> decide_votes([True, None, None], 3) is NO_MAJORITY
    True

    Raises:
        ValueError: ``trials`` is not a positive odd number, or there are more votes than trials.
    """
    needed = majority_of(trials)
    if len(votes) > trials:
        raise ValueError(f"{len(votes)} votes were cast in {trials} trials")
    yes, no = _count(votes)
    if yes >= needed:
        return True
    if no >= needed:
        return False
    if max(yes, no) + trials - len(votes) < needed:
        return NO_MAJORITY
    return None


def votes_needed(votes: Sequence[bool | None], trials: int) -> int:
    """Return how many votes are needed next in any case and can be requested concurrently; 0 once decided.

    The total number of requests is the same as with sequential voting.

    >>> votes_needed([], 3), votes_needed([True, False], 3), votes_needed([True, True], 3), votes_needed([], 5)
    (2, 1, 0, 3)
    """
    if decide_votes(votes, trials) is not None:
        return 0
    return min(majority_of(trials) - max(_count(votes)), trials - len(votes))


def majority_of(trials: int) -> int:
    """Return how many equal votes decide among ``trials`` votes.

    Raises:
        ValueError: ``trials`` is not a positive odd number.
    """
    if trials < 1 or trials % 2 == 0:
        raise ValueError(f"the number of votes must be odd and positive, not {trials}")
    return trials // 2 + 1


MIN_MEMBERS: Final = 2
MAX_MEMBERS: Final = 9
"""Maximum number of members of a jury. It bounds the number of different votes that the bench counts."""


class JuryRule(StrEnum):
    """Rule that combines the votes of a jury."""

    MAJORITY = "majority"
    """More than half of all members, also of those without a verdict."""
    UNANIMITY = "unanimity"
    """Passed if all members passed the claim, failed if a member failed it."""


def jury_verdict(votes: Sequence[bool | None], rule: JuryRule) -> bool | None:
    """Return whether the jury passes the claim. ``votes`` has one entry per member, None for a missing verdict.

    A missing verdict counts for neither side: the jury has a verdict if no verdict of the missing members could change
    it, and None otherwise.

    >>> jury_verdict([True, True, None], JuryRule.MAJORITY), jury_verdict([True, None, None], JuryRule.MAJORITY)
    (True, None)
    >>> jury_verdict([True, False, None], JuryRule.UNANIMITY), jury_verdict([True, None], JuryRule.UNANIMITY)
    (False, None)

    Raises:
        ValueError: the majority rule is used with an even number of members.
    """
    if rule is JuryRule.MAJORITY:
        decided = decide_votes(votes, len(votes))
        return decided if isinstance(decided, bool) else None
    if False in votes:
        return False
    return None if None in votes else True


def check_members(members: Collection[object], rule: JuryRule) -> None:
    """Check the members of a jury.

    Raises:
        ValueError: their number does not fit the rule, or a judge is in the jury twice.
    """
    if not MIN_MEMBERS <= len(members) <= MAX_MEMBERS:
        raise ValueError(f"a jury has {MIN_MEMBERS} to {MAX_MEMBERS} members, not {len(members)}")
    if len(set(members)) < len(members):
        raise ValueError("a judge is in the jury twice")
    if rule is JuryRule.MAJORITY and len(members) % 2 == 0:
        raise ValueError("a majority needs an odd number of members: add one, or use unanimity")


def jury_name(members: Sequence[str], rule: JuryRule) -> str:
    """Return the name of a jury, or of the only member. The majority is not named, because it is the default.

    >>> jury_name(["a", "b", "c"], JuryRule.MAJORITY), jury_name(["a", "b"], JuryRule.UNANIMITY)
    ('a,b,c', 'unanimity:a,b')
    """
    prefix = f"{rule}:" if rule is not JuryRule.MAJORITY and len(members) > 1 else ""
    return prefix + ",".join(members)


def members_in(name: str) -> tuple[tuple[str, ...], JuryRule]:
    """Return the members and the rule in the name of a jury; of any other name, the name as the only member.

    >>> members_in("a, b,c"), members_in("unanimity:a,b")[0], members_in("openai:a")[0]
    ((('a', 'b', 'c'), <JuryRule.MAJORITY: 'majority'>), ('a', 'b'), ('openai:a',))
    """
    head, colon, rest = name.strip().partition(":")
    named = colon and head in set(JuryRule)
    members = tuple(member.strip() for member in (rest if named else name).split(","))
    return members, JuryRule(head) if named else JuryRule.MAJORITY


def _count(votes: Sequence[bool | None]) -> tuple[int, int]:
    return sum(vote is True for vote in votes), sum(vote is False for vote in votes)
