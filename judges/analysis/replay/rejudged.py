"""Comparison of a result with a second judgement of the same answer by the same script, pages and replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judges.analysis.replay.difference import ReplayDifference

_FIGURES = ("status", "final_score", "score", "score_strict", "tree_statistics")
_NODE_FIELDS = (
    "id", "desc", "critical", "weight", "strategy", "score", "status", "outcome", "reason", "claim", "instruction",
    "sources", "blocked_by", "grounded", "low", "high",
)  # fmt: skip


def rejudged_differences(recorded: Mapping[str, Any], judged: Mapping[str, Any]) -> Iterator[ReplayDifference]:
    """Yield differences of nodes from the root down, then of figures.

    An early difference is usually the cause of later ones.
    """
    before, after = (_trees(result) for result in (recorded, judged))
    if len(before) != len(after):
        yield ReplayDifference(where="number of trees", recorded=len(before), recomputed=len(after))
    for one, other in zip(before, after, strict=False):
        yield from _node_differences(one, other)
    for name in _FIGURES:
        if recorded.get(name) != judged.get(name):
            yield ReplayDifference(
                where=f"judged again, {name}", recorded=recorded.get(name), recomputed=judged.get(name)
            )


def _trees(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _mappings(part.get("verification_tree") for part in _mappings(result.get("eval_breakdown")))


def _mappings(values: object) -> list[Mapping[str, Any]]:
    """Return the values that are mappings. One of the two results is untrusted."""
    return [each for each in values if isinstance(each, Mapping)] if isinstance(values, Iterable) else []


def _node_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[ReplayDifference]:
    where = f"judged again, node {one.get('id')}"
    for name in _NODE_FIELDS:
        if one.get(name) != other.get(name):
            yield ReplayDifference(where=f"{where}, {name}", recorded=one.get(name), recomputed=other.get(name))
    votes = [[vote.get("result") for vote in _mappings(node.get("votes"))] for node in (one, other)]
    if votes[0] != votes[1]:
        yield ReplayDifference(where=f"{where}, votes", recorded=votes[0], recomputed=votes[1])
    children = [_mappings(node.get("children")) for node in (one, other)]
    if len(children[0]) != len(children[1]):
        ids = [[child.get("id") for child in each] for each in children]
        yield ReplayDifference(where=f"{where}, children", recorded=ids[0], recomputed=ids[1])
    for child, same in zip(*children, strict=False):
        yield from _node_differences(child, same)
