"""Majority voting, of one model and of juries. Pure functions: no I/O, no models.

A majority counts against all planned votes. A lost vote can therefore prevent a majority but never create one. Voting
stops as soon as no further vote can change the outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
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


MIN_MEMBERS: Final = 3
MAX_MEMBERS: Final = 9


def jury_verdict(votes: Sequence[bool | None]) -> bool | None:
    """Return whether more than half of the members pass the claim. ``votes`` has one entry per member.

    A missing verdict (None) counts for neither side: the jury has a verdict if no verdict of the missing members could
    change it, and None otherwise.

    >>> jury_verdict([True, True, None]), jury_verdict([True, False, None])
    (True, None)

    Raises:
        ValueError: the number of members is even.
    """
    decided = decide_votes(votes, len(votes))
    return decided if isinstance(decided, bool) else None


def check_members(members: Collection[object]) -> None:
    """Check the members of a jury.

    Raises:
        ValueError: their number is even, too low or too high, or a judge is in the jury twice.
    """
    if not MIN_MEMBERS <= len(members) <= MAX_MEMBERS or len(members) % 2 == 0:
        raise ValueError(f"a jury has an odd number of members from {MIN_MEMBERS} to {MAX_MEMBERS}, not {len(members)}")
    if len(set(members)) < len(members):
        raise ValueError("a judge is in the jury twice")


def members_in(name: str) -> tuple[str, ...]:
    """Return the members in the name of a jury; of any other name, the name as the only member.

    >>> members_in("a, b,c"), members_in("openai:a")
    (('a', 'b', 'c'), ('openai:a',))
    """
    return tuple(member.strip() for member in name.split(","))


def _count(votes: Sequence[bool | None]) -> tuple[int, int]:
    return sum(vote is True for vote in votes), sum(vote is False for vote in votes)
