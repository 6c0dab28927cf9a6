"""Outcomes of claims and statements, and the figures in both definitions, on examples computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.features.check.outcomes import figures_of, source_support, statement_result
from app.features.check.report import (
    ClaimOutcome,
    ClaimVerdict,
    ReportCitation,
    ReportClaim,
    ReportSource,
    SourceState,
    Span,
    Statement,
    StatementKind,
    StatementOutcome,
)

S, P, C, N, U, D, J = (
    ClaimOutcome.SUPPORTED,
    ClaimOutcome.PARTLY_SUPPORTED,
    ClaimOutcome.CONTRADICTED,
    ClaimOutcome.NOT_SUPPORTED,
    ClaimOutcome.UNREADABLE,
    ClaimOutcome.DEAD,
    ClaimOutcome.NOT_JUDGED,
)


def claims_of(verdicts: Sequence[Sequence[ClaimOutcome]]) -> list[ReportClaim]:
    """Return claims from the outcomes of each claim on source 0, 1 ..."""
    return [
        ReportClaim(
            text="claim",
            spans=[Span(start=0, end=5)],
            verdicts=[ClaimVerdict(source=source, outcome=outcome) for source, outcome in enumerate(outcomes)],
        )
        for outcomes in verdicts
    ]


def sources_of(*states: SourceState) -> list[ReportSource]:
    return [ReportSource(url=f"https://{index}.example/", state=state, marks=1) for index, state in enumerate(states)]


READABLE = sources_of(*[SourceState.READABLE] * 4)


def statement(verdicts: Sequence[Sequence[ClaimOutcome]], *, factual: bool = True) -> Statement:
    claims = claims_of(verdicts)
    count = len(verdicts[0])
    outcome = statement_result(claims, READABLE).outcome if count else StatementOutcome.UNCITED
    citations = []
    for source in range(count):
        supports, contributes = source_support(claims, source)
        citations.append(
            ReportCitation(mark="[1]", start=0, end=3, source=source, supports=supports, contributes=contributes)
        )
    return Statement(
        start=0,
        end=5,
        text="claim",
        kind=StatementKind.SENTENCE,
        factual=factual,
        outcome=outcome,
        claims=claims,
        citations=citations,
    )


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([[S]], StatementOutcome.SUPPORTED),
        ([[N, S]], StatementOutcome.SUPPORTED),
        ([[S, N], [N, S]], StatementOutcome.SUPPORTED),
        ([[P]], StatementOutcome.PARTLY_SUPPORTED),
        ([[S], [C]], StatementOutcome.CONTRADICTED),
        ([[C, U]], StatementOutcome.CONTRADICTED),
        ([[N, D]], StatementOutcome.NOT_SUPPORTED),
        ([[N, U]], StatementOutcome.UNREADABLE),
        ([[N, J]], StatementOutcome.NOT_JUDGED),
        ([[S], [J]], StatementOutcome.NOT_JUDGED),
    ],
)
def test_outcome_of_a_statement(verdicts: list[list[ClaimOutcome]], expected: StatementOutcome) -> None:
    assert statement_result(claims_of(verdicts), READABLE).outcome is expected


def test_statement_is_dead_if_all_its_sources_are_gone_even_with_an_archived_copy() -> None:
    gone = sources_of(SourceState.DEAD, SourceState.FABRICATED)
    assert statement_result(claims_of([[S, D]]), gone).outcome is StatementOutcome.DEAD
    one_left = sources_of(SourceState.DEAD, SourceState.READABLE)
    assert statement_result(claims_of([[S, N]]), one_left).outcome is StatementOutcome.SUPPORTED


@pytest.mark.parametrize(
    ("verdicts", "liu", "alce"),
    [
        ([[S, N], [U, S]], (0, 0, 2), (0, 0, 2)),  # if source 0 supports claim 2, source 1 is irrelevant
        ([[N, S, J], [S, N, N]], (2, 2, 1), (1, 2, 1)),  # source 2 may support claim 1
        ([[D, J]], (0, 1, 1), (0, 1, 1)),
    ],
)
def test_citation_precision_is_open_while_another_source_could_change_it(
    verdicts: list[list[ClaimOutcome]], liu: tuple[int, int, int], alce: tuple[int, int, int]
) -> None:
    figures = figures_of([statement(verdicts)], READABLE, 1)
    found = figures.citation_precision_liu2023, figures.citation_precision_alce
    assert [(each.count, each.judged, each.not_judged) for each in found] == [liu, alce]


def test_precision_of_citations_that_support_a_statement_together() -> None:
    # Each source supports one of two claims: both citations are correct in both definitions.
    figures = figures_of([statement([[S, N], [N, S]])], READABLE, 1)
    assert (figures.citation_precision_liu2023.count, figures.citation_precision_alce.count) == (2, 2)
    assert figures.citation_recall_alce.value == 1.0


def test_definitions_differ_for_a_redundant_partial_citation() -> None:
    # Source 2 supports a claim that source 0 supports too: it contributes, but the others do without it.
    figures = figures_of([statement([[S, N, S], [N, S, N]])], READABLE, 1)
    assert figures.citation_precision_liu2023.count == 3
    assert figures.citation_precision_alce.count == 1


def test_recall_counts_factual_statements_or_all_sentences() -> None:
    statements = [statement([[S]]), statement([[]]), statement([[N]], factual=False)]
    figures = figures_of(statements, READABLE, 10)
    assert (figures.citation_recall_liu2023.count, figures.citation_recall_liu2023.judged) == (1, 2)
    assert (figures.citation_recall_alce.count, figures.citation_recall_alce.judged) == (1, 10)
    assert (figures.uncited.count, figures.uncited.judged) == (1, 2)


def test_reports_that_say_nothing_have_no_figures() -> None:
    assert {figure["value"] for figure in figures_of([], [], 3).model_dump().values()} == {None}


def test_what_was_not_judged_widens_the_bounds_and_is_not_counted() -> None:
    figures = figures_of([statement([[S]]), statement([[U]]), statement([[J]]), statement([[N]])], READABLE, 4)
    precision = figures.citation_precision_liu2023
    assert (precision.value, precision.judged, precision.not_judged) == (0.5, 2, 2)
    assert (precision.low, precision.high) == (0.25, 0.75)
    assert precision.interval is not None
    assert precision.interval.method == "Wilson, n = 2"


def test_fabricated_sources_need_an_answer_of_the_archive() -> None:
    sources = sources_of(SourceState.FABRICATED, SourceState.DEAD, SourceState.READABLE, SourceState.UNREADABLE)
    figures = figures_of([], sources, 0)
    assert (figures.dead.count, figures.dead.judged) == (2, 4)
    assert (figures.fabricated.count, figures.fabricated.judged, figures.fabricated.not_judged) == (1, 3, 1)
    assert figures.unreadable.count == 1
