"""Assignment of the cost of model requests to the leaves of one answer.

Equal requests are sent once, and which caller is charged depends on the order in which they arrive. In a result, the
first leaf in tree order that needed a request carries its cost; every other leaf has a cached call. Costs move only
between equal requests, so totals do not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from rubrics.verdict import ModelRequest, Usage, Verdict, Vote

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
