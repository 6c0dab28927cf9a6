"""Pipeline of a citation check: bind the citations, divide the statements, capture the sources, judge, count.

The requests of one page follow each other, so that the provider can reuse the page in its prompt cache. A fault is
never a verdict: claims whose page or model failed are not judged, and the figures exclude them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from typing import Final

import structlog

from answers.binding import Binding, Source
from app.async_tools import first_exception
from app.dashboard.wording import plural, reason_words
from app.engine.pipeline import AnswerPages
from app.engine.runtime import Runtime
from app.features.check.auditing import Auditor, PageClaim, by_page, page_claims, page_key, requests_of, without_verdict
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
from app.features.check.reports import CheckPlan
from app.features.check.statements import ClaimedStatement, split_by_rules, split_with_model, statements_in_order
from app.progress import Progress, ProgressCallback, Stage, ignore_progress
from cache.backends.documents import SNIFFED_BYTES, ByteKind, sniff
from cache.capture import Capture, CaptureOutcome, CaptureSource, Evidence, EvidencePolicy
from cache.errors import BrowserUnavailable, CacheError, NoEvidence
from cache.sources.supplied import store_supplied
from cache.sources.uploads import UploadedPage
from judges.forbidden_sources import ForbiddenSources
from judges.llm.client import LLMClient
from judges.llm.observed import ObservedLLM, RejectionMonitor, UsageMeter
from judges.llm.parameters import RequestParameters
from judges.llm.providers import LEXICAL, JudgeName, parse_judge
from judges.prompting.prompts import load_prompt
from judges.result import LEXICAL_NOTICE, page_json
from judges.source_policy import verdict_without_evidence
from rubrics.verdict import Outcome, Reason, Usage

_log = structlog.get_logger(__name__)

_PAGES_AT_ONCE: Final = 30
_GONE_STATUS: Final = frozenset({"404", "410"})
NO_URL: Final = "no_url"
TRUNCATED: Final = "truncated_url"
MARK_WITHOUT_SOURCE: Final = "mark_without_source"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Options of one check.

    Attributes:
        model: ``provider/model`` (default: that of the settings).
        owner: Owner of the check. Their private captures are used besides the shared ones.
        budget_usd: Limit that is shown in the document. The budget itself is in ``job_client`` or in the settings.
        job_client: Wraps the client of the model, for example with the checkpoints and the budget of a job.
        supplied: Pages that come with the report. They are used as ``policy`` says.
        deadline_s: Time limit from the start of the check. Claims not judged by then have the reason ``timeout``.
    """

    model: str | None = None
    owner: str | None = None
    check_id: str | None = None
    budget_usd: float | None = None
    progress: ProgressCallback = ignore_progress
    job_client: Callable[[LLMClient], LLMClient] = lambda client: client
    supplied: Sequence[UploadedPage] = ()
    policy: EvidencePolicy = EvidencePolicy.SUPPLIED
    deadline_s: float | None = None


@dataclass(slots=True)
class _Run:
    """State of a check while it runs."""

    plan: CheckPlan
    options: CheckOptions
    judged_by: JudgeName
    deadline: float | None
    """Time limit for judging, in the clock of the event loop."""
    pages_done: int = 0
    claims_done: int = 0
    claims_total: int = 0
    verdicts: dict[int, ClaimVerdict] = field(default_factory=dict)
    sources: dict[int, ReportSource] = field(default_factory=dict)
    """What is known about the sources that were opened, by index. The fields of the report are missing."""

    @property
    def is_baseline(self) -> bool:
        return self.judged_by.first.provider == LEXICAL

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
        SuppliedRejected: A supplied page cannot be used.
    """
    settings = runtime.settings
    judged_by = parse_judge(options.model or settings.model)
    client, _ = await runtime.models.open_client(str(judged_by))
    await runtime.models.check_key(str(judged_by))
    meter, rejections = UsageMeter(), RejectionMonitor(*judged_by.providers)
    parameters = RequestParameters(settings.parameters, judged_by.providers)
    llm = ObservedLLM(options.job_client(client), (meter, rejections), prepare=parameters.add_to)
    pages = AnswerPages(
        runtime.pages,
        owner=options.owner,
        forbidden=ForbiddenSources(settings.forbidden_sources),
        supplied=await store_supplied(options.supplied, runtime.pages, owner=options.owner),
        policy=options.policy if options.supplied else EvidencePolicy.CAPTURED,
    )
    now_s = asyncio.get_running_loop().time()
    run = _Run(plan, options, judged_by, None if options.deadline_s is None else now_s + options.deadline_s)
    claimed = await _split_and_capture(runtime, run, pages, llm, rejections)
    if rejections.rejection is not None:
        raise rejections.rejection
    pairs = page_claims(claimed)
    run.claims_total = len(pairs)
    run.report(Stage.JUDGING)
    builder, preparer = runtime.block_builder, runtime.page_preparer
    auditor = Auditor(llm=llm, judged_by=judged_by, block_builder=builder, pages=preparer, text=plan.report.text)
    await _judge(run, pages, pairs, auditor)
    if rejections.rejection is not None:
        raise rejections.rejection
    run.report(Stage.STORING)
    document = await asyncio.to_thread(_document, run, claimed, pairs, meter.total, runtime.clock.now())
    _log.info("report checked", statements=len(document.statements), sources=len(document.sources))
    return document


async def _split_and_capture(
    runtime: Runtime, run: _Run, pages: AnswerPages, llm: LLMClient, rejections: RejectionMonitor
) -> list[ClaimedStatement]:
    """Divide the statements while the browser captures the sources.

    Nothing is captured before the model has divided the first section, because a wrong model or key ends the check.
    """
    plan, text = run.plan, run.plan.report.text
    model, builder = run.judged_by.first.model, runtime.block_builder

    def by_rules() -> list[ClaimedStatement]:
        return [one for section in plan.sections for one in split_by_rules(section, text)]

    first = []
    if plan.sections and not run.is_baseline:
        first = [await split_with_model(plan.sections[0], text, llm, model, builder)]
        if rejections.rejection is not None:
            raise rejections.rejection
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pages.capture_all(plan.urls, run.captured))
            if run.is_baseline:
                parts = [group.create_task(asyncio.to_thread(by_rules))]
            else:
                parts = [
                    group.create_task(split_with_model(section, text, llm, model, builder))
                    for section in plan.sections[1:]
                ]
    except BaseExceptionGroup as errors:
        raise first_exception(errors) from None
    return statements_in_order([*first, *(part.result() for part in parts)])


async def _judge(run: _Run, pages: AnswerPages, pairs: Sequence[PageClaim], auditor: Auditor) -> None:
    """Judge all pairs of claim and source, page by page."""
    binding = run.plan.binding
    pages_of_claims = by_page(binding, pairs)
    without_page = pages_of_claims.pop(None, [])
    run.decided({one.index: _without_page(one, binding.sources[one.source]) for one in without_page})
    sources: dict[str, list[int]] = {}
    for index, each in enumerate(binding.sources):
        key = page_key(each)
        if key is not None:
            sources.setdefault(key, []).append(index)
    slots = asyncio.Semaphore(_PAGES_AT_ONCE)

    async def judge_page(indices: Sequence[int], claims: Sequence[PageClaim]) -> None:
        url = binding.sources[indices[0]].url
        async with slots:
            source, evidence = await _open(pages, str(url))
            run.sources.update((index, source) for index in indices)
            if isinstance(evidence, CacheError):
                run.decided({claim.index: _missing(claim, evidence) for claim in claims})
                return
            for part in requests_of(claims):
                run.decided(await auditor.decide(part, evidence))

    try:
        async with asyncio.timeout_at(run.deadline) as limit, asyncio.TaskGroup() as group:
            for key, indices in sources.items():
                group.create_task(judge_page(indices, pages_of_claims.get(key, ())))
    except TimeoutError:
        if not limit.expired():
            raise
    except BaseExceptionGroup as errors:
        raise first_exception(errors) from None
    detail = f"Not judged within {run.options.deadline_s or 0:g} s."
    run.decided(
        {
            pair.index: without_verdict(pair, ClaimOutcome.NOT_JUDGED, Reason.TIMEOUT, detail)
            for pair in pairs
            if pair.index not in run.verdicts
        }
    )


async def _open(pages: AnswerPages, url: str) -> tuple[ReportSource, Evidence | CacheError]:
    """Return what is known about a source, and its evidence or the error because of which it cannot be read."""
    try:
        evidence = await _evidence(pages, url)
    except BrowserUnavailable:
        raise
    except NoEvidence as error:
        is_unknown = error.capture is not None and error.capture.provenance.get("wayback") == "never seen"
        state = SourceState.UNREADABLE
        if error.gone:
            state = SourceState.FABRICATED if is_unknown else SourceState.DEAD
        page = None if error.capture is None else _captured_page(error.capture)
        return ReportSource(url=url, state=state, reason=error.outcome.value, detail=error.detail, page=page), error
    except CacheError as error:
        return ReportSource(url=url, state=SourceState.UNREADABLE, reason="not_stored", detail=str(error)), error
    capture = evidence.capture
    state, reason, archived_url = SourceState.READABLE, None, None
    if capture.source is CaptureSource.WAYBACK:
        provenance = capture.provenance
        archived_url = provenance.get("archive_url")
        if (
            provenance.get("live_status") in _GONE_STATUS
            or provenance.get("live_outcome") == CaptureOutcome.DNS_ERROR.value
        ):
            state, reason = SourceState.DEAD, provenance.get("live_outcome")
    page = _captured_page(capture)
    return ReportSource(
        url=url, state=state, reason=reason, detail=capture.detail, page=page, archived_url=archived_url
    ), evidence


async def _evidence(pages: AnswerPages, url: str) -> Evidence:
    """Return the evidence of a page. A page that could not be read is not captured a second time."""
    failed = pages.used_capture(url)
    if failed is not None and not failed.is_evidence:
        raise NoEvidence(url, failed.outcome, failed.detail, gone=failed.gone, capture=failed)
    return await pages.evidence_for(url)


def _without_page(claim: PageClaim, source: Source) -> ClaimVerdict:
    if source.truncated:
        detail = f"The report contains only the beginning of the URL: {source.url}"
        return without_verdict(claim, ClaimOutcome.UNREADABLE, TRUNCATED, detail)
    return without_verdict(claim, ClaimOutcome.UNREADABLE, NO_URL, "The source has no URL.")


def _missing(claim: PageClaim, error: CacheError) -> ClaimVerdict:
    verdict = verdict_without_evidence(error)
    outcome = ClaimOutcome.DEAD if verdict.outcome is Outcome.FAILED else ClaimOutcome.UNREADABLE
    if verdict.reason is Reason.SOURCE_FORBIDDEN:
        outcome = ClaimOutcome.NOT_SUPPORTED
    return without_verdict(claim, outcome, verdict.reason, verdict.reasoning)


def _document(
    run: _Run, claimed: Sequence[ClaimedStatement], pairs: Sequence[PageClaim], usage: Usage, created_at: datetime
) -> CheckDocument:
    plan, binding, options = run.plan, run.plan.binding, run.options
    is_baseline = run.judged_by.model == LEXICAL
    sources = list(_sources(binding, run.sources))
    by_claim: dict[int, list[ClaimVerdict]] = {}
    for pair in pairs:
        by_claim.setdefault(id(pair.claim), []).append(run.verdicts[pair.index])
    statements = [_statement(one, binding.text, by_claim, sources) for one in claimed]
    missing = Counter(
        verdict.reason or ""
        for verdict in run.verdicts.values()
        if verdict.outcome in {ClaimOutcome.NOT_JUDGED, ClaimOutcome.UNREADABLE}
    )
    exhausted = missing[Reason.BUDGET.value] > 0
    prompts = {verdict.prompt for verdict in run.verdicts.values() if verdict.prompt is not None}
    if plan.sections and not run.is_baseline:
        prompts.add(load_prompt("split_claims").ref)
    return CheckDocument(
        id=options.check_id,
        status=CheckStatus.STOPPED if exhausted else CheckStatus.INCOMPLETE if missing else CheckStatus.COMPLETE,
        baseline=is_baseline,
        notice=LEXICAL_NOTICE if is_baseline else None,
        model=LEXICAL if is_baseline else str(run.judged_by),
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
        not_judged=dict(missing),
        usage=CheckUsage(**asdict(usage)),
        budget=CheckBudget(limit_usd=options.budget_usd, exhausted=exhausted),
        warnings=_warnings(plan, statements, claimed, missing, is_baseline=is_baseline),
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
                page=mark.page,
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


def _sources(binding: Binding, opened: Mapping[int, ReportSource]) -> Iterator[ReportSource]:
    marks = Counter(mark.source for mark in binding.marks)
    for index, source in enumerate(binding.sources):
        state = SourceState.TRUNCATED if source.truncated else SourceState.NOT_CHECKED
        known = opened.get(index) or ReportSource(url=source.url, state=state if source.url else SourceState.NO_URL)
        yield known.model_copy(update={"url": source.url, "title": source.title, "marks": marks[index]})


def _captured_page(capture: Capture) -> CapturedPage:
    fields = {name: value for name, value in page_json(capture).items() if name in CapturedPage.model_fields}
    return CapturedPage(**fields, title=capture.title)


def _warnings(
    plan: CheckPlan,
    statements: Sequence[Statement],
    claimed: Sequence[ClaimedStatement],
    missing: Mapping[str, int],
    *,
    is_baseline: bool,
) -> list[str]:
    warnings = []
    if sniff(plan.report.text[:SNIFFED_BYTES].encode("utf-8", "replace"), "") is ByteKind.HTML:
        warnings.append("The report is HTML and was read as Markdown. Send it as an .html document to convert it.")
    if not plan.binding.marks:
        warnings.append("The report has no citations.")
    unused = len(plan.binding.unused())
    if unused:
        warnings.append(f"{plural(unused, 'source', 'sources')} not bound to a statement.")
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
    warnings += [
        f"{plural(count, 'verdict', 'verdicts')} missing: {reason_words(reason)}"
        for reason, count in sorted(missing.items())
    ]
    return warnings
