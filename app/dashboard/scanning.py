"""The newest results of all answers, one after another: for what no single call of the API can tell."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from app.dashboard.viewer import Viewer

MOST_AGENTS = 20
MOST_RESULTS = 200
_HISTORY = 500


def newest_of_each(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest result of each answer, from an agent's results (newest first)."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for origin in history:
        newest.setdefault((origin["task_id"], origin["answer_name"]), origin)
    return list(newest.values())


async def agents_of(viewer: Viewer) -> list[str]:
    """All agents with a judged answer, the best first."""
    return [str(item["agent_name"]) for item in (await viewer.api.get("/v1/leaderboard"))["items"]]


async def newest_origins(viewer: Viewer, agents: Iterable[str]) -> list[dict[str, Any]]:
    """Where the newest result of each answer of these agents comes from."""
    found: list[dict[str, Any]] = []
    for agent in list(agents)[:MOST_AGENTS]:
        found += newest_of_each(await viewer.api.items(f"/v1/agents/{agent}/history", at_most=_HISTORY))
    return found


async def results_of(
    viewer: Viewer, origins: Iterable[Mapping[str, Any]]
) -> AsyncIterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """(origin, result), at most ``MOST_RESULTS`` of them."""
    for origin in list(origins)[:MOST_RESULTS]:
        yield origin, await viewer.api.get(f"/v1/results/{origin['result_id']}")
