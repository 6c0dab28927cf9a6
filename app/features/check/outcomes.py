"""Outcomes of statements, and the figures of a check. Pure functions.

The figures exist in two definitions. Both exclude what could not be judged; ``low`` and ``high`` are their bounds.

- Liu, Zhang, Liang: "Evaluating Verifiability in Generative Search Engines" (EMNLP Findings 2023). Recall: share of the
  statements worth verifying that their citations fully support. Precision: share of citations that support their
  statement fully, or in part if the citations of the statement support it only together.
- Gao, Yen, Yu, Chen: "Enabling Large Language Models to Generate Text with Citations" (EMNLP 2023), benchmark ALCE.
  Recall: share of all statements that their citations together support. Precision: share of citations that belong to a
  supported statement and are not irrelevant. A citation is irrelevant if it does not support the statement by itself
  and the others support it without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from app.features.check.auditing import DECIDING_ORDER, merged
from app.features.check.report import (
    ClaimOutcome,
    Figure,
    FigureInterval,
    Figures,
    ReportClaim,
    ReportSource,
    SourceState,
    Span,
    Statement,
    StatementOutcome,
)
from judges.analysis.statistics.intervals import wilson

LIU: Final = "Liu et al. 2023, Evaluating Verifiability in Generative Search Engines"
ALCE: Final = "Gao et al. 2023, Enabling Large Language Models to Generate Text with Citations (ALCE)"

_UNKNOWN: Final = frozenset({ClaimOutcome.UNREADABLE, ClaimOutcome.NOT_JUDGED})


@dataclass(frozen=True, slots=True)
class StatementResult:
    """Outcome of a cited statement. ``unsupported`` are the words that no source supports."""

    outcome: StatementOutcome
    reason: str | None
    unsupported: tuple[Span, ...]


def claim_outcome(claim: ReportClaim) -> ClaimOutcome:
    """Return the outcome of a claim over all of its sources.

    A source that supports it decides, then one that contradicts it. A source that was not judged could support it, so
    the claim is then not judged. It is ``dead`` only if every source is gone and none was judged on an archived copy.
    """
    outcomes = [verdict.outcome for verdict in claim.verdicts]
    return next((outcome for outcome in DECIDING_ORDER if outcome in outcomes), ClaimOutcome.DEAD)


def statement_result(claims: Sequence[ReportClaim], sources: Sequence[ReportSource]) -> StatementResult:
    """Return the outcome of a statement with at least one source."""
    outcomes = [claim_outcome(claim) for claim in claims]
    outcome = _statement_outcome(outcomes, claims, sources)
    return StatementResult(outcome, _reason(outcome, claims), _unsupported(outcome, claims, outcomes))


def _statement_outcome(
    outcomes: Sequence[ClaimOutcome], claims: Sequence[ReportClaim], sources: Sequence[ReportSource]
) -> StatementOutcome:
    cited = {verdict.source for claim in claims for verdict in claim.verdicts}
    if all(sources[index].state in {SourceState.DEAD, SourceState.FABRICATED} for index in cited):
        return StatementOutcome.DEAD
    if ClaimOutcome.CONTRADICTED in outcomes:
        return StatementOutcome.CONTRADICTED
    if ClaimOutcome.NOT_JUDGED in outcomes:
        return StatementOutcome.NOT_JUDGED
    if ClaimOutcome.UNREADABLE in outcomes:
        return StatementOutcome.UNREADABLE
    if all(outcome is ClaimOutcome.SUPPORTED for outcome in outcomes):
        return StatementOutcome.SUPPORTED
    if any(outcome in {ClaimOutcome.SUPPORTED, ClaimOutcome.PARTLY_SUPPORTED} for outcome in outcomes):
        return StatementOutcome.PARTLY_SUPPORTED
    return StatementOutcome.NOT_SUPPORTED


def _reason(outcome: StatementOutcome, claims: Sequence[ReportClaim]) -> str | None:
    if outcome not in {StatementOutcome.UNREADABLE, StatementOutcome.NOT_JUDGED, StatementOutcome.DEAD}:
        return None
    verdicts = (verdict for claim in claims for verdict in claim.verdicts)
    return next((verdict.reason for verdict in verdicts if verdict.outcome.value == outcome.value), None)


def _unsupported(
    outcome: StatementOutcome, claims: Sequence[ReportClaim], outcomes: Sequence[ClaimOutcome]
) -> tuple[Span, ...]:
    """Return the words that no source supports: of each claim, those of the source with the best verdict."""
    if outcome not in {
        StatementOutcome.PARTLY_SUPPORTED,
        StatementOutcome.CONTRADICTED,
        StatementOutcome.NOT_SUPPORTED,
    }:
        return ()
    spans = [
        span
        for claim, found in zip(claims, outcomes, strict=True)
        for verdict in claim.verdicts
        if verdict.outcome is found and found is not ClaimOutcome.SUPPORTED
        for span in verdict.unsupported
    ]
    return tuple(merged(spans))


def source_support(claims: Sequence[ReportClaim], source: int) -> tuple[bool | None, bool | None]:
    """Return whether one source supports all claims, and whether it supports a part; None if that was not judged."""
    outcomes = [verdict.outcome for claim in claims for verdict in claim.verdicts if verdict.source == source]
    if not outcomes:
        return None, None
    judged = [outcome for outcome in outcomes if outcome not in _UNKNOWN]
    part = any(outcome in {ClaimOutcome.SUPPORTED, ClaimOutcome.PARTLY_SUPPORTED} for outcome in judged)
    full = all(outcome is ClaimOutcome.SUPPORTED for outcome in judged)
    if len(judged) == len(outcomes):
        return full, part
    return (None if full else False), (True if part else None)


def figures_of(statements: Sequence[Statement], sources: Sequence[ReportSource], sentences: int) -> Figures:
    """Return the figures of a check. ``sentences`` counts all sentences and table rows, also those without a fact.

    If no sentence is a statement, the report says nothing that could be supported.
    """
    citations = [each for statement in statements for each in _citations(statement)]
    recall = [_is_supported(statement) for statement in statements if statement.factual]
    # Sentences that are no statements have no citation, so their citations do not support them.
    others = max(0, sentences - len(statements)) if statements else 0
    all_recall = [_is_supported(statement) for statement in statements] + [False] * others
    known = [source for source in sources if source.state is not SourceState.NOT_CHECKED]
    not_checked = len(sources) - len(known)
    gone = {SourceState.DEAD, SourceState.FABRICATED}
    not_read = {SourceState.UNREADABLE, SourceState.NO_URL, SourceState.TRUNCATED}
    return Figures(
        citation_precision_liu2023=_figure(
            (liu for liu, _ in citations),
            "citations",
            "Share of citations that support their statement, or a part of it if only all its citations together "
            "support it.",
            LIU,
        ),
        citation_recall_liu2023=_figure(
            recall,
            "statements of fact",
            "Share of the statements that state a fact which are supported by their citations.",
            LIU,
        ),
        citation_precision_alce=_figure(
            (alce for _, alce in citations),
            "citations",
            "Share of citations that belong to a supported statement and are not irrelevant to it.",
            ALCE,
        ),
        citation_recall_alce=_figure(
            all_recall, "sentences", "Share of all sentences that are supported by their citations.", ALCE
        ),
        unreadable=_figure(
            [source.state in not_read for source in known] + [None] * not_checked,
            "sources",
            "Share of all sources of the report that could not be read: failed, no URL, or a truncated one.",
        ),
        dead=_figure(
            [source.state in gone for source in known] + [None] * not_checked,
            "sources",
            "Share of all sources of the report that are gone.",
        ),
        fabricated=_figure(
            [_is_fabricated(source) for source in known] + [None] * not_checked,
            "sources",
            "Share of all sources of the report that are gone and of which the web archive has no copy.",
        ),
        uncited=_figure(
            [statement.outcome is StatementOutcome.UNCITED for statement in statements if statement.factual],
            "statements of fact",
            "Share of the statements that state a fact which have no citation.",
        ),
    )


def _is_fabricated(source: ReportSource) -> bool | None:
    if source.state is SourceState.FABRICATED:
        return True
    # Without an archive, a page that is gone may have existed.
    return None if source.state is SourceState.DEAD and source.archived_url is None else False


def _is_supported(statement: Statement) -> bool | None:
    """Return whether the citations support all claims of a statement; None if that was not judged.

    For dead sources, the verdicts on archived copies count.
    """
    if statement.outcome is StatementOutcome.UNCITED:
        return False
    supports = [_claim_is_supported(claim) for claim in statement.claims]
    return False if False in supports else None if None in supports else True


def _claim_is_supported(claim: ReportClaim) -> bool | None:
    outcomes = {verdict.outcome for verdict in claim.verdicts}
    if ClaimOutcome.SUPPORTED in outcomes:
        return True
    return None if outcomes & _UNKNOWN else False


def _citations(statement: Statement) -> Iterable[tuple[bool | None, bool | None]]:
    """Yield for each source of a statement whether it counts as correct, by Liu et al. and by ALCE.

    Several marks of one source in a statement are one citation. Marks without a source are incorrect.
    """
    is_supported = _is_supported(statement)
    by_source = {each.source: each for each in statement.citations if each.source is not None}
    alone = [each.supports for each in by_source.values()]
    for source, citation in by_source.items():
        if citation.supports:
            yield True, True
            continue
        contributes = citation.contributes
        if citation.supports is None:
            yield None, None if is_supported is not False else False
        elif any(alone):
            yield False, False  # another source supports it alone, so this one is irrelevant
        elif is_supported is None:
            undecided = None if contributes is not False else False
            yield undecided, undecided
        elif not is_supported or contributes is False:
            yield False, False
        else:  # another source that was not judged on some claims could support the statement alone
            yield None if contributes is None or None in alone else True, _is_needed(statement.claims, source)
    for _ in range(sum(each.source is None for each in statement.citations)):
        yield False, False


def _is_needed(claims: Sequence[ReportClaim], source: int) -> bool | None:
    """Return whether a claim is supported by this source only; None if others were not judged on it."""
    needed: bool | None = False
    for claim in claims:
        others = {verdict.outcome for verdict in claim.verdicts if verdict.source != source}
        if ClaimOutcome.SUPPORTED in others:
            continue
        if not others & _UNKNOWN:
            return True
        needed = None
    return needed


def _figure(values: Iterable[bool | None], of: str, definition: str, reference: str | None = None) -> Figure:
    found = list(values)
    judged = [value for value in found if value is not None]
    count, unknown = sum(judged), len(found) - len(judged)
    interval = wilson(count, len(judged))
    return Figure(
        value=count / len(judged) if judged else None,
        count=count,
        judged=len(judged),
        not_judged=unknown,
        low=count / len(found) if found else 0.0,
        high=(count + unknown) / len(found) if found else 1.0,
        interval=None
        if interval is None
        else FigureInterval(low=interval.low, high=interval.high, method=interval.method),
        of=of,
        definition=definition,
        reference=reference,
    )
