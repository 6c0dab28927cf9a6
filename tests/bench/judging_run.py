"""Child process of ``judging``: judge a folder of answers, measure the cost, print it as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from answers.public_layout import read_folder
from app.console import event_loop
from app.console.judging_options import quiet_logging
from app.engine.evaluation import AnswerEvaluation, PlannedAnswer, Planner, evaluate_all
from app.engine.public_cache import PublicCache
from app.engine.runtime import open_runtime
from app.progress import Progress
from app.settings import load_settings
from judges.gc_tuning import freeze_loaded_objects, raise_gc_thresholds
from mind2web2 import LLMClient
from mind2web2.eval_runner import evaluate_task
from rubrics.tree_json import leaves_of
from rubrics.verdict import Outcome as Outcomes
from rubrics.verdict import Reason
from tests.bench.inputs import AGENT, TASKS, scripts_folder
from tests.bench.judging import MODEL, Outcome, Run
from tests.bench.watching import MeasuredCost, measured_cost, quantile

Result: TypeAlias = Mapping[str, Any]
Judging: TypeAlias = Callable[[], Awaitable[Callable[[], Sequence[Result]]]]
"""Judges all answers. Returns a function that returns their results, so that reading them is not measured."""


@asynccontextmanager
async def _service(run: Run, answers: Path, work: Path) -> AsyncIterator[Judging]:
    """Judge in the same way as ``assay evaluate``."""
    limits = {
        "max_tasks": run.max_tasks,
        "max_answers": run.max_answers,
        "max_llm": run.max_llm,
    }
    settings = load_settings(data_dir=work / "data", judges=(scripts_folder(),), model=f"openai/{MODEL}", **limits)
    quiet_logging(settings)
    raise_gc_thresholds()
    async with open_runtime(settings) as runtime:
        planner = Planner(catalogue=runtime.catalogue, out=work / "out", model=MODEL, overwrite=True)
        planned = planner.plan(read_folder(answers, AGENT))

        # as in a service that has been running for a while
        if runtime.process_pool is not None:
            await runtime.process_pool.wait_until_running()
        await runtime.models.open_client(settings.model)  # as in ``_toolkit``
        freeze_loaded_objects()

        async def judge() -> Callable[[], list[Result]]:
            evaluated = await evaluate_all(runtime, planned, _Silent(), cache=PublicCache(work / "cache"))
            for one in evaluated:
                if one.error is not None:
                    print(f"{one.planned.folder.task_id} {one.planned.answer.name}: {one.error}", file=sys.stderr)
            return lambda: [json.loads(one.path.read_bytes()) for one in evaluated if one.path is not None]

        yield judge


@asynccontextmanager
async def _toolkit(run: Run, answers: Path, work: Path, llm: asyncio.Semaphore) -> AsyncIterator[Judging]:
    """Judge in the same way as a program that calls the public API."""
    client = LLMClient("openai", is_async=True)
    tasks, pages = asyncio.Semaphore(run.max_tasks), asyncio.Semaphore(5)

    async def one(task_id: str) -> list[dict[str, Any]]:
        async with tasks:
            return await evaluate_task(
                client,
                task_id,
                AGENT,
                answers,
                work / "cache",
                work / "out",
                scripts_folder() / f"{task_id}.py",
                max_concurrent_answers=run.max_answers,
                webpage_semaphore=pages,
                llm_semaphore=llm,
                model=MODEL,
            )

    async def judge() -> Callable[[], list[Result]]:
        by_task = await asyncio.gather(*(one(task.id) for task in TASKS))
        return lambda: [result for results in by_task for result in results]

    yield judge


class _Silent:
    """Progress observer that does nothing."""

    def progress(self, planned: PlannedAnswer, progress: Progress) -> None:
        pass

    def finished(self, evaluated: AnswerEvaluation) -> None:
        pass


def _outcome(cost: MeasuredCost, results: Sequence[Result], run: Run) -> Outcome:
    return Outcome(
        wall_s=cost.wall_s,
        cpu_s=cost.cpu_s,
        memory_bytes=cost.peak_bytes - cost.start_bytes,
        end_bytes=cost.end_bytes - cost.start_bytes,
        late_s=(max(cost.late_s, default=0.0), quantile(cost.late_s, 0.99)),
        held_s=(max(cost.held_s, default=0.0), quantile(cost.held_s, 0.99)),
        missing=run.answers - sum(map(_judged, results)),
    )


def _judged(result: Result) -> bool:
    """Return whether all leaves were judged, except for those whose page is not in the page cache."""
    open_leaves = (leaf for leaf in leaves_of(result) if leaf.get("outcome") == Outcomes.NOT_JUDGED)
    return all(leaf.get("reason") == Reason.CAPTURE_FAILED for leaf in open_leaves)


async def _carry_out(run: Run, answers: Path, work: Path) -> Outcome:
    llm = asyncio.Semaphore(run.max_llm)
    way = _service(run, answers, work) if run.route == "service" else _toolkit(run, answers, work, llm)
    async with way as judge, measured_cost(ticks=run.ticks) as cost:
        results = await judge()
    return _outcome(cost, results(), run)


if __name__ == "__main__":
    order, answers_at, work_at = sys.argv[1:]
    wanted = Run(**json.loads(order))
    # the event loop of ``assay evaluate``, or the default one of other programs
    run = event_loop.run if wanted.route == "service" else asyncio.run
    print(json.dumps(asdict(run(_carry_out(wanted, Path(answers_at), Path(work_at))))))
