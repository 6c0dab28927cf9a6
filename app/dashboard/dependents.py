"""Dependents of a page: the leaves that cite it, and the cost of judging them. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.dashboard.answer_html import page_mark
from app.dashboard.outline import Node, outline


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """Result with leaves that cite a page. ``usd`` is the cost of these leaves; None: unknown."""

    result_id: str
    job_id: str
    agent: str
    task_id: str
    answer_name: str
    leaves: Sequence[Node]
    usd: float | None


def dependent(origin: Mapping[str, Any], result: Mapping[str, Any], url: str) -> Dependent | None:
    """Return the result with the leaves that cite this URL, or None if no leaf cites it."""
    mark = page_mark(url)
    leaves = [leaf for leaf in outline(result).leaves if mark in _marks(leaf)]
    if not leaves:
        return None
    costs = [(leaf.facts.get("usage") or {}).get("usd") for leaf in leaves]
    return Dependent(
        result_id=str(origin["result_id"]),
        job_id=str(origin["job_id"]),
        agent=str(origin["agent"]),
        task_id=str(origin["task_id"]),
        answer_name=str(origin["answer_name"]),
        leaves=leaves,
        usd=None if None in costs else float(sum(cost or 0.0 for cost in costs)),
    )


def _marks(leaf: Node) -> set[str]:
    return {page_mark(url) for url in leaf.facts.get("sources") or ()}
