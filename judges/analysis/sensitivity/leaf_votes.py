"""Vote counts of a leaf. Pure."""

from __future__ import annotations

from judges.analysis.overrides import JudgedNode


def vote_counts(leaf: JudgedNode) -> tuple[int, int]:
    """Return the number of yes and of no votes. Votes lost to a fault count as neither."""
    results = [vote.get("result") for vote in leaf.data.get("votes") or ()]
    return results.count(True), results.count(False)
