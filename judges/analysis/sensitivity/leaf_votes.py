"""What was voted on a leaf. Pure."""

from __future__ import annotations

from judges.analysis.overrides import JudgedNode


def votes_of(leaf: JudgedNode) -> tuple[int, int]:
    """How many votes say yes and no; those lost to a fault say neither."""
    said = [vote.get("result") for vote in leaf.data.get("votes") or ()]
    return said.count(True), said.count(False)
