"""Folder of answers, judges and pages in the public layout, judged with the real runtime and without a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from answers.public_layout import read_folder
from app.engine.evaluation import AnswerEvaluation, PlannedAnswer, Planner, evaluate_all
from app.engine.judge_files import load_catalogue
from app.engine.page_freshness import CurrentPages
from app.engine.public_cache import PublicCache
from app.engine.runtime import open_runtime
from app.progress import Progress, Stage
from app.settings import Settings
from cache.capture import EvidencePolicy
from judges.llm.providers import parse_judge
from mind2web2.utils.cache_filesys import CacheFileSys
from tests.fakes.settings import settings_for_tests

JUDGE = """
from judges.registry import judge

@judge(task="bridge", description="When was the old bridge of Vellmar built?")
async def bridge(ctx):
    ctx.verify("year", "The old bridge of Vellmar was built in 1764", sources=["https://towns.example/vellmar"])
    ctx.verify("arches", "The old bridge of Vellmar has nine arches", sources=["https://towns.example/arches"])
"""
RAISES = """
from judges.registry import judge

@judge(task="raises", description="x")
async def raises(ctx):
    raise ZeroDivisionError("my own bug")
"""
SCRIPT = """
from mind2web2 import Evaluator

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="gpt-6-luna"):
    evaluator = Evaluator()
    evaluator.initialize(task_id="script", agent_name=agent_name, answer_name=answer_name, client=client,
        task_description="x", answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger,
        default_model=model)
    leaf = evaluator.add_leaf("year", "built in 1764")
    await evaluator.verify("The old bridge of Vellmar was built in 1764", leaf, "https://towns.example/vellmar")
    return evaluator.get_summary()
"""
SCRIPT_OF_TWO = SCRIPT.replace(
    "    return evaluator",
    """
    leaf = evaluator.add_leaf("arches", "has nine arches")
    await evaluator.verify("The old bridge of Vellmar has nine arches", leaf, "https://towns.example/arches")
    return evaluator""",
)
ANSWER = "In 1764, see [Vellmar](https://towns.example/vellmar) and [arches](https://towns.example/arches)."


def stored_result(judged: AnswerEvaluation) -> dict[str, Any]:
    """Return the result file of a judged answer."""
    assert judged.path is not None, judged.error
    result: dict[str, Any] = json.loads(judged.path.read_text("utf-8"))
    return result


class RecordingObserver:
    """Observer that records the progress of an evaluation."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.finished_tasks: list[str] = []

    def progress(self, planned: PlannedAnswer, progress: Progress) -> None:
        self.stages.append(progress.stage)

    def finished(self, evaluated: AnswerEvaluation) -> None:
        self.finished_tasks.append(evaluated.outcome.task_id)


class AnswerFolder:
    """Folder with answers of ``otter``, judges, and a page cache in the public layout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.out = root / "results"
        self.public = PublicCache(root / "cache")
        self.observer = RecordingObserver()
        (root / "judges").mkdir()
        self.write_judge("bridge", JUDGE)
        self.write_answer("bridge", 1)

    def write_judge(self, task: str, source: str) -> None:
        (self.root / "judges" / f"{task}.py").write_text(source)

    def write_answer(self, task: str, k: int, text: str = ANSWER) -> None:
        path = self.root / "answers" / "otter" / task / f"answer_{k}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cache_page(self, url: str, text: str, task: str = "bridge", screenshot: bytes | None = None) -> None:
        cache = CacheFileSys(self.root / "cache" / "otter" / task)
        cache.put_web(url, text, screenshot)
        cache.save()

    def settings(self, **overrides: Any) -> Settings:
        evidence = self.public.evidence_folder("otter")
        return settings_for_tests(data_dir=evidence, judges=(self.root / "judges",), **overrides)

    async def plan(
        self,
        settings: Settings,
        *,
        overwrite: bool = False,
        model: str = "lexical",
        pages: CurrentPages | None = None,
        evidence_policy: EvidencePolicy | None = None,
    ) -> list[PlannedAnswer]:
        submissions = read_folder(self.root / "answers", "otter")
        planner = Planner(
            catalogue=await load_catalogue(settings, in_process=True),
            out=self.out,
            model=model,
            overwrite=overwrite,
            pages=pages,
            answers_root=self.root / "answers",
            evidence_policy=evidence_policy,
        )
        return planner.plan(submissions)

    async def evaluate(
        self,
        *,
        overwrite: bool = False,
        in_process: bool = True,
        evidence_policy: EvidencePolicy | None = None,
        **overrides: Any,
    ) -> Sequence[AnswerEvaluation]:
        settings = self.settings(**overrides)
        async with open_runtime(settings, in_process=in_process) as runtime:
            pages = await CurrentPages.open(settings.data_dir / "captures", self.public)
            model_name = parse_judge(settings.model).model
            planned = await self.plan(
                settings, overwrite=overwrite, model=model_name, pages=pages, evidence_policy=evidence_policy
            )
            return await evaluate_all(runtime, planned, self.observer, cache=self.public)
