from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from judges.runner import assign_usage_in_tree_order
from rubrics.verdict import ModelRequest, Outcome, Usage, Verdict, Vote

PAID = Usage(calls=1, input_tokens=100, output_tokens=10, usd=0.5)
REPAIRED = Usage(calls=2, input_tokens=200, output_tokens=20, usd=1.0)
CACHED = Usage(cached_calls=1)


def verdict(*requests: tuple[str, Usage]) -> Verdict:
    """Return a verdict with one vote for each request."""
    return Verdict(
        outcome=Outcome.PASSED,
        votes=tuple(Vote(result=True, model="m", cached=usage == CACHED, request=key) for key, usage in requests),
        requests=tuple(ModelRequest(key=key, usage=usage) for key, usage in requests),
        usage=total(usage for _, usage in requests),
    )


def total(usages) -> Usage:
    return sum(usages, Usage())


def cached(verdict: Verdict) -> list[bool]:
    return [vote.cached for vote in verdict.votes]


def test_first_leaf_in_tree_order_is_charged_for_a_shared_request():
    first, second = assign_usage_in_tree_order([verdict(("a", CACHED), ("b", PAID)), verdict(("a", REPAIRED))])
    assert (first.usage, cached(first)) == (REPAIRED + PAID, [False, False])
    assert (second.usage, cached(second)) == (CACHED, [True])


def test_requests_of_no_leaf_are_charged_last():
    hidden = ModelRequest(key="a", usage=PAID)
    shown = verdict(("a", CACHED))
    [charged] = assign_usage_in_tree_order([shown], [hidden, *shown.requests])
    assert (charged.usage, cached(charged)) == (PAID, [False])


KEYS = st.lists(st.lists(st.sampled_from("abc"), max_size=4), max_size=5)


@given(KEYS, st.randoms(use_true_random=False))
def test_assignment_is_independent_of_request_order_and_preserves_the_total(
    leaves: list[list[str]], draw: random.Random
):
    def verdicts_in_order_of(order: Sequence[tuple[int, int]]) -> list[Verdict]:
        """Return the verdicts for this order of requests: the first request with a key is charged."""
        costs: dict[tuple[int, int], Usage] = {}
        seen: set[str] = set()
        for place in order:
            key = leaves[place[0]][place[1]]
            costs[place] = CACHED if key in seen else PAID
            seen.add(key)
        return [verdict(*((key, costs[n, m]) for m, key in enumerate(keys))) for n, keys in enumerate(leaves)]

    places = [(n, m) for n, keys in enumerate(leaves) for m in range(len(keys))]
    in_order, shuffled = verdicts_in_order_of(places), verdicts_in_order_of(draw.sample(places, len(places)))
    charged = assign_usage_in_tree_order(shuffled)
    assert charged == in_order
    assert total(each.usage for each in charged) == total(each.usage for each in shuffled)
