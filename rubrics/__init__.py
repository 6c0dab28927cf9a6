"""Rubrics: weighted trees of checkable leaves, gated and scored. Pure, no IO and no asyncio.

The everyday names are here; ``gating``, ``ordering``, ``lint`` and ``schema`` are used by module.
"""

from __future__ import annotations

from rubrics.errors import InvalidNode, RubricError, SchemaError, UnknownNode
from rubrics.node import RubricNode, Status, Strategy
from rubrics.rubric import Rubric
from rubrics.scoring import Score, score, score_strict
from rubrics.verdict import Claim, Outcome, Quote, Reason, Usage, Verdict, Vote

__all__ = [
    "Claim",
    "InvalidNode",
    "Outcome",
    "Quote",
    "Reason",
    "Rubric",
    "RubricError",
    "RubricNode",
    "SchemaError",
    "Score",
    "Status",
    "Strategy",
    "UnknownNode",
    "Usage",
    "Verdict",
    "Vote",
    "score",
    "score_strict",
]
