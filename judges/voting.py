"""Majority voting. Pure functions: no I/O, no models.

A majority counts against all planned votes. A lost vote can therefore prevent a majority but never create one. Voting
stops as soon as no further vote can change the outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def _count(votes: Sequence[bool | None]) -> tuple[int, int]:
    return sum(vote is True for vote in votes), sum(vote is False for vote in votes)
