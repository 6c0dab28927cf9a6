"""Pipeline of one answer: capture the cited pages, run the judge, build the result.

Used by the workers of the service and by ``assay evaluate``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import structlog

from answers.submission import Answer
from app.engine.runtime import Runtime
from app.progress import Progress, ProgressCallback, Stage, ignore_progress
from cache.blobs import BlobArea
from cache.capture import Capture, CaptureOutcome, CaptureSource, Evidence, EvidencePolicy
from cache.errors import BlobCorrupt, BlobMissing, BlobStoreFailed, BrowserUnavailable, CacheError, NoEvidence
from cache.pacing import on_behalf_of
from cache.pages import PageCache
from cache.sources.supplied import common_5grams
from cache.urls import canonical_key
from judges.analysis.rejudging import with_rejudged
from judges.cpu_bound import cited_urls, run_cpu_bound, run_on_leaves
from judges.errors import JudgeBug
from judges.extractor import Extractor
from judges.forbidden_sources import (
    NONE_FORBIDDEN,
    ForbiddenSource,
    ForbiddenSources,
    entries_json,
    forbidden_text,
)
from judges.isolation.judge_job import judge_isolated
from judges.isolation.rpc_server import JudgeJob
from judges.llm.cached import CachedLLM, JuryClient
from judges.llm.call_recording import CallRecorder, recording_calls
from judges.llm.client import LLMClient, LLMRequest
from judges.llm.observed import ObservedLLM, RejectionMonitor, RequestObserver, UsageMeter
from judges.llm.parameters import TOOLKIT_DEFAULTS, RequestParameters, RunParameters
from judges.llm.providers import JudgeName, parse_judge
from judges.registry import Judge, JudgeKind
from judges.result import RunFacts, build_result, native_summary, page_json
from judges.runner import JudgeTools, run_judge
from judges.verifier import Verifier, judge_named
from mind2web2.external_services import services_of_run
from mind2web2.host import run_script
from mind2web2.local_services import StoredPagesOnly
from mind2web2.results import rules
from mind2web2.task_pages import TaskFolder, TaskPages
from rubrics.tree_json import evidence_counts, leaves_of
from rubrics.verdict import Reason, Usage

_log = structlog.get_logger(__name__)
_VERIFY_REQUEST = LLMRequest(model="", messages=(), purpose="verify")
_JUDGING_SHARE = 0.95
"""Share of the job deadline that judging may use. The rest is reserved for storing an incomplete result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingCase:
    """One answer to judge, and what determines its result.

    Attributes:
        model: ``provider/model``, or a jury of several (default: that of the settings).
        owner: Owner of the answer. Their private captures are used besides the shared ones. None: shared captures only.
        answered_at: Time at which the answer was given, if known. Web archive copies close to it are preferred.
        earlier: Previous result of the answer, to which the new result is compared.
        parameters: Parameters of the model requests (default: those of the settings).
        stored_pages: Use only stored pages and capture none. A claim whose page is not stored is not judged.
        supplied: Captures of the pages that the agent supplied with the answer.
        evidence_policy: Which copies claims may rest on (default: that of the task, or captured pages only).
        deadline_s: Time limit (default: that of the settings). Leaves that need longer are not judged.
        folder: Page cache folder of the task, for public scripts that read it.
        is_stored: Whether the result is stored. If not, it has no call log, warnings or comparison.
    """

    judge: Judge
    agent: str
    answer: Answer
    model: str | None = None
    owner: str | None = None
    result_id: str | None = None
    answered_at: datetime | None = None
    earlier: Mapping[str, Any] | None = None
    parameters: RunParameters | None = None
    stored_pages: bool = False
    supplied: Sequence[Capture] = ()
    evidence_policy: EvidencePolicy | None = None
    deadline_s: float | None = None
    folder: TaskFolder | None = None
    is_stored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A case with what judges it. ``deadline_s`` limits the time for judging."""

    runtime: Runtime
    case: JudgingCase
    llm: LLMClient
    judged_by: JudgeName
    parameters: RunParameters
    pages: AnswerPages
    reporter: _ProgressReporter
    forbidden: ForbiddenSources
    deadline_s: float
    verifier: Callable[..., Verifier]

    @property
    def model(self) -> str:
        """Name of the judge without providers."""
        return self.judged_by.model


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Output of a judge: the public summary with our scores, the prompts and the usage."""

    summary: Mapping[str, Any]
    prompts: Iterable[str]
    usage: Usage


async def evaluate(
    runtime: Runtime,
    case: JudgingCase,
    *,
    progress: ProgressCallback = ignore_progress,
    wrap_client: Callable[[LLMClient], LLMClient] = lambda client: client,
    verifier: Callable[..., Verifier] = Verifier,
    pages: AnswerPages | None = None,
) -> dict[str, Any]:
    """Judge one answer and return the result as JSON values.

    Args:
        wrap_client: Returns the client that is asked instead of that of the model: one that adds the checkpoints and
            the budget of a job, or one that replays recorded replies.
        verifier: Class, or function that creates an object, that judges claims of native judges.
        pages: Pages of the answer (default: those of the runtime, as the case says).

    Raises:
        JudgeBug: The task file failed. The subclass ScriptStopped means that it exceeded its limits.
        ModelNotConfigured, BrowserUnavailable: The model or the browser cannot be used on this machine.
        LLMRejected: The provider rejects every request. Replies that were paid for are in the reply cache.
    """
    urls, watch = await cited_urls(case.answer.text), _Stopwatch()
    judged_by = parse_judge(case.model or runtime.settings.model)
    parameters = case.parameters or runtime.settings.parameters
    client = await _opened(runtime, judged_by)  # takes seconds in a new process
    forbidden = ForbiddenSources((*case.judge.forbidden_sources, *runtime.settings.forbidden_sources))
    policy = case.judge.evidence_policy(case.evidence_policy)
    opens_pages = not case.stored_pages and policy is not EvidencePolicy.SUPPLIED
    pages = pages or AnswerPages(
        runtime.pages,
        near=case.answered_at,
        owner=case.owner,
        stored_only=case.stored_pages,
        supplied=case.supplied,
        policy=policy,
    )
    pages.forbidden = forbidden
    call_log = CallLog(runtime, pages, case.result_id, is_stored=case.is_stored)
    meter, rejections = UsageMeter(), RejectionMonitor(*judged_by.providers)
    request_parameters = RequestParameters(parameters, judged_by.providers)
    llm = ObservedLLM(wrap_client(client), (meter, rejections, *call_log.observers), prepare=request_parameters.add_to)
    reporter = _ProgressReporter(progress, pages=len(urls))
    await pages.capture_all(urls, reporter.captured)
    watch.lap("capture_s")
    run = _Run(
        runtime=runtime,
        case=case,
        llm=llm,
        judged_by=judged_by,
        parameters=parameters,
        pages=pages,
        reporter=reporter,
        forbidden=forbidden,
        deadline_s=max(1.0, (case.deadline_s or runtime.settings.job_deadline_s) * _JUDGING_SHARE - watch.total_s),
        verifier=verifier,
    )
    with call_log, nullcontext() if opens_pages else services_of_run(StoredPagesOnly()):
        judged = await _run_judge(run, rejections)
        watch.lap("judge_s")
        calls = await call_log.store(case.judge)
    entries = [page_json(capture) | await pages.other_copy(capture) for capture in pages.seen]
    result = _result(run, judged, entries, usage=meter.total, timing=watch.seconds(), calls=calls)
    if runtime.settings.forbidden_sources:
        result["forbidden_sources"] = entries_json(runtime.settings.forbidden_sources)
    if case.supplied:
        result["evidence"] = {"policy": pages.policy.value, **evidence_counts(result)}
    if not case.is_stored:
        return result
    result |= {"judge_usage": _judge_usage(result, meter), "usage_by": meter.rows()}
    result["asked_in"] = _configuration_hash(client, request_parameters, run.model)
    result["warnings"] = await runtime.models.warnings(str(judged_by))
    return await asyncio.to_thread(with_rejudged, result, case.earlier)


async def _opened(runtime: Runtime, judged_by: JudgeName) -> LLMClient:
    """Return the client of the judge, and start the fork server if there is one."""
    client, _ = await runtime.models.open_client(str(judged_by))
    await runtime.models.check_key(str(judged_by))
    if runtime.process_pool is not None:
        runtime.process_pool.start_in_background()
    return client


def _judge_usage(result: Mapping[str, Any], meter: UsageMeter) -> dict[str, Any]:
    """Return ``judge_usage``. A public script has recorded its rejections; those of a native judge are in its votes."""
    rejections = [
        {"check": leaf["id"], "url": leaf["sources"][0] if len(leaf["sources"] or ()) == 1 else None, "reason": fault}
        for leaf in leaves_of(result)
        for vote in leaf.get("votes") or ()
        if (fault := vote["fault"]) == Reason.LLM_OUTPUT_UNUSABLE
    ]
    recorded = result.get("judge_usage") or {"rejections": rejections, "harness_failures": []}
    return {**recorded, **meter.judge_usage()}


def _configuration_hash(client: LLMClient, parameters: RequestParameters, model: str) -> str | None:
    """Return a hash of provider, address and parameters of verifications; None if the client has no request keys."""
    if not isinstance(client, CachedLLM | JuryClient):
        return None
    return client.configuration_hash(parameters.add_to(replace(_VERIFY_REQUEST, model=model)))


def _result(
    run: _Run,
    judged: _Judged,
    pages: Sequence[Mapping[str, Any]],
    *,
    usage: Usage,
    timing: Mapping[str, float],
    calls: Mapping[str, Any] | None,
) -> dict[str, Any]:
    facts = RunFacts(
        id=run.case.result_id,
        judge=run.case.judge,
        judged_with=_judged_with(run.parameters, run.judged_by) | rules(),
        model=run.model,
        prompts=judged.prompts,
        answer_sha256=run.case.answer.sha256,
        usage=usage,
        timing=timing,
        pages=pages,
        calls=calls,
    )
    return build_result({**judged.summary, **_actual_models(judged.summary, run.model)}, facts)


def _actual_models(summary: Mapping[str, Any], model: str) -> dict[str, str]:
    """Return the model of this run for fields that name a default model of the public toolkit.

    If a script requests a default model of the public toolkit, the model of this run is used.
    """
    names = ("judge_model", "extract_model")
    return {name: model for name in names if summary.get(name) in TOOLKIT_DEFAULTS}


def _judged_with(parameters: RunParameters, judged_by: JudgeName) -> dict[str, Any]:
    """Return the judge and its parameters in the format of results. ``judge`` has those of verdict requests.

    Those of a jury are the ones of its first member; ``jury`` has the members with their own.
    """
    by_role = parameters.as_json(judged_by.model)
    verdicts = by_role["verify"]
    judge = {"model": judged_by.model, **{name: verdicts[name] for name in ("reasoning_effort", "temperature")}}
    if judged_by.is_jury:
        members = [
            {"model": one.model, "provider": one.provider, **asdict(parameters.sent_for("verify", one.model))}
            for one in judged_by.members
        ]
        judge["jury"] = {"members": members}
    return {"judge": judge, "parameters": by_role}


async def _run_judge(run: _Run, watch: RejectionMonitor) -> _Judged:
    """Run the judge. If the provider rejected its requests, raise that error instead of a failure of the judge."""
    try:
        with run.runtime.page_preparer.judging():
            judged = await (_run_native(run) if run.case.judge.kind is JudgeKind.NATIVE else _run_script(run))
    except JudgeBug as error:
        if watch.rejection is not None:
            raise watch.rejection from error
        raise
    if watch.rejection is not None:
        raise watch.rejection
    run.reporter.storing()
    return judged


async def _run_native(run: _Run) -> _Judged:
    """Run a native judge: declare the rubric, then settle it. Judges not loaded from a file run in-process."""
    block_builder, prepared = run.runtime.block_builder, run.runtime.page_preparer
    if run.runtime.process_pool is not None and run.case.judge.source is not None:
        isolated = await judge_isolated(run.runtime.process_pool, _job(run))
        return _Judged(summary=isolated.summary, prompts=isolated.prompts, usage=isolated.usage)
    tools = JudgeTools(
        verifier=judge_named(
            run.model, lambda model: run.verifier(run.llm, model, block_builder=block_builder, pages=prepared)
        ),
        extractor=Extractor(run.llm, run.model, block_builder=block_builder, pages=prepared),
        evidence_for=run.pages.evidence_for,
        forbidden=run.forbidden,
    )
    judgement = await run_judge(
        run.case.judge, run.case.answer, tools, progress=run.reporter.judged, deadline_s=run.deadline_s
    )
    summary = await run_on_leaves(lambda: native_summary(judgement, agent_name=run.case.agent), len(judgement.rubric))
    return _Judged(summary=summary, prompts=judgement.prompts, usage=judgement.usage)


def _job(run: _Run) -> JudgeJob:
    return JudgeJob(
        judge=run.case.judge,
        answer=run.case.answer,
        agent=run.case.agent,
        model=run.model,
        llm=run.llm,
        block_builder=run.runtime.block_builder,
        preparer=run.runtime.page_preparer,
        evidence_for=run.pages.evidence_for,
        bodies=run.runtime.blobs,
        verifier=run.verifier,
        progress=run.reporter.judged,
        deadline_s=run.deadline_s,
        forbidden=run.forbidden,
    )


async def _run_script(run: _Run) -> _Judged:
    """Run a public task script with our implementation of the public toolkit."""
    folder = run.case.folder
    if folder is not None and run.forbidden:
        allowed = {key: page for key, page in folder.pages.items() if run.forbidden.of_capture(page) is None}
        folder = replace(folder, pages=allowed)
    pages = TaskPages(run.pages, run.pages.seen, folder, on_use=run.pages.use)
    summary = await run_script(_job(run), pages, run.runtime.process_pool)
    usage = summary.pop("usage", None)
    return _Judged(
        summary=summary, prompts=summary.pop("prompts", ()), usage=Usage() if usage is None else Usage(**usage)
    )


class _ProgressReporter:
    """Combines the progress of capturing and judging."""

    def __init__(self, progress: ProgressCallback, *, pages: int) -> None:
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
    """Stopwatch for the stages of the pipeline, in seconds."""

    def __init__(self) -> None:
        self._started = self._lap_started = time.monotonic()
        self._laps: dict[str, float] = {}

    @property
    def total_s(self) -> float:
        return time.monotonic() - self._started

    def lap(self, name: str) -> None:
        """End the current stage and start the next one."""
        now = time.monotonic()
        self._laps[name] = round(now - self._lap_started, 3)
        self._lap_started = now

    def seconds(self) -> dict[str, float]:
        return {**self._laps, "total_s": round(self.total_s, 3)}


class AnswerPages:
    """Pages of one answer, by its policy for supplied ones. It records the used captures in the order of first use."""

    def __init__(
        self,
        pages: PageCache,
        *,
        near: datetime | None = None,
        owner: str | None = None,
        stored_only: bool = False,
        lookup_age_s: float = 0.0,
        forbidden: ForbiddenSources = NONE_FORBIDDEN,
        supplied: Sequence[Capture] = (),
        policy: EvidencePolicy = EvidencePolicy.CAPTURED,
    ) -> None:
        """``near`` is the time at which the answer was given. The web archive copy closest to it is used.

        ``owner`` is the owner of the answer. ``stored_only``: capture nothing. ``lookup_age_s``: see ``PageCache.get``.
        ``forbidden``: sources that are neither captured nor used. ``supplied``: captures of the pages that the agent
        supplied, which are used as ``policy`` says.
        """
        self._pages = pages
        self._near = near
        self._owner = owner
        self._stored_only = stored_only or policy is EvidencePolicy.SUPPLIED
        self._lookup_age_s = lookup_age_s
        self.forbidden = forbidden
        self._supplied = {canonical_key(capture.url): capture for capture in supplied}
        self.policy = policy
        self._seen: dict[str, Capture] = {}

    @property
    def seen(self) -> tuple[Capture, ...]:
        """One capture per page: the last one if a page was captured again."""
        return tuple(self._seen.values())

    def used_capture(self, url: str) -> Capture | None:
        """Return the capture of a page that this answer has used, or None."""
        return self._seen.get(canonical_key(url))

    async def capture_all(self, urls: Sequence[str], done: Callable[[int], None]) -> None:
        """Capture pages concurrently; the page cache limits the concurrency. Calls ``done`` with the number of pages
        done. Pages of hosts that time out come last.

        Errors of single pages are only logged here. They are raised again when a claim needs the page.

        Raises:
            BrowserUnavailable: Nothing can be captured on this machine.
        """
        count = 0
        by_url: dict[str, Capture] = {}

        async def one(url: str) -> None:
            nonlocal count
            try:
                capture = None if self.forbidden.find(url) else self._preferred(url) or await self._get(url)
                if capture is not None:
                    by_url[url] = await self._rendered(self._fallback(url, capture) or capture)
            except BrowserUnavailable:
                raise
            except CacheError as error:
                _log.warning("page not captured", url=url, detail=str(error))
            count += 1
            done(count)

        done(0)
        unavailable: BaseException | None = None
        try:
            await self._pages.slow_hosts.run_by_host(urls, one)
        except* BrowserUnavailable as errors:
            unavailable = errors.exceptions[0]
        if unavailable is not None:
            raise unavailable
        for url in urls:
            if url in by_url:
                self._keep(by_url[url])

    async def evidence_for(self, url: str) -> Evidence:
        """Return the evidence of a page, as ``PageCache.evidence_for``, and record its capture.

        A page that this answer has already used is not looked up again, whatever its outcome.
        """
        self._check_allowed(url, self.forbidden.find(url), None)
        try:
            return await self._evidence_for(url)
        except NoEvidence as missing:
            supplied = self._fallback(url, missing.capture)
            if supplied is None:
                raise
        supplied = await self._rendered(supplied)
        self._keep(supplied)
        return await self._pages.evidence(supplied)

    async def _rendered(self, capture: Capture) -> Capture:
        """Return the rendered capture of a supplied page, and any other capture as it is."""
        return await self._pages.rendered(capture) if capture.source is CaptureSource.SUPPLIED else capture

    def _fallback(self, url: str, capture: Capture | None) -> Capture | None:
        """Return the supplied page to use instead of a capture that is not evidence; None if there is none."""
        supplied = self._supplied.get(canonical_key(url)) if self.policy is EvidencePolicy.FALLBACK else None
        if supplied is None or not supplied.is_evidence:
            return None
        if capture is not None and (capture.is_evidence or self.forbidden.of_capture(capture) is not None):
            return None
        return supplied

    async def other_copy(self, used: Capture) -> dict[str, Any]:
        """Return ``other_copy`` of a page in the result, if it was captured and supplied: the copy that was not used.

        ``common_5grams`` compares the texts of both copies; None if one of them is not evidence.
        """
        other = None
        if used.source is not CaptureSource.SUPPLIED:
            other = self._supplied.get(canonical_key(used.url))
        else:
            with suppress(CacheError):
                other = await self._pages.stored(used.url, owner=self._owner)
        if other is None:
            return {}
        share = None
        if used.is_evidence and other.is_evidence:
            with suppress(CacheError):
                texts = [(await self._pages.evidence(each)).text for each in (used, other)]
                share = await run_cpu_bound(lambda: round(common_5grams(*texts), 4), *texts)
        return {"other_copy": page_json(other) | {"common_5grams": share}}

    def _preferred(self, url: str) -> Capture | None:
        """Return the supplied page that is used in any case, also if it is no evidence."""
        return self._supplied.get(canonical_key(url)) if self.policy is EvidencePolicy.SUPPLIED else None

    async def _evidence_for(self, url: str) -> Evidence:
        evidence, known = None, self.used_capture(url)
        if known is None and (supplied := self._preferred(url)) is not None:
            known = await self._rendered(supplied)
        if known is not None:
            with suppress(BlobMissing, BlobCorrupt):  # it is captured again below
                evidence = await self._pages.evidence(known)
        try:
            if evidence is None and self._stored_only:
                evidence = await self._pages.stored_evidence_for(url, owner=self._owner)
            elif evidence is None:
                with self._sharing(url):
                    evidence = await self._pages.evidence_for(url, near=self._near, owner=self._owner)
        except NoEvidence as error:
            if error.capture is not None:
                self._keep(error.capture)
            raise
        self._keep(evidence.capture)  # that of an import changes when its screenshots are prepared
        self._check_allowed(url, self.forbidden.of_capture(evidence.capture), evidence.capture)
        return evidence

    def _check_allowed(self, url: str, entry: ForbiddenSource | None, capture: Capture | None) -> None:
        if entry is not None:
            detail = forbidden_text(url, entry.reason)
            raise NoEvidence(url, CaptureOutcome.FORBIDDEN, detail, gone=False, capture=capture)

    def use(self, capture: Capture) -> None:
        """Record a capture that the answer's judge has read, unless the answer has used one of this page."""
        self._seen.setdefault(_key(capture), capture)

    async def _get(self, url: str) -> Capture | None:
        """Return the capture of a page; None if only stored pages are used and it is not stored."""
        if self._stored_only:
            return await self._pages.stored(url, owner=self._owner)
        with self._sharing(url):
            return await self._pages.get(url, near=self._near, owner=self._owner, lookup_age_s=self._lookup_age_s)

    @contextmanager
    def _sharing(self, url: str) -> Iterator[None]:
        """Let a capture of ``url`` count to the share of this answer, within the time limit of its host."""
        with on_behalf_of(self), self._pages.slow_hosts.limited(url):
            yield

    def _keep(self, capture: Capture) -> None:
        self._seen[_key(capture)] = capture


def _key(capture: Capture) -> str:
    """Return the key of the URL of a capture."""
    return canonical_key(capture.url) if capture.source is CaptureSource.SUPPLIED else capture.key


class CallLog:
    """Call log of one answer. Use it as a context manager: it records until the block ends."""

    def __init__(self, runtime: Runtime, pages: AnswerPages, result_id: str | None, *, is_stored: bool = True) -> None:
        """``is_stored``: without it, nothing is recorded."""
        self._is_stored = is_stored
        self._runtime = runtime
        self._pages = pages
        self._stack = ExitStack()
        self.recorder = CallRecorder(result_id, kept=self._is_page_body, mask=runtime.redactor.redact)

    @property
    def observers(self) -> tuple[RequestObserver, ...]:
        return (self.recorder,) if self._is_stored else ()

    async def store(self, judge: Judge) -> dict[str, Any] | None:
        """Store the log. Return its entry in the result, or None if the store fails, which does not fail the job."""
        if not self._is_stored:
            return None
        try:
            if judge.source is not None:
                await self._runtime.blobs.put_in_area(BlobArea.SCRIPTS, judge.source)
            record = await self.recorder.finish()
            sha256 = await self._runtime.blobs.put_in_area(BlobArea.CALLS, record)
        except (BlobStoreFailed, OSError) as error:
            _log.warning("call log not stored", task_id=judge.task, error=str(error))
            return None
        return {"sha256": sha256, "bytes": len(record), "count": self.recorder.calls}

    def _is_page_body(self, sha256: str) -> bool:
        return any(blob.sha256 == sha256 for capture in self._pages.seen for blob in capture.blobs.values())

    def __enter__(self) -> Self:
        if self._is_stored:
            self._stack.enter_context(recording_calls(self.recorder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self.recorder.close()
