from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.voting import NO_MAJORITY, decide_votes, majority_of, votes_needed

ODD = st.sampled_from([1, 3, 5, 7, 9])
BALLOTS = [(trials, ballot) for trials in (1, 3, 5) for ballot in product([True, False, None], repeat=trials)]


def asked_in_batches(ballot: tuple[bool | None, ...]) -> list[bool | None]:
    """Return the votes that are cast if each batch is requested concurrently."""
    cast: list[bool | None] = []
    while count := votes_needed(cast, len(ballot)):
        cast += ballot[len(cast) : len(cast) + count]
    return cast


def asked_singly(ballot: tuple[bool | None, ...]) -> list[bool | None]:
    """Return the votes that are cast one after the other until the outcome is certain."""
    cast: list[bool | None] = []
    while decide_votes(cast, len(ballot)) is None:
        cast.append(ballot[len(cast)])
    return cast


def test_outcome_equals_that_of_the_whole_ballot():
    for trials, ballot in BALLOTS:
        yes, no = ballot.count(True), ballot.count(False)
        expected = True if yes > trials / 2 else False if no > trials / 2 else NO_MAJORITY
        assert decide_votes(asked_in_batches(ballot), trials) is expected, ballot


def test_batches_request_no_more_votes_than_sequential_voting():
    for _, ballot in BALLOTS:
        assert len(asked_in_batches(ballot)) <= len(asked_singly(ballot)) + ballot.count(None)
        if None not in ballot:
            assert asked_in_batches(ballot) == asked_singly(ballot)


@given(st.lists(st.sampled_from([True, False]), max_size=9), ODD)
def test_voting_stops_only_if_no_further_vote_can_change_the_outcome(votes: list[bool], trials: int):
    votes = votes[:trials]
    open_votes = trials - len(votes)
    ends = {decide_votes([*votes, *rest], trials) for rest in product([True, False], repeat=open_votes)}
    assert (decide_votes(votes, trials) is not None) == (len(ends) == 1)


@pytest.mark.parametrize(
    ("votes", "trials", "first_batch"),
    [([], 1, 1), ([], 3, 2), ([], 5, 3), ([True, False], 3, 1), ([True, None], 3, 1)],
)
def test_votes_needed_in_any_case_form_one_batch(votes: list[bool | None], trials: int, first_batch: int):
    assert votes_needed(votes, trials) == first_batch


def test_one_usable_vote_of_three_is_no_majority():
    assert decide_votes([None, True, None], 3) is NO_MAJORITY


@pytest.mark.parametrize("trials", [0, -1, 2, 4])
def test_even_or_non_positive_trials_are_rejected(trials: int):
    with pytest.raises(ValueError, match="odd"):
        majority_of(trials)


def test_more_votes_than_trials_are_rejected():
    with pytest.raises(ValueError, match="4 votes"):
        decide_votes([True, False, True, True], 3)
