"""Rubrics: weighted trees of claims and checks, their gates and their scores. Pure: no I/O and no asyncio.

Import the common names from here. Import ``gating``, ``ordering``, ``lint`` and ``schema`` as modules.
"""

from __future__ import annotations

from rubrics.errors import InvalidNode, RubricError, UnknownNode
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
