"""Newest results of all answers, read one by one, for pages that no single API call can serve."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from app.dashboard.viewer import Viewer

MAX_AGENTS = 20
MAX_RESULTS = 200
_HISTORY = 500


def newest_of_each(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest result of each answer. ``history`` is sorted newest first."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for origin in history:
        newest.setdefault((origin["task_id"], origin["answer_name"]), origin)
    return list(newest.values())


async def agents_of(viewer: Viewer) -> list[str]:
    """Return all agents that have a judged answer, best first."""
    return [str(item["agent_name"]) for item in (await viewer.api.get("/v1/leaderboard", mix_judges="true"))["items"]]


async def newest_origins(viewer: Viewer, agents: Iterable[str]) -> list[dict[str, Any]]:
    """Return the origin of the newest result of each answer of these agents (at most ``MAX_AGENTS``)."""
    origins: list[dict[str, Any]] = []
    for agent in list(agents)[:MAX_AGENTS]:
        origins += newest_of_each(await viewer.api.items(f"/v1/agents/{agent}/history", at_most=_HISTORY))
    return origins


async def results_of(
    viewer: Viewer, origins: Iterable[Mapping[str, Any]]
) -> AsyncIterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield (origin, result) pairs, at most ``MAX_RESULTS``."""
    for origin in list(origins)[:MAX_RESULTS]:
        yield origin, await viewer.api.get(f"/v1/results/{origin['result_id']}")
