"""Evaluation of a folder of answers without a server: plan, then judge concurrently within the limits.

Reads and writes the public folder layout with ``app.engine.result_folder``. ``app.cli.evaluate`` shows the progress.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from traceback import format_exception
from typing import Any, Protocol

from answers.citations import unique_urls
from answers.errors import InvalidSubmission
from answers.evidence_files import INDEX, evidence_folder
from answers.public_layout import read_evidence
from answers.submission import Answer, Submission
from app.async_tools import unwrapped
from app.engine import pipeline
from app.engine.page_freshness import CurrentPages
from app.engine.public_cache import ImportSummary, PublicCache
from app.engine.result_folder import ResultInputs, keep_for_service, newest_result, rejudge_reason
from app.engine.runtime import Runtime
from app.errors import script_error
from app.progress import Progress
from cache.capture import Capture, EvidencePolicy
from cache.errors import CacheError
from cache.sources.supplied import (
    SUPPLIED_BY_AGENT,
    SuppliedRejected,
    digest_of,
    observe_supplied,
    store_observed,
    supplied_pages,
)
from cache.sources.uploads import UploadedPage
from judges.agent_figures import AnswerOutcome, summary_fields, word_count
from judges.errors import (
    IsolationFailed,
    JudgeBug,
    JudgeError,
    LLMError,
    LLMRejected,
    ModelNotConfigured,
    PromptDamaged,
    ScriptStopped,
)
from judges.forbidden_sources import ForbiddenSource, entries_json
from judges.llm.observed import rejects_all_requests
from judges.llm.parameters import RequestParameters, RunParameters
from judges.llm.providers import parse_judge
from judges.loader import JudgeCatalogue
from judges.registry import Judge
from judges.result import AnswerFolder
from mind2web2.evaluation import Failure, judge_in_folder
from mind2web2.evidence import log_result
from mind2web2.results import rules
from mind2web2.task_pages import TaskFolder
from rubrics.verdict import Reason

NO_JUDGE, BROKEN_JUDGE, NO_MODEL, INTERNAL = "UNKNOWN_TASK", "JUDGE_BUG", "MODEL_NOT_CONFIGURED", "INTERNAL"
BAD_EVIDENCE = "BAD_EVIDENCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnswer:
    """One answer of a plan, with the decision whether to judge it.

    Attributes:
        judge: None if no judge can be loaded. ``problem`` then contains an error code and a message.
        reason: Reason for judging the answer, or for not judging it.
        reusable: ``summary_fields`` of the newest result if it is still valid and reused.
        metadata: Content of the metadata file of the answer, if there is one.
        evidence: Folder of the pages that the agent supplied, if there is one, and ``digest_of`` them.
        evidence_policy: Policy for them that was requested.
    """

    folder: AnswerFolder
    answer: Answer
    urls: tuple[str, ...]
    judge: Judge | None
    reason: str
    reusable: Mapping[str, Any] | None = None
    problem: tuple[str, str] | None = None
    metadata: bytes | None = None
    evidence: tuple[Path, str] | None = None
    evidence_policy: EvidencePolicy | None = None

    @property
    def to_judge(self) -> bool:
        return self.judge is not None and self.reusable is None

    def outcome(self, result: Mapping[str, Any] | None, error_code: str | None = None) -> AnswerOutcome:
        return AnswerOutcome(
            task_id=self.folder.task_id,
            answer_name=self.answer.name,
            words=word_count(self.answer.text),
            result=result,
            error_code=error_code,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvaluation:
    """Outcome of one planned answer, with the ``summary_fields`` of its result.

    ``path`` is the result file, ``pages`` the URLs of its pages, ``error`` a message with the traceback if any.
    """

    planned: PlannedAnswer
    outcome: AnswerOutcome
    pages: tuple[str, ...] = ()
    path: Path | None = None
    reused: bool = False
    error: str | None = None


class EvaluationObserver(Protocol):
    """Observer of an evaluation."""

    def progress(self, planned: PlannedAnswer, progress: Progress) -> None: ...

    def finished(self, evaluated: AnswerEvaluation) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Decides which answers must be judged.

    Attributes:
        answers_root: Folder of the answers, which may have metadata files and pages that the agent supplied.
        evidence_policy: Policy for these pages that was requested.
        forbidden_sources: Those of the settings.
        model: Name of the model without the provider.
        overwrite: Judge all answers again. Damaged result files are ignored.
        pages: Stored pages. If given, an answer is judged again when one of its pages changed.
        parameters: Parameters of the model requests. If given, a result with other parameters is not reused.
    """

    catalogue: JudgeCatalogue
    out: Path
    model: str
    overwrite: bool = False
    pages: CurrentPages | None = None
    parameters: RunParameters | None = None
    answers_root: Path | None = None
    evidence_policy: EvidencePolicy | None = None
    forbidden_sources: Sequence[ForbiddenSource] = ()

    def plan(self, submissions: Iterable[Submission]) -> list[PlannedAnswer]:
        """Decide for each answer whether it must be judged. Blocks on disk reads.

        Raises:
            ResultUnreadable: A result file is damaged.
        """
        return [self._planned(submission, answer) for submission in submissions for answer in submission.answers]

    def _planned(self, submission: Submission, answer: Answer) -> PlannedAnswer:
        task_id = submission.task_id
        folder = AnswerFolder(out=self.out, agent=submission.agent, task_id=task_id, answer_name=answer.name)
        judge = self.catalogue.judges.get(task_id)
        planned = PlannedAnswer(
            folder=folder,
            answer=answer,
            urls=unique_urls(answer.text),
            judge=judge,
            reason="overwrite",
            metadata=self._metadata(folder),
            evidence=self._evidence(folder),
            evidence_policy=self.evidence_policy,
        )
        if judge is None:
            code, problem = NO_JUDGE, f"no task file exists for {task_id} (--judges adds a folder)"
            if task_id in self.catalogue.broken:
                code, problem = BROKEN_JUDGE, self.catalogue.broken[task_id]
            return replace(planned, reason=problem.splitlines()[0], problem=(code, problem))
        if self.overwrite:
            return planned
        last = newest_result(folder)
        if last is None:
            return replace(planned, reason="no result yet")
        cause = rejudge_reason(last, self._inputs(answer, judge))
        recorded = last.get("evidence") or {}
        policy = None if planned.evidence is None else judge.evidence_policy(self.evidence_policy)
        supplied = None if planned.evidence is None else planned.evidence[1]
        if cause is None and (recorded.get("sha256"), recorded.get("policy")) != (supplied, policy):
            cause = "the supplied pages or their policy changed"
        if cause is None and last.get("forbidden_sources", []) != entries_json(self.forbidden_sources):
            cause = "the forbidden sources changed"
        if cause is None and self.pages is not None:
            cause = self.pages.changed_page(submission.agent, task_id, last)
        if cause is not None:
            return replace(planned, reason=cause)
        return replace(planned, reason="its last result is still valid", reusable=summary_fields(last))

    def _inputs(self, answer: Answer, judge: Judge) -> ResultInputs:
        return ResultInputs(
            answer_sha256=answer.sha256,
            script_sha256=judge.sha256,
            model=self.model,
            parameters=None if self.parameters is None else self.parameters.as_json(self.model),
            rules=rules(),
        )

    def _evidence(self, folder: AnswerFolder) -> tuple[Path, str] | None:
        if self.answers_root is None:
            return None
        path = self.answers_root / folder.agent / folder.task_id / evidence_folder(folder.answer_name)
        if not path.is_dir():
            return None
        try:
            pages = _supplied_pages(path)
            return (path, digest_of(pages.values())) if pages else None
        except (InvalidSubmission, SuppliedRejected) as error:
            return path, f"invalid: {error}"  # reported when the answer is judged

    def _metadata(self, folder: AnswerFolder) -> bytes | None:
        if self.answers_root is None:
            return None
        path = self.answers_root / folder.agent / folder.task_id / folder.metadata_copy.name
        return path.read_bytes() if path.is_file() else None


async def evaluate_all(
    runtime: Runtime, planned: Sequence[PlannedAnswer], observer: EvaluationObserver, *, cache: PublicCache | None
) -> list[AnswerEvaluation]:
    """Execute a plan: tasks, and the answers of a task, concurrently within the limits. Outcomes are in plan order.

    If an answer cannot be judged because of an error of its judge, or a bug, only its own evaluation fails.

    Raises:
        ModelNotConfigured, LLMRejected, CacheError: Nothing can be judged on this machine or with this key.
    """
    if any(one.to_judge for one in planned):
        # Detect a missing key before capturing pages. Later, only a judge can need a model that is not configured.
        await runtime.models.open_client(runtime.settings.model)
        RequestParameters(runtime.settings.parameters, parse_judge(runtime.settings.model).providers)
    done: dict[int, AnswerEvaluation] = {}
    by_task: dict[str, list[tuple[int, PlannedAnswer]]] = {}
    for number, one in enumerate(planned):
        by_task.setdefault(one.folder.task_id, []).append((number, one))

    task_slots, import_slot = asyncio.Semaphore(2 * runtime.settings.max_tasks), asyncio.Semaphore(1)

    async def judge_task(answers: Sequence[tuple[int, PlannedAnswer]]) -> None:
        slots = runtime.limits.answers()

        async def judge_answer(number: int, one: PlannedAnswer) -> None:
            async with slots:
                done[number] = await _evaluate(runtime, one, observer, task_folder, is_kept=cache is None)
            observer.finished(done[number])

        # Twice as many tasks as are judged at once: pages are imported and exported while other tasks wait for models.
        async with task_slots:
            folder = answers[0][1].folder
            urls = [url for _, one in answers if one.to_judge for url in one.urls]
            # Import the folder even if the answers cite no URL, because a judge may request other pages in it.
            imported: ImportSummary | None = None
            if cache is not None and any(one.to_judge for _, one in answers):
                async with import_slot:
                    imported = await cache.import_pages(runtime, folder.agent, folder.task_id, urls)
            task_folder = None if imported is None else imported.folder
            async with runtime.limits.tasks, asyncio.TaskGroup() as group:
                for number, one in answers:
                    group.create_task(judge_answer(number, one))
            if cache is not None:
                cited = _cited(one for _, one in answers)
                judged = [url for number, _ in answers for url in done[number].pages]
                await cache.export_pages(runtime, folder.agent, folder.task_id, cited, judged, imported=imported)

    with unwrapped(ModelNotConfigured, LLMRejected, CacheError):
        async with asyncio.TaskGroup() as group:
            for answers in by_task.values():
                group.create_task(judge_task(answers))
    return [done[number] for number in sorted(done)]


async def _evaluate(
    runtime: Runtime,
    planned: PlannedAnswer,
    observer: EvaluationObserver,
    task_folder: TaskFolder | None,
    *,
    is_kept: bool,
) -> AnswerEvaluation:
    """Judge one answer and write its result. ``is_kept``: also for the service on the same data folder."""
    folder, code = planned.folder, None if planned.problem is None else planned.problem[0]
    if code == NO_JUDGE:
        return AnswerEvaluation(planned=planned, outcome=planned.outcome(None, code), error=planned.reason)
    await asyncio.to_thread(folder.copy_inputs, planned.answer.text.encode("utf-8"), planned.metadata)
    if planned.reusable is not None:
        outcome = planned.outcome(planned.reusable)
        return AnswerEvaluation(planned=planned, outcome=outcome, path=folder.newest_result(), reused=True)

    async def judge(logger: logging.Logger, earlier: dict[str, Any] | None) -> dict[str, Any]:
        if planned.judge is None:
            raise JudgeBug(planned.reason, traceback=(planned.problem or ("", ""))[1])
        supplied: Sequence[Capture] = ()
        if planned.evidence is not None:
            observed = await observe_supplied(await asyncio.to_thread(_supplied_pages, planned.evidence[0]))
            supplied = await store_observed(observed, runtime.pages, owner=None)
        result = await pipeline.evaluate(
            runtime,
            pipeline.JudgingCase(
                judge=planned.judge,
                agent=folder.agent,
                answer=planned.answer,
                result_id=runtime.ids.new("res"),
                earlier=earlier,
                folder=task_folder,
                supplied=supplied,
                evidence_policy=planned.evidence_policy,
            ),
            progress=lambda progress: observer.progress(planned, progress),
        )
        if planned.evidence is not None and "evidence" in result:
            result["evidence"]["sha256"] = planned.evidence[1]
        await asyncio.to_thread(log_result, logger, result)
        logger.info("%s: status %s, final_score %s", planned.answer.name, result.get("status"), result["final_score"])
        return result

    judged = await judge_in_folder(folder, judge, lambda error: _failure(error, runtime))
    failure, result = judged.failure, judged.result
    if result is None:
        message, details = failure.message, failure.traceback
        # The problems of a task in YAML begin with the one in the message.
        error = details if details.startswith(message) else f"{message}\n{details}".rstrip()
        return AnswerEvaluation(planned=planned, outcome=planned.outcome(None, failure.code), error=error)
    if is_kept:
        data_dir, model = runtime.settings.data_dir, runtime.settings.model
        await asyncio.to_thread(keep_for_service, data_dir, folder, planned.answer, model, result)
    pages = tuple(page["url"] for page in result["pages"])
    outcome = planned.outcome(summary_fields(result))
    return AnswerEvaluation(planned=planned, outcome=outcome, pages=pages, path=judged.path)


def _supplied_pages(folder: Path) -> dict[str, UploadedPage]:
    """Return the pages that the agent supplied, by their places in the index. Blocks on disk reads.

    Raises:
        InvalidSubmission, SuppliedRejected: The folder or a page is invalid.
    """
    records = enumerate(read_evidence(folder))
    placed = ((f"{folder.name}/{INDEX}.{place}", record) for place, record in records)
    return supplied_pages(placed, supplier=SUPPLIED_BY_AGENT, now=datetime.now(UTC))


def _concerns_all_answers(error: BaseException) -> bool:
    """Return whether nothing can be judged, captured or written on this machine or with this key."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_concerns_all_answers, error.exceptions))
    if isinstance(error, LLMRejected):
        return rejects_all_requests(error)
    return isinstance(error, CacheError | IsolationFailed | PromptDamaged | OSError | ImportError)


def _failure(error: Exception, runtime: Runtime) -> Failure | None:
    """Return why an answer could not be judged; None if nothing can be judged."""
    if _concerns_all_answers(error):
        return None
    traceback = runtime.redactor.redact(error.traceback) if isinstance(error, JudgeBug) else ""
    match error:
        case InvalidSubmission() | SuppliedRejected():
            return Failure(f"a supplied page cannot be used: {error}", code=BAD_EVIDENCE)
        case ModelNotConfigured():
            return Failure(str(error), code=NO_MODEL)
        case LLMError():
            return Failure(str(error), code=(error.reason or Reason.LLM_UNAVAILABLE).upper())
        case ScriptStopped():
            code, message = script_error(error)
            return Failure(message, traceback, code)
        case JudgeError():
            return Failure(str(error), traceback, BROKEN_JUDGE)
    message = f"A bug in assay, please report it: {type(error).__name__}: {error}"
    return Failure(message, runtime.redactor.redact("".join(format_exception(error))), INTERNAL)


def _cited(answers: Iterable[PlannedAnswer]) -> dict[str, list[str]]:
    """Map each cited URL to the names of the answers that cite it."""
    cited: dict[str, list[str]] = {}
    for answer in answers:
        for url in answer.urls:
            cited.setdefault(url, []).append(answer.answer.name)
    return cited
