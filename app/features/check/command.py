"""``assay check``: check a report or estimate the check, and print the outcome."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import typer

from answers.binding import without_product_marks
from app.console import event_loop
from app.console.answer_files import STDIN_NAME
from app.console.errors import Exit, Incomplete, ToolFailed
from app.console.judging_options import baseline_suggested, judging_settings, quiet_logging
from app.console.not_judged import unread_page_lines
from app.console.progress import ProgressBoard, Step
from app.console.runtime import open_command_runtime
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.console.tables import plain_table
from app.dashboard.wording import shorten, state_words
from app.demo.expected import report_path
from app.demo.site import DemoSite
from app.engine.estimate import PageSize
from app.engine.runtime import Runtime
from app.features.check.auditing import audit_request, by_page, page_claims, requests_of
from app.features.check.pipeline import CheckOptions, check_report
from app.features.check.reading_view import render_view
from app.features.check.report import (
    CheckDocument,
    CheckStatus,
    ClaimOutcome,
    ClaimVerdict,
    Figure,
    ReportSource,
    SourceState,
    Statement,
    StatementOutcome,
)
from app.features.check.reports import CheckPlan, ReportInput, plan_check, published_report
from app.features.check.statements import readable_mark, split_by_rules, split_request, statements_in_order
from app.progress import Progress, Stage
from app.settings import Settings
from cache.capture import EvidencePolicy
from cache.capture_index import FolderIndex, MemoryIndex
from cache.errors import BlobError
from cache.sources.uploads import UploadedPage
from cache.urls import canonical_key
from judges.llm.client import LLMRequest
from judges.llm.pricing import estimate_tokens
from judges.llm.providers import LEXICAL, parse_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.text_pages import evidence_of
from rubrics.scoring import reaches

_MAX_LISTED = 20
_MAX_SOURCES = 5
_MAX_PASSAGES = 3
_TOKENS_PER_CLAIM: Final = 150
_TOKENS_PER_REPLY: Final = 600
"""Likely reasoning tokens of one reply."""
_UNKNOWN_PAGE: Final = PageSize(text_bytes=8_000, images=1)

FIGURE_LABELS: Final = {
    "citation_precision_liu2023": "citation precision (Liu et al. 2023)",
    "citation_recall_liu2023": "citation recall (Liu et al. 2023)",
    "citation_precision_alce": "citation precision (ALCE)",
    "citation_recall_alce": "citation recall (ALCE)",
    "unreadable": "sources unreadable",
    "dead": "sources dead",
    "fabricated": "sources fabricated",
    "uncited": "statements uncited",
}
OUTCOME_LABELS: Final = {
    StatementOutcome.CONTRADICTED: "contradicted",
    StatementOutcome.NOT_SUPPORTED: "not supported",
    StatementOutcome.PARTLY_SUPPORTED: "partly supported",
    StatementOutcome.DEAD: "dead source",
    StatementOutcome.UNREADABLE: "source unreadable (not judged)",
    StatementOutcome.NOT_JUDGED: "not judged",
    StatementOutcome.UNCITED: "no citation",
    StatementOutcome.SUPPORTED: "supported",
}
"""The most important outcome comes first."""
VERDICT_LABELS: Final = {
    ClaimOutcome.CONTRADICTED: "contradicts it",
    ClaimOutcome.NOT_SUPPORTED: "does not support it",
    ClaimOutcome.PARTLY_SUPPORTED: "supports a part of it",
    ClaimOutcome.DEAD: "gone",
    ClaimOutcome.UNREADABLE: "could not be read",
    ClaimOutcome.NOT_JUDGED: "not judged",
}
"""What is said about a source, the worst outcome first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand:
    """One run of the command. ``source`` is a file or URL; None for the demo report. ``text`` is that of a file."""

    source: str | None
    text: str | None
    supplied: Sequence[UploadedPage]
    policy: EvidencePolicy
    model: str | None
    budget: float | None
    max_pages: int | None

    def published_text(self) -> str:
        """Return the text of a published page with its links."""
        return event_loop.run(self._published()).text

    def print_estimate(self, *, as_json: bool) -> None:
        """Print what the check would take. Judges nothing; a published page is opened to read the report."""
        settings = self._settings()

        async def run() -> None:
            plan = await asyncio.to_thread(plan_check, self._given() or await self._published())
            estimate = await estimate_check(settings, plan, self.supplied)
            if as_json:
                print_json(asdict(estimate))
                return
            table = plain_table("statements", "cited", "pages", "calls", "input tokens", "output tokens", "usd")
            usd = "unknown" if estimate.usd is None else f"{estimate.usd:.4f}"
            counts = (estimate.statements, estimate.cited_statements, estimate.pages, estimate.calls)
            table.add_row(*map(str, counts), str(estimate.input_tokens), str(estimate.output_tokens), usd)
            stdout_console().print(table)
            if estimate.unknown_pages:
                print_line(f"{estimate.unknown_pages} pages are not captured yet; their length is assumed.")
            print_line(f"Dry run with {estimate.model}: nothing was judged.")

        event_loop.run(run())

    def run(self, *, as_json: bool, html: Path | None, min_precision: float | None) -> None:
        """Check the report, print the outcome, and exit with the code of the outcome."""
        saved = "Captured pages and replies are saved; run the same command to resume."
        with baseline_suggested(), event_loop.resumable(saved):
            document, page = event_loop.run(self._check(with_page=html is not None))
        if html is not None and page is not None:
            _write_html(page, html)
        if as_json:
            print_json(document.model_dump(mode="json"))
        else:
            print_document(document)
        _exit(document, min_precision)

    def _settings(self) -> Settings:
        model = self.model or (LEXICAL if self.source is None else None)
        settings = judging_settings(model=model, budget_usd=self.budget, max_pages=self.max_pages)
        if self.source is None:
            # The demo opens only its own pages, so it may run on machines without a browser sandbox.
            allowed = settings.egress_allow | {DemoSite().egress_allow}
            settings = settings.model_copy(update={"egress_allow": allowed, "browser_unsandboxed": True})
        quiet_logging(settings)
        return settings

    def _given(self) -> ReportInput | None:
        """Return the report of the file or the demo; None for a published page."""
        if self.source is None:
            return ReportInput(name=report_path().name, text=report_path().read_text("utf-8"))
        if self.text is None:
            return None
        return ReportInput(name=STDIN_NAME if self.source == "-" else Path(self.source).name, text=self.text)

    async def _published(self) -> ReportInput:
        async with open_command_runtime(self._settings(), shared=True) as runtime:
            return await published_report(runtime, str(self.source))

    async def _check(self, *, with_page: bool) -> tuple[CheckDocument, str | None]:
        """Return the document, and its reading view as HTML if it is wanted."""
        settings = self._settings()
        async with AsyncExitStack() as stack:
            if self.source is None:
                await stack.enter_async_context(DemoSite(reuse=True))
            runtime = await stack.enter_async_context(open_command_runtime(settings, shared=True))
            await runtime.models.open_client(settings.model)
            runtime.models.check(settings.model)
            board = stack.enter_context(ProgressBoard(stderr_console(), 1, unit="reports"))
            board.update(shorten(self.source or report_path().name, 60), Step(stage="reading"))
            report = self._given() or await published_report(runtime, str(self.source))
            plan = await asyncio.to_thread(plan_check, report)
            options = CheckOptions(
                model=settings.model,
                budget_usd=self.budget,
                supplied=self.supplied,
                policy=self.policy,
                progress=lambda one: _show(board, self.source or plan.report.name, one),
            )
            document = await check_report(runtime, plan, options)
            return document, await _page(document, runtime) if with_page else None


async def _page(document: CheckDocument, runtime: Runtime) -> str:
    async def read(sha256: str) -> bytes | None:
        try:
            return await runtime.blobs.get(sha256)
        except BlobError:
            return None

    return await render_view(document, read)


def _show(board: ProgressBoard, name: str, progress: Progress) -> None:
    if progress.stage is Stage.CAPTURING:
        step = Step(stage="capturing", done=progress.pages_done, total=progress.pages_total, unit="pages")
    else:
        step = Step(stage="judging", done=progress.leaves_done, total=progress.leaves_total, unit="claims")
    board.update(shorten(name, 60), step)


def print_document(document: CheckDocument) -> None:
    """Print the figures and the statements that are not supported."""
    if document.baseline:
        print_line(f"BASELINE: {document.notice}")
    table = plain_table("figure", "value", "of", "95 % interval", "not judged")
    for name, label in FIGURE_LABELS.items():
        figure: Figure = getattr(document.figures, name)
        value = "unknown" if figure.value is None else f"{figure.value:.0%}"
        share = f"{figure.count} of {figure.judged} {figure.of}"
        table.add_row(label, value, share, _interval_text(figure), str(figure.not_judged))
    stdout_console().print(table)
    counts = [(label, document.counts.get(outcome, 0)) for outcome, label in OUTCOME_LABELS.items()]
    print_line(", ".join(f"{count} {label}" for label, count in counts if count) or "no statements of fact")
    problems = [
        (label, statement)
        for outcome, label in OUTCOME_LABELS.items()
        if outcome is not StatementOutcome.SUPPORTED
        for statement in document.statements
        if statement.outcome is outcome
    ]
    for label, statement in problems[:_MAX_LISTED]:
        line = document.report.text.count("\n", 0, statement.start) + 1
        print_line(f"  line {line}: {label}: {shorten(without_product_marks(statement.text), 160)}")
        for span in statement.unsupported[:3]:
            print_line(f"      unsupported: {shorten(document.report.text[span.start : span.end], 160)}")
        for detail in problem_lines(statement, document.sources):
            print_line(f"      {detail}")
    if len(problems) > _MAX_LISTED:
        print_line(f"  {len(problems) - _MAX_LISTED} more; use --json or --html for all")
    for source in [source for source in document.sources if source.url and not source.marks][:_MAX_LISTED]:
        print_line(f"  not bound to a statement: {source.url} ({source.state.replace('_', ' ')})")
    for warning in document.warnings:
        print_line(f"note: {warning}")
    if not document.baseline:
        cost = "unknown cost" if document.usage.usd is None else f"{document.usage.usd:.4f} USD"
        print_line(f"{counted(document.usage.calls, 'model call')}, {cost}")
    unread = [source for source in document.sources if source.state is SourceState.UNREADABLE]
    for cause in unread_page_lines({"url": s.url, "outcome": s.reason, "detail": s.detail} for s in unread):
        print_line(cause)


def problem_lines(statement: Statement, sources: Sequence[ReportSource]) -> Iterator[str]:
    """Yield each source that does not support a statement: its URL, what is wrong, and what the page says."""
    for citation in statement.citations:
        if citation.source is None:
            yield f"{shorten(readable_mark(citation.mark), 100)}: mark without a source"
    page_numbers = {citation.source: citation.page for citation in statement.citations}
    unmet: dict[int, list[ClaimVerdict]] = {}
    for verdict in (verdict for claim in statement.claims for verdict in claim.verdicts):
        if verdict.outcome is not ClaimOutcome.SUPPORTED:
            unmet.setdefault(verdict.source, []).append(verdict)
    for index, verdicts in list(unmet.items())[:_MAX_SOURCES]:
        source = sources[index]
        outcome = next(each for each in VERDICT_LABELS if any(verdict.outcome is each for verdict in verdicts))
        unread = outcome in {ClaimOutcome.UNREADABLE, ClaimOutcome.DEAD}
        state = source.state.replace("_", " ") if source.state in {SourceState.NO_URL, SourceState.TRUNCATED} else ""
        reason = state_words(source.reason) if source.reason else state
        causes = (reason, source.detail) if unread else (verdicts[0].reason,)
        cause = shorten(", ".join(filter(None, causes)), 200)
        url = source.url or source.title or "source without URL"
        url += f", page {page_numbers[index]}" if page_numbers.get(index) else ""
        yield f"{url}: {VERDICT_LABELS[outcome]}{f' ({cause})' if cause else ''}"
        for verdict in verdicts[:_MAX_PASSAGES]:
            yield from (f'    says: "{shorten(quote.text, 240)}"' for quote in verdict.quotes[:1])
            if verdict.closest is None and verdict.outcome is ClaimOutcome.NOT_SUPPORTED:
                yield "    no passage of the page shares a significant word with it"
            elif verdict.closest is not None and not verdict.quotes:
                yield f'    closest passage: "{shorten(verdict.closest.text, 240)}"'
                if verdict.closest.missing:
                    yield f"    it lacks: {shorten(', '.join(verdict.closest.missing), 160)}"
    if len(unmet) > _MAX_SOURCES:
        yield f"{len(unmet) - _MAX_SOURCES} more sources; use --json or --html for all"


def _interval_text(figure: Figure) -> str:
    """Format the 95 % interval, and the bounds if something was not judged."""
    if figure.interval is None:
        return "-"
    interval = f"{figure.interval.low:.0%} to {figure.interval.high:.0%}"
    return f"{interval} (bounds {figure.low:.0%} to {figure.high:.0%})" if figure.not_judged else interval


def _write_html(page: str, path: Path) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ToolFailed(f"cannot write {path}: {error.strerror}") from error
    stderr_console().print_line(f"wrote {path}")


def _exit(document: CheckDocument, min_precision: float | None) -> None:
    """Raise the error of the outcome, if any: precision missed, or claims that the model did not judge."""
    precision = document.figures.citation_precision_liu2023
    is_stopped = document.status is CheckStatus.STOPPED
    is_open = is_stopped or bool(document.counts.get(StatementOutcome.NOT_JUDGED))
    if min_precision is not None and precision.value is not None and not reaches(precision.value, min_precision):
        message = f"citation precision {precision.value:.4f} is below {min_precision:g}"
        if not is_open or not reaches(precision.high, min_precision):
            raise ToolFailed(message, hint="The statements listed above are not supported by their sources.")
        if not is_stopped:
            message += f", but with the claims that were not judged it can be up to {precision.high:.4f}"
            raise Incomplete(message, hint="Run the same command again: it asks only what has no verdict.")
    if is_stopped:
        raise Incomplete("the budget is spent", hint="Raise --budget and run the same command to resume.")
    if min_precision is not None and precision.value is None:
        raise Incomplete("the citation precision is unknown, because no citation was judged")
    if document.counts.get(StatementOutcome.NOT_JUDGED):
        raise typer.Exit(Exit.INCOMPLETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEstimate:
    """Likely effort of a check. ``usd`` is None if the price of the model is unknown.

    ``statements`` have a citation or state a fact. ``unknown_pages`` are not captured yet, so their length is assumed.
    """

    model: str
    sentences: int
    statements: int
    cited_statements: int
    citations: int
    pages: int
    unknown_pages: int
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


async def estimate_check(settings: Settings, plan: CheckPlan, supplied: Sequence[UploadedPage] = ()) -> CheckEstimate:
    """Return the likely effort of a check. Statements are divided by rules, so the number of claims is a guess."""
    judged_by = parse_judge(settings.model)
    asked = [one.model for one in judged_by.members if one.provider != LEXICAL]
    text = plan.report.text
    claimed = await asyncio.to_thread(
        lambda: statements_in_order([split_by_rules(section, text) for section in plan.sections])
    )
    calls, unknown = 0, 0
    tokens_in, tokens_out = Counter[str](), Counter[str]()
    block_builder = BlockBuilder(secrets.token_bytes(32))
    preparer = PagePreparer(block_builder)
    folder = settings.data_dir / "captures"
    index = await FolderIndex.open(folder) if await asyncio.to_thread(folder.is_dir) else MemoryIndex()
    sizes = {canonical_key(page.url): PageSize(len((page.text or "").encode()), 0) for page in supplied}

    def add(request: LLMRequest, claims: int, page_tokens: float = 0) -> None:
        nonlocal calls
        calls += 1
        tokens_in[request.model] += estimate_tokens(request.messages) + round(page_tokens)
        tokens_out[request.model] += _TOKENS_PER_REPLY + _TOKENS_PER_CLAIM * claims

    for section in plan.sections if judged_by.first.provider != LEXICAL else ():
        add(split_request(section, judged_by.first.model, block_builder), len(section.statements))
    for key, claims in by_page(plan.binding, page_claims(claimed)).items():
        if key is None:
            continue
        size = sizes.get(key)
        if size is None:
            capture = await index.find(key)
            if (capture is not None and not capture.is_evidence) or (capture is None and supplied):
                continue  # known not to be readable
            unknown += capture is None
            size = _UNKNOWN_PAGE if capture is None else PageSize.of(capture)
        page = await preparer.prepare(evidence_of(str(plan.binding.sources[claims[0].source].url), ""))
        for part in requests_of(claims):
            for member in asked:
                add(audit_request(part, page, member, block_builder), len(part), size.tokens[1])
    costs = [
        None if price is None else price.usd(input_tokens=tokens_in[member], output_tokens=tokens_out[member])
        for member, price in ((each, settings.prices.of(each)) for each in asked)
    ]
    return CheckEstimate(
        model=str(judged_by) if asked else LEXICAL,
        sentences=plan.sentences,
        statements=len(claimed),
        cited_statements=sum(bool(one.statement.marks) for one in claimed),
        citations=len(plan.binding.marks),
        pages=len(plan.urls),
        unknown_pages=unknown,
        calls=calls,
        input_tokens=tokens_in.total(),
        output_tokens=tokens_out.total(),
        usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )
