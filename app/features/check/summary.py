"""Summary of a check in Markdown, for a comment on a pull request."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from app.features.check.report import CheckDocument, Figure, SourceState, Statement, StatementOutcome

MAX_LISTED: Final = 50
_MAX_CHARS: Final = 300

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


def labelled_figures(document: CheckDocument) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a check with their labels."""
    for name, label in FIGURE_LABELS.items():
        figure: Figure = getattr(document.figures, name)
        yield label, figure


def share_text(figure: Figure) -> str:
    """Format the value of a figure."""
    return "unknown" if figure.value is None else f"{figure.value:.0%}"


def bounds_text(figure: Figure) -> str:
    """Format the 95 % interval, and the bounds if something was not judged."""
    if figure.interval is None:
        return "-"
    interval = f"{figure.interval.low:.0%} to {figure.interval.high:.0%}"
    return f"{interval} (bounds {figure.low:.0%} to {figure.high:.0%})" if figure.not_judged else interval


def counts_text(document: CheckDocument) -> str:
    """Format the number of statements by outcome."""
    counts = [(label, document.counts.get(outcome, 0)) for outcome, label in OUTCOME_LABELS.items()]
    return ", ".join(f"{count} {label}" for label, count in counts if count) or "no statements"


def problems_of(document: CheckDocument) -> Iterator[tuple[int, str, Statement]]:
    """Yield line number, outcome and statement of all statements that are not supported, the worst first."""
    ends = [index for index, char in enumerate(document.report.text) if char == "\n"]
    for outcome, label in OUTCOME_LABELS.items():
        if outcome is not StatementOutcome.SUPPORTED:
            for statement in document.statements:
                if statement.outcome is outcome:
                    yield bisect_right(ends, statement.start - 1) + 1, label, statement


def short(text: str, limit: int = _MAX_CHARS) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def markdown_summary(document: CheckDocument) -> str:
    """Return the summary. Text of the report and of pages is in code spans, so it cannot add markup or mentions."""
    lines = [f"## Citation check of {_code(document.report.name)}", ""]
    if document.baseline:
        lines += [f"**Baseline, not a model.** {document.notice}", ""]
    lines += [f"{counts_text(document)} ({document.status.value}, model {_code(document.model)})", ""]
    lines += ["| figure | value | 95 % interval | judged | not judged |", "|---|---|---|---|---|"]
    for label, figure in labelled_figures(document):
        lines.append(
            f"| {label} | {share_text(figure)} | {bounds_text(figure)} | {figure.judged} | {figure.not_judged} |"
        )
    problems = list(problems_of(document))
    if problems:
        lines += ["", "| line | outcome | statement | unsupported words | source |", "|---|---|---|---|---|"]
        for line, label, statement in problems[:MAX_LISTED]:
            lines.append(
                f"| {line} | {label} | {_code(statement.text)} | {_words(document, statement)} | "
                f"{_cited(document, statement)} |"
            )
        if len(problems) > MAX_LISTED:
            lines.append(f"\n{len(problems) - MAX_LISTED} more statements are not listed.")
    for warning in document.warnings:
        lines += ["", f"Note: {warning}"]
    if not document.baseline:
        usage = document.usage
        cost = "unknown cost" if usage.usd is None else f"{usage.usd:.4f} USD"
        calls = f"{usage.calls} model call{'' if usage.calls == 1 else 's'}"
        lines += ["", f"{calls}, {usage.input_tokens + usage.output_tokens} tokens, {cost}"]
    return "\n".join(lines) + "\n"


def _words(document: CheckDocument, statement: Statement) -> str:
    words = [document.report.text[span.start : span.end] for span in statement.unsupported]
    return ", ".join(_code(each, 100) for each in words[:3])


def _cited(document: CheckDocument, statement: Statement) -> str:
    indices = dict.fromkeys(citation.source for citation in statement.citations if citation.source is not None)
    cells = []
    for index in list(indices)[:3]:
        source = document.sources[index]
        state = "" if source.state is SourceState.READABLE else f" ({source.state.value.replace('_', ' ')})"
        cells.append(f"{_code(source.url or source.title or 'no URL', 150)}{state}")
    return ", ".join(cells)


def _code(text: str, limit: int = _MAX_CHARS) -> str:
    """Return text as a code span in a table cell."""
    plain = short(text, limit).replace("`", "'").replace("|", "\\|")
    return f"`{plain or ' '}`"
