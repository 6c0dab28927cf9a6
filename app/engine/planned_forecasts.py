"""Forecasts for a plan of ``assay evaluate``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.engine.evaluation import PlannedAnswer
from app.engine.forecasting import ForecastRequest, forecast_all, forecast_runtime, open_forecast_runtime
from app.engine.public_cache import PublicCache
from app.engine.result_folder import newest_result
from app.settings import Settings
from judges.analysis.forecasts.forecast import Forecast
from judges.loader import JudgeCatalogue
from judges.result_files import judged_answers

MOST_PAST_RUNS = 50


async def forecast_plan(
    settings: Settings,
    catalogue: JudgeCatalogue,
    planned: Sequence[PlannedAnswer],
    *,
    out: Path,
    public: PublicCache | None,
) -> list[Forecast | None]:
    """Return one forecast per planned answer, None for answers that need no judging. Writes nothing."""
    found: dict[int, Forecast] = {}
    by_task: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(planned):
        if one.to_judge:
            by_task.setdefault((one.folder.agent, one.folder.task_id), []).append(number)
    if not by_task:
        return [None] * len(planned)
    async with open_forecast_runtime(settings, catalogue) as opened:
        for (agent, task_id), numbers in by_task.items():
            runtime_copy = forecast_runtime(opened)  # one per task, so that the pages of earlier tasks leave the memory
            if public is not None:
                await public.import_pages(
                    runtime_copy, agent, task_id, [url for number in numbers for url in planned[number].urls]
                )
            past = await asyncio.to_thread(past_results, out, task_id)
            questions = [_question(planned[number], settings.model, past) for number in numbers]
            found |= zip(numbers, await forecast_all(runtime_copy, questions), strict=True)
    return [found.get(number) for number in range(len(planned))]


def past_results(out: Path, task_id: str) -> list[dict[str, Any]]:
    """Return the newest results of a task for all agents. Unreadable results are skipped. Blocks on disk reads."""
    agents = sorted(path.name for path in out.iterdir() if path.is_dir()) if out.is_dir() else []
    folders = [folder for agent in agents for folder in judged_answers(out, agent, task_id)]
    read = [newest_result(folder, damaged_ok=True) for folder in folders[-MOST_PAST_RUNS:]]
    return [result for result in read if result is not None]


def _question(planned: PlannedAnswer, model: str, past: Sequence[Mapping[str, Any]]) -> ForecastRequest:
    if planned.judge is None:
        raise ValueError(f"{planned.answer.name} has no judge")
    # The newest result of this answer comes last, because later results take precedence.
    mine = [] if planned.earlier is None else [planned.earlier]
    return ForecastRequest(
        judge=planned.judge,
        agent=planned.folder.agent,
        answer=planned.answer,
        model=model,
        past=[one for one in past if one not in mine] + mine,
    )
