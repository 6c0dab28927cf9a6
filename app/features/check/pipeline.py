"""Pipeline of a citation check: bind the citations, divide the statements, capture the sources, judge, count.

The requests of one page follow each other, so that the provider can reuse the page in its prompt cache. A fault is
never a verdict: claims whose page or model failed are not judged, and the figures exclude them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final

import structlog

from answers.binding import Binding, bind
from answers.errors import TooManyParts
from app.async_tools import first_exception
from app.dashboard.wording import plural, reason_words
from app.engine.pipeline import AnswerPages
from app.engine.runtime import Runtime
from app.features.check.auditing import (
    BaselineAuditor,
    JuryAuditor,
    PageAuditor,
    PageClaim,
    requests_of,
    without_verdict,
)
from app.features.check.errors import ReportRejected
from app.features.check.outcomes import StatementResult, figures_of, source_support, statement_result
from app.features.check.report import (
    CapturedPage,
    CheckBudget,
    CheckDocument,
    CheckedReport,
    CheckStatus,
    CheckUsage,
    ClaimOutcome,
    ClaimVerdict,
    ReportCitation,
    ReportClaim,
    ReportSource,
    SourceState,
    Statement,
    StatementOutcome,
)
from app.features.check.splitting import (
    ClaimedStatement,
    split_by_rules,
    split_with_model,
    statements_in_order,
)
from app.features.check.statements import Section, sections_of
from app.progress import Progress, ProgressCallback, Stage, ignore_progress
from cache.capture import Capture, CaptureOutcome, CaptureSource, Evidence
from cache.errors import BrowserUnavailable, CacheError, NoEvidence
from cache.urls import canonical_key
from judges.llm.client import LLMClient
from judges.llm.observed import ObservedLLM, RejectionMonitor, UsageMeter
from judges.llm.parameters import RequestParameters
from judges.llm.providers import LEXICAL, JudgeName, ModelName, parse_judge
from judges.prompting.prompts import load_prompt
from judges.result import LEXICAL_NOTICE, page_json
from judges.source_policy import verdict_without_evidence
from judges.verifier import Verifier
from rubrics.verdict import Outcome, Reason

_log = structlog.get_logger(__name__)

MAX_REPORT_CHARS: Final = 4_000_000
MAX_CITATIONS: Final = 10_000
MAX_PAGES: Final = 2_000
_PAGES_AT_ONCE: Final = 30
_GONE_STATUS: Final = frozenset({"404", "410"})
NO_URL: Final = "no_url"
MARK_WITHOUT_SOURCE: Final = "mark_without_source"
TOO_LARGE: Final = (
    "divide the report into several files, or list its citations without judging them (`assay check FILE --bind`)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """Report to check. ``url`` and ``page_id`` are set for a published page."""

    name: str
    text: str
    url: str | None = None
    page_id: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlan:
    """Citations and statements of a report. ``urls`` are the distinct pages that are cited, in text order."""

    report: ReportInput
    binding: Binding
    sections: tuple[Section, ...]
    urls: tuple[str, ...]

    @property
    def sentences(self) -> int:
        return sum(len(section.statements) for section in self.sections)


def plan_check(report: ReportInput) -> CheckPlan:
    """Return the plan of a check. Takes up to a second per MB; run it in a thread.

    Raises:
        ReportRejected: The report is empty, too long, or has too many citations.
    """
    text = report.text
    if not text.strip():
        raise ReportRejected(f"{report.name} is empty")
    if len(text) > MAX_REPORT_CHARS:
        raise ReportRejected(f"{report.name} has {len(text):,} characters (maximum {MAX_REPORT_CHARS:,}): {TOO_LARGE}")
    try:
        binding = bind(text)
    except TooManyParts as error:
        raise ReportRejected(str(error)) from error
    pairs = len({(mark.statement_start, mark.source) for mark in binding.marks})
    if pairs > MAX_CITATIONS:
        raise ReportRejected(f"{report.name} has {pairs:,} citations (maximum {MAX_CITATIONS:,}): {TOO_LARGE}")
    used = [mark.source for mark in binding.marks if mark.source is not None]
    by_key: dict[str, str] = {}
    for index in dict.fromkeys(used):
        url = binding.sources[index].url
        if url is not None:
            by_key.setdefault(canonical_key(url), url)
    if len(by_key) > MAX_PAGES:
        raise ReportRejected(f"{report.name} cites {len(by_key):,} pages (maximum {MAX_PAGES:,}): {TOO_LARGE}")
    return CheckPlan(report=report, binding=binding, sections=tuple(sections_of(binding)), urls=tuple(by_key.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Options of one check.

    Attributes:
        model: ``provider/model`` (default: that of the settings).
        owner: Owner of the check. Their private captures are used besides the shared ones.
        budget_usd: Limit that is shown in the document. The budget itself is in ``job_client`` or in the settings.
        job_client: Wraps the client of the model, for example with the checkpoints and the budget of a job.
        deadline_s: Time limit from the start of the check. Claims not judged by then have the reason ``timeout``.
    """

    model: str | None = None
    owner: str | None = None
    check_id: str | None = None
    budget_usd: float | None = None
    progress: ProgressCallback = ignore_progress
    job_client: Callable[[LLMClient], LLMClient] = lambda client: client
    deadline_s: float | None = None


@dataclass(slots=True)
class _SourcePage:
    """What is known about one source."""

    state: SourceState
    reason: str | None = None
    detail: str = ""
    capture: Capture | None = None
    archived_url: str | None = None
    error: CacheError | None = None


@dataclass(slots=True)
class _Run:
    """State of a check while it runs."""

    plan: CheckPlan
    options: CheckOptions
    deadline: float | None
    """Time limit for judging, in the clock of the event loop."""
    pages_done: int = 0
    claims_done: int = 0
    claims_total: int = 0
    verdicts: dict[int, ClaimVerdict] = field(default_factory=dict)

    def report(self, stage: Stage) -> None:
        self.options.progress(
            Progress(
                stage=stage,
                pages_done=self.pages_done,
                pages_total=len(self.plan.urls),
                leaves_done=self.claims_done,
                leaves_total=self.claims_total,
            )
        )

    def captured(self, done: int) -> None:
        self.pages_done = done
        self.report(Stage.CAPTURING)

    def decided(self, verdicts: Mapping[int, ClaimVerdict]) -> None:
        self.verdicts.update(verdicts)
        self.claims_done += len(verdicts)
        self.report(Stage.JUDGING)


async def check_report(runtime: Runtime, plan: CheckPlan, options: CheckOptions) -> CheckDocument:
    """Check the citations of a report.

    Raises:
        ModelNotConfigured, BrowserUnavailable: The model or the browser cannot be used on this machine.
        LLMRejected: The provider rejects every request. Replies that were paid for are in the reply cache.
    """
    settings = runtime.settings
    judged_by = parse_judge(options.model or settings.model)
    model = judged_by.first.model
    client, _ = await runtime.models.open_client(str(judged_by))
    runtime.models.check(str(judged_by))
    meter, rejections = UsageMeter(), RejectionMonitor(*judged_by.providers)
    parameters = RequestParameters(settings.parameters, judged_by.providers)
    llm = ObservedLLM(options.job_client(client), (meter, rejections), prepare=parameters.add_to)
    by_rules = judged_by.first.provider == LEXICAL
    pages = AnswerPages(runtime.pages, owner=options.owner)
    now_s = asyncio.get_running_loop().time()
    run = _Run(plan, options, None if options.deadline_s is None else now_s + options.deadline_s)
    claimed = await _split_and_capture(runtime, run, pages, llm, model, is_baseline=by_rules)
    if rejections.rejection is not None:
        raise rejections.rejection
    pairs = list(_pairs(claimed))
    run.claims_total = len(pairs)
    run.report(Stage.JUDGING)
    auditor = _auditor(runtime, llm, judged_by, run)
    sources = await _judge(runtime, run, pages, pairs, auditor)
    if rejections.rejection is not None:
        raise rejections.rejection
    run.report(Stage.STORING)
    prompts = _prompts(run, by_rules=by_rules)
    usage = meter.total
    document = await asyncio.to_thread(
        _document,
        run,
        claimed,
        pairs,
        sources,
        judged_by,
        prompts,
        runtime.clock.now(),
    )
    _log.info("report checked", statements=len(document.statements), sources=len(document.sources))
    by_reason = Counter(
        verdict.reason or ""
        for verdict in run.verdicts.values()
        if verdict.outcome in {ClaimOutcome.NOT_JUDGED, ClaimOutcome.UNREADABLE}
    )
    exhausted = by_reason[Reason.BUDGET.value] > 0
    status = CheckStatus.STOPPED if exhausted else CheckStatus.INCOMPLETE if by_reason else CheckStatus.COMPLETE
    return document.model_copy(
        update={
            "id": options.check_id,
            "status": status,
            "not_judged": dict(by_reason),
            "usage": CheckUsage(**asdict(usage)),
            "budget": CheckBudget(limit_usd=options.budget_usd, exhausted=exhausted),
            "warnings": [*document.warnings, *_fault_warnings(by_reason)],
        }
    )


def _prompts(run: _Run, *, by_rules: bool) -> set[str]:
    """Return the prompts that were sent. ``by_rules``: the statements were divided without a model."""
    sent = {verdict.prompt for verdict in run.verdicts.values() if verdict.prompt is not None}
    return sent if by_rules or not run.plan.sections else sent | {load_prompt("split_claims").ref}


async def _split_and_capture(
    runtime: Runtime, run: _Run, pages: AnswerPages, llm: LLMClient, model: str, *, is_baseline: bool
) -> list[ClaimedStatement]:
    """Divide the statements while the browser captures the sources."""
    plan, text = run.plan, run.plan.report.text
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pages.capture_all(plan.urls, run.captured))
            if is_baseline:
                parts = [group.create_task(asyncio.to_thread(_split_all, plan.sections, text))]
            else:
                parts = [group.create_task(_split_one(section, text, llm, model, runtime)) for section in plan.sections]
    except* BrowserUnavailable as errors:
        failed = first_exception(errors)
    if failed is not None:
        raise failed
    return statements_in_order([part.result() for part in parts])


def _split_all(sections: Sequence[Section], text: str) -> list[ClaimedStatement]:
    return [one for section in sections for one in split_by_rules(section, text)]


async def _split_one(
    section: Section, text: str, llm: LLMClient, model: str, runtime: Runtime
) -> list[ClaimedStatement]:
    return await split_with_model(section, text, llm, model, runtime.block_builder)


def _pairs(claimed: Sequence[ClaimedStatement]) -> list[PageClaim]:
    pairs: list[PageClaim] = []
    for one in claimed:
        for claim in one.claims:
            for source in one.statement.sources:
                pairs.append(PageClaim(index=len(pairs), source=source, claim=claim, statement=one.statement))
    return pairs


def _auditor(
    runtime: Runtime, llm: LLMClient, judged_by: JudgeName, run: _Run
) -> PageAuditor | BaselineAuditor | JuryAuditor:
    builder, preparer = runtime.block_builder, runtime.page_preparer
    text = run.plan.report.text

    def member(name: ModelName) -> PageAuditor | BaselineAuditor:
        if name.provider == LEXICAL:
            verifier = Verifier(llm, name.model, block_builder=builder, pages=preparer)
            return BaselineAuditor(verifier=verifier, pages=preparer, text=text)
        return PageAuditor(llm=llm, model=name.model, block_builder=builder, pages=preparer, text=text)

    if not judged_by.is_jury:
        return member(judged_by.first)
    members = {one.model: member(one) for one in judged_by.members}
    return JuryAuditor(name=judged_by.model, members=members)


async def _judge(
    runtime: Runtime,
    run: _Run,
    pages: AnswerPages,
    pairs: Sequence[PageClaim],
    auditor: PageAuditor | BaselineAuditor | JuryAuditor,
) -> dict[int, _SourcePage]:
    """Judge all pairs of claim and source, page by page. Return what is known about each source, by index."""
    binding = run.plan.binding
    by_page: dict[str, list[PageClaim]] = {}
    found: dict[int, _SourcePage] = {}
    for pair in pairs:
        url = binding.sources[pair.source].url
        if url is None:
            found[pair.source] = _SourcePage(SourceState.NO_URL)
            detail = "The source has no URL."
            run.decided({pair.index: without_verdict(pair, ClaimOutcome.UNREADABLE, NO_URL, detail)})
        else:
            by_page.setdefault(canonical_key(url), []).append(pair)
    slots = asyncio.Semaphore(_PAGES_AT_ONCE)

    async def judge_page(claims: Sequence[PageClaim]) -> None:
        url = binding.sources[claims[0].source].url
        async with slots:
            page, evidence = await _open(pages, str(url))
            found.update((claim.source, page) for claim in claims)
            if evidence is None:
                run.decided({claim.index: _missing(claim, page) for claim in claims})
                return
            first, *others = requests_of(claims)
            run.decided(await auditor.decide(first, evidence))
            for part in others:
                run.decided(await auditor.decide(part, evidence))

    try:
        async with asyncio.timeout_at(run.deadline) as limit:
            await _all_pages(judge_page(claims) for claims in by_page.values())
    except TimeoutError:
        if not limit.expired():
            raise
    detail = f"Not judged within {run.options.deadline_s or 0:g} s."
    run.decided(
        {
            pair.index: without_verdict(pair, ClaimOutcome.NOT_JUDGED, Reason.TIMEOUT, detail)
            for pair in pairs
            if pair.index not in run.verdicts
        }
    )
    return found


async def _all_pages(judging: Iterable[Coroutine[Any, Any, None]]) -> None:
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for one in judging:
                group.create_task(one)
    except* BrowserUnavailable as errors:
        failed = first_exception(errors)
    if failed is not None:
        raise failed


async def _open(pages: AnswerPages, url: str) -> tuple[_SourcePage, Evidence | None]:
    """Return what is known about a source, and its evidence if it can be read."""
    try:
        evidence = await _evidence(pages, url)
    except BrowserUnavailable:
        raise
    except NoEvidence as error:
        is_unknown = error.capture is not None and error.capture.provenance.get("wayback") == "never seen"
        state = SourceState.UNREADABLE
        if error.gone:
            state = SourceState.FABRICATED if is_unknown else SourceState.DEAD
        return _SourcePage(
            state, reason=error.outcome.value, detail=error.detail, capture=error.capture, error=error
        ), None
    except CacheError as error:
        return _SourcePage(SourceState.UNREADABLE, reason="not_stored", detail=str(error), error=error), None
    capture = evidence.capture
    page = _SourcePage(SourceState.READABLE, detail=capture.detail, capture=capture)
    if capture.source is CaptureSource.WAYBACK:
        provenance = capture.provenance
        page.archived_url = provenance.get("archive_url")
        if (
            provenance.get("live_status") in _GONE_STATUS
            or provenance.get("live_outcome") == CaptureOutcome.DNS_ERROR.value
        ):
            page.state, page.reason = SourceState.DEAD, provenance.get("live_outcome")
    return page, evidence


async def _evidence(pages: AnswerPages, url: str) -> Evidence:
    """Return the evidence of a page. A page that could not be read is not captured a second time."""
    key = canonical_key(url)
    failed = next((one for one in pages.seen if one.key == key and not one.is_evidence), None)
    if failed is not None:
        raise NoEvidence(url, failed.outcome, failed.detail, gone=failed.gone, capture=failed)
    return await pages.evidence_for(url)


def _missing(claim: PageClaim, page: _SourcePage) -> ClaimVerdict:
    if page.error is None:
        raise ValueError("the source can be read")
    verdict = verdict_without_evidence(page.error)
    outcome = ClaimOutcome.DEAD if verdict.outcome is Outcome.FAILED else ClaimOutcome.UNREADABLE
    return without_verdict(claim, outcome, verdict.reason, verdict.reasoning)


def _document(
    run: _Run,
    claimed: Sequence[ClaimedStatement],
    pairs: Sequence[PageClaim],
    found: Mapping[int, _SourcePage],
    judged_by: JudgeName,
    prompts: set[str],
    created_at: datetime,
) -> CheckDocument:
    plan, binding = run.plan, run.plan.binding
    is_baseline = judged_by.model == LEXICAL
    sources = _sources(binding, found)
    by_claim: dict[int, list[ClaimVerdict]] = {}
    for pair in pairs:
        by_claim.setdefault(id(pair.claim), []).append(run.verdicts[pair.index])
    statements = [_statement(one, binding.text, by_claim, sources) for one in claimed]
    return CheckDocument(
        status=CheckStatus.COMPLETE,
        baseline=is_baseline,
        notice=LEXICAL_NOTICE if is_baseline else None,
        model=LEXICAL if is_baseline else str(judged_by),
        prompts=sorted(prompts),
        created_at=created_at,
        tool_version=version("assay"),
        report=CheckedReport(
            name=plan.report.name,
            url=plan.report.url,
            text=binding.text,
            sha256=hashlib.sha256(binding.text.encode("utf-8", "surrogatepass")).hexdigest(),
            page_id=plan.report.page_id,
        ),
        statements=statements,
        sources=sources,
        sentences=plan.sentences,
        counts=dict(Counter(statement.outcome for statement in statements)),
        figures=figures_of(statements, sources, plan.sentences),
        warnings=[*plan.report.warnings, *_warnings(plan, statements, claimed, is_baseline=is_baseline)],
    )


def _statement(
    one: ClaimedStatement, text: str, by_claim: Mapping[int, list[ClaimVerdict]], sources: Sequence[ReportSource]
) -> Statement:
    statement = one.statement
    claims = [
        ReportClaim(text=claim.text, spans=list(claim.spans), verdicts=by_claim.get(id(claim), []))
        for claim in one.claims
    ]
    citations = []
    for mark in statement.marks:
        supports, contributes = (None, None) if mark.source is None else source_support(claims, mark.source)
        citations.append(
            ReportCitation(
                mark=text[mark.start : mark.end],
                start=mark.start,
                end=mark.end,
                source=mark.source,
                supports=supports if mark.source is not None else False,
                contributes=contributes if mark.source is not None else False,
            )
        )
    if statement.sources:
        result = statement_result(claims, sources)
    else:
        reason = MARK_WITHOUT_SOURCE if statement.marks else None
        result = StatementResult(StatementOutcome.UNCITED, reason, ())
    return Statement(
        start=statement.start,
        end=statement.end,
        text=text[statement.start : statement.end],
        kind=statement.kind,
        factual=one.factual,
        outcome=result.outcome,
        reason=result.reason,
        unsupported=list(result.unsupported),
        claims=claims,
        citations=citations,
    )


def _sources(binding: Binding, found: Mapping[int, _SourcePage]) -> list[ReportSource]:
    marks = Counter(mark.source for mark in binding.marks)
    sources = []
    for index, source in enumerate(binding.sources):
        page = found.get(index) or _SourcePage(SourceState.NOT_CHECKED if source.url else SourceState.NO_URL)
        sources.append(
            ReportSource(
                url=source.url,
                title=source.title,
                state=page.state,
                reason=page.reason,
                detail=page.detail,
                marks=marks[index],
                page=None if page.capture is None else _captured_page(page.capture),
                archived_url=page.archived_url,
            )
        )
    return sources


def _captured_page(capture: Capture) -> CapturedPage:
    entry = page_json(capture)
    return CapturedPage(
        page_id=capture.id,
        url=capture.url,
        final_url=capture.final_url,
        title=capture.title,
        kind=capture.kind.value,
        outcome=capture.outcome.value,
        http_status=capture.http_status,
        detail=capture.detail,
        captured_at=capture.captured_at,
        sha256=entry["sha256"],
        bodies=entry["bodies"],
        source=capture.source.value,
    )


def _warnings(
    plan: CheckPlan, statements: Sequence[Statement], claimed: Sequence[ClaimedStatement], *, is_baseline: bool
) -> list[str]:
    warnings = []
    if not plan.binding.marks:
        warnings.append("The report has no citations.")
    unbound = len(plan.binding.unbound())
    if unbound:
        warnings.append(f"{plural(unbound, 'citation mark', 'citation marks')} without a source in the report.")
    ungrounded = sum(
        verdict.outcome is ClaimOutcome.SUPPORTED and not verdict.grounded
        for statement in statements
        for claim in statement.claims
        for verdict in claim.verdicts
    )
    if ungrounded:
        warnings.append(
            f"{plural(ungrounded, 'supported claim', 'supported claims')} without a quote found in the page."
        )
    by_rules = 0 if is_baseline else sum(one.by_rules and one.factual for one in claimed)
    if by_rules:
        warnings.append(f"{plural(by_rules, 'statement', 'statements')} divided into claims without the model.")
    return warnings


def _fault_warnings(by_reason: Mapping[str, int]) -> list[str]:
    return [
        f"{plural(count, 'verdict', 'verdicts')} missing: {reason_words(reason)}"
        for reason, count in sorted(by_reason.items())
    ]
