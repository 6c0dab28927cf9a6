"""The whole path of one answer, top to bottom: cited pages are captured, a judge settles its rubric, a result
comes out. The service's workers and ``assay evaluate`` both come this way.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from answers.citations import unique_urls
from answers.submission import Answer
from app.pages_seen import PagesSeen
from app.progress import Progress, Report, Stage, ignore
from app.runtime import Runtime
from judges.errors import JudgeBug
from judges.extractor import Extractor
from judges.llm.client import LLMClient
from judges.llm.refusals import RefusalWatch
from judges.registry import Judge, JudgeKind
from judges.result import build_result, native_summary
from judges.runner import JudgeTools, run
from judges.verifier import Verifier
from mind2web2.host import run_script
from rubrics.verdict import Usage

_JUDGING_SHARE = 0.95
"""Of a job's time; the rest is enough to write down an incomplete result instead of none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One answer before its judge. ``deadline_s``: how long judging may take."""

    runtime: Runtime
    judge: Judge
    agent: str
    answer: Answer
    llm: LLMClient
    model: str
    pages: PagesSeen
    steps: _Steps
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What a judge came to: the public summary with our scores, and what it took."""

    summary: Mapping[str, Any]
    prompts: Iterable[str]
    usage: Usage


async def evaluate(
    runtime: Runtime,
    *,
    judge: Judge,
    agent: str,
    answer: Answer,
    model: str | None = None,
    result_id: str | None = None,
    progress: Report = ignore,
) -> dict[str, Any]:
    """Judge one answer; returns the result as JSON values. ``model`` is ``provider/model``, None: the settings' own.

    Raises:
        JudgeBug: the judge file is at fault.
        ModelNotConfigured, BrowserUnavailable: this machine cannot do it.
        LLMRejected: the model's provider refuses every request; what was paid for is kept in the reply store.
    """
    client, model_name = runtime.models.client(model or runtime.settings.model)
    runtime.models.check(model)
    llm = RefusalWatch(client)
    watch = _Stopwatch()

    urls = unique_urls(answer.text)
    pages = PagesSeen(runtime.pages)
    steps = _Steps(progress, pages=len(urls))
    await pages.capture_all(urls, steps.captured)
    watch.lap("capture_s")

    case = _Case(
        runtime=runtime,
        judge=judge,
        agent=agent,
        answer=answer,
        llm=llm,
        model=model_name,
        pages=pages,
        steps=steps,
        deadline_s=max(1.0, runtime.settings.job_deadline_s * _JUDGING_SHARE - watch.total_s),
    )
    judged = await _unless_refused(case, llm)
    watch.lap("judge_s")

    steps.storing()
    return build_result(
        judged.summary,
        id=result_id,
        task_id=judge.task,
        judge=judge,
        model=model_name,
        prompts=judged.prompts,
        answer_sha256=answer.sha256,
        tool_version=version("assay"),
        usage=judged.usage,
        timing=watch.seconds(),
        pages=pages.seen,
    )


async def _unless_refused(case: _Case, watch: RefusalWatch) -> _Judged:
    """The judge's work, unless the provider refused: then not even a judge that failed over it is to blame."""
    try:
        judged = await (_judge(case) if case.judge.kind is JudgeKind.NATIVE else _run_script(case))
    except JudgeBug as error:
        if watch.refusal is not None:
            raise watch.refusal from error
        raise
    if watch.refusal is not None:
        raise watch.refusal
    return judged


async def _judge(case: _Case) -> _Judged:
    """A native judge: declare, then settle."""
    separator, prepared = case.runtime.separator, case.runtime.prepared
    tools = JudgeTools(
        verifier=Verifier(case.llm, case.model, separator=separator, pages=prepared),
        extractor=Extractor(case.llm, case.model, separator=separator, pages=prepared),
        evidence_for=case.pages.evidence_for,
    )
    judgement = await run(case.judge, case.answer, tools, progress=case.steps.judged, deadline_s=case.deadline_s)
    summary = native_summary(judgement, agent_name=case.agent)
    return _Judged(summary=summary, prompts=judgement.prompts, usage=judgement.usage)


async def _run_script(case: _Case) -> _Judged:
    """A public judge script, in the host that stands in for the public toolkit."""
    summary = await run_script(
        case.judge,
        answer=case.answer,
        agent_name=case.agent,
        llm=case.llm,
        model=case.model,
        separator=case.runtime.separator,
        preparer=case.runtime.prepared,
        pages=case.pages,
        blobs=case.runtime.blobs,
        captures=case.pages.seen,
        progress=case.steps.judged,
        deadline_s=case.deadline_s,
        ahead=case.runtime.pages if case.runtime.settings.look_ahead else None,
    )
    usage = summary.pop("usage", None)
    return _Judged(
        summary=summary, prompts=summary.pop("prompts", ()), usage=Usage() if usage is None else Usage(**usage)
    )


class _Steps:
    """Puts the reports of capturing and judging together into one progress."""

    def __init__(self, progress: Report, *, pages: int) -> None:
        self._progress = progress
        self._pages = pages
        self._leaves = (0, 0)

    def captured(self, done: int) -> None:
        self._progress(Progress(stage=Stage.CAPTURING, pages_done=done, pages_total=self._pages))

    def judged(self, done: int, total: int) -> None:
        self._leaves = (done, total)
        self._report(Stage.JUDGING)

    def storing(self) -> None:
        self._report(Stage.STORING)

    def _report(self, stage: Stage) -> None:
        done, total = self._leaves
        self._progress(
            Progress(stage=stage, pages_done=self._pages, pages_total=self._pages, leaves_done=done, leaves_total=total)
        )


class _Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self._started = self._lap_started = time.monotonic()
        self._laps: dict[str, float] = {}

    @property
    def total_s(self) -> float:
        return time.monotonic() - self._started

    def lap(self, name: str) -> None:
        """End a stage here; the next one begins."""
        now = time.monotonic()
        self._laps[name] = round(now - self._lap_started, 3)
        self._lap_started = now

    def seconds(self) -> dict[str, float]:
        return {**self._laps, "total_s": round(self.total_s, 3)}
