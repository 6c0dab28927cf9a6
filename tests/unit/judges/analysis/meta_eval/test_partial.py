"""Three-way verdicts and marked words of judges, with figures that are known exactly."""

from __future__ import annotations

import random
from typing import Any

import pytest

from judges.analysis.label_sets import SetFormat
from judges.analysis.label_sets.formats import label_of
from judges.analysis.label_sets.rows import Problem, SourceRow, UnusableRow
from judges.analysis.labels import HumanDecision, Label, LabelsUnreadable, RecordedVerdict, label_line, parse_labels
from judges.analysis.meta_eval.items import Item, items_of
from judges.analysis.meta_eval.judge_agreement import RecordedTallies
from judges.analysis.meta_eval.partial import (
    MAX_CLUSTERS,
    LabelledWords,
    SupportAgreement,
    SupportTally,
    WordProblem,
    WordRule,
    human_support,
    labelled_words,
    word_spans,
)
from judges.grounding.claim_words import locate_words
from rubrics.verdict import ClaimSpan, Outcome, Support
from tests.fakes.label_sets import wice_token_row

S, P, N = Support.SUPPORTED, Support.PARTLY_SUPPORTED, Support.NOT_SUPPORTED
TOKENS = 11
"""Tokens of each claim of ``wice_token_row``."""


def label(row: dict[str, Any], **fields: Any) -> Label:
    made = label_of(SetFormat.WICE, SourceRow(file="f", number=1, fields=row))
    return Label(**{name: getattr(made, name) for name in Label.__slots__} | fields)


def item(*rows: dict[str, Any]) -> Item:
    [one] = items_of(label(row) for row in rows)
    return one


def passages(one: Item, *marked: str) -> list[ClaimSpan]:
    claim = one.label.claim or ""
    spans = locate_words(claim, marked)
    assert spans is not None
    return [ClaimSpan(text=claim[start:end], start=start, end=end) for start, end in spans]


def unsupported(*rows: dict[str, Any], rule: WordRule = WordRule.MAJORITY) -> set[str] | WordProblem | None:
    one = item(*rows)
    words = labelled_words(one, rule)
    if not isinstance(words, LabelledWords):
        return words
    return {one.label.words[n] for n, is_unsupported in enumerate(words.unsupported) if is_unsupported}


def measured(*verdicts: tuple[Item, Support | None, list[ClaimSpan]]) -> SupportAgreement:
    tally = SupportTally(WordRule.MAJORITY)
    for one, support, marked in verdicts:
        tally.add(one, support, marked)
    return tally.result()


@pytest.mark.parametrize(
    ("claim", "words", "spans"),
    [
        ("A b.", ["A", "b", "."], ((0, 1), (2, 3), (3, 4))),
        ("  A\tb ", ["A", "b"], ((2, 3), (4, 5))),
        ("A b", ["A", " ", "b"], ((0, 1), (2, 2), (2, 3))),
        ("A b", ["A"], None),
        ("A b", ["b", "A"], None),
        ("A b", ["A", "b", "c"], None),
        ("A b", ["a", "b"], None),
    ],
)
def test_words_must_be_the_claim_one_after_the_other(claim: str, words: list[str], spans: Any) -> None:
    assert word_spans(claim, words) == spans


def test_importer_keeps_token_labels() -> None:
    made = label(wice_token_row("a", "red", "430"))
    assert [made.words[n] for n in made.unsupported_words] == ["red", "430"]
    assert parse_labels([label_line(made).encode()]) == (made,)


@pytest.mark.parametrize(
    "fields",
    [
        {"non_supported_spans": [True]},
        {"claim_tokens": ["Claim"]},
        {"claim_tokens": None},
        {"non_supported_spans": [0] * TOKENS},
        {"non_supported_spans": ["false"] * TOKENS},
        {"claim_tokens": "Claim a"},
    ],
)
def test_row_with_malformed_token_labels_is_unusable(fields: dict[str, Any]) -> None:
    with pytest.raises(UnusableRow) as error:
        label(wice_token_row("a", **fields))
    assert error.value.problem is Problem.WRONG_TYPE


def test_label_with_an_index_beyond_its_words_is_invalid() -> None:
    line = label_line(label(wice_token_row("a"))).replace('"unsupported_words": [4]', '"unsupported_words": [11]')
    with pytest.raises(LabelsUnreadable) as error:
        parse_labels([line.encode()])
    assert "11 is not the index of one of the 11 words" in error.value.problems[0]
    own = SourceRow(file="f", number=1, fields={"human": "partial", "claim": "x", "unsupported_words": [0]})
    with pytest.raises(UnusableRow):
        label_of(SetFormat.OWN, own)


BOTH = [wice_token_row("a", "red"), wice_token_row("a", "red", "430")]
THREE = [*BOTH, wice_token_row("a", "2")]


@pytest.mark.parametrize(
    ("rows", "rule", "words"),
    [
        (BOTH, WordRule.MAJORITY, {"red"}),
        (BOTH, WordRule.ANY, {"red", "430"}),
        (BOTH, WordRule.ALL, {"red"}),
        (THREE, WordRule.MAJORITY, {"red"}),
        (THREE, WordRule.ALL, set()),
        (THREE[1:], WordRule.MAJORITY, set()),
    ],
)
def test_words_of_several_people_count_by_a_named_rule(rows: Any, rule: WordRule, words: set[str]) -> None:
    assert unsupported(*rows, rule=rule) == words


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (wice_token_row("a", claim="Another claim."), WordProblem.NOT_IN_CLAIM),
        (wice_token_row("a", "nothing"), WordProblem.CONTRADICTING),
        (wice_token_row("a", "red", label="supported"), WordProblem.CONTRADICTING),
        (wice_token_row("a", "nothing", label="not_supported"), WordProblem.CONTRADICTING),
    ],
)
def test_words_that_do_not_fit_are_counted_by_reason(row: dict[str, Any], problem: WordProblem) -> None:
    assert unsupported(row) is problem
    found = measured((item(row), P, []))
    assert found.problems[problem] == 1
    assert found.words.claims == 0
    assert sum(map(sum, found.table)) == 1  # the label on the claim still counts


def test_labels_with_different_words_are_not_counted() -> None:
    other = wice_token_row("a", "red", claim_tokens=[*"abcdefghijk"])
    assert unsupported(wice_token_row("a"), other) is WordProblem.DIFFER


def test_claims_without_token_labels_have_no_words() -> None:
    one = item(wice_token_row("a", claim_tokens=None, non_supported_spans=None))
    assert labelled_words(one, WordRule.MAJORITY) is None
    assert measured((one, P, [])).words.claims == 0


def test_figures_of_known_marks_are_exact() -> None:
    a, b, c, d = (item(wice_token_row(id, "red", "430")) for id in "abcd")
    found = measured(
        (a, P, passages(a, "red", "430")),  # both
        (b, P, passages(b, "the red Heron")),  # one of two, and two others
        (c, S, []),  # none of two
        (d, N, []),  # all
    )
    words = found.words
    assert (words.claims, words.true_positive, words.false_positive, words.false_negative) == (4, 5, 2 + 9, 3)
    assert words.true_negative == 4 * TOKENS - 5 - 11 - 3
    assert words.precision.value == 5 / 16
    assert words.recall.value == 5 / 8
    assert words.f1.value == 10 / 24
    if_partly = found.words_if_partly
    assert (if_partly.claims, if_partly.precision.value, if_partly.recall.value) == (2, 3 / 5, 3 / 4)
    for figure in (words.precision, words.recall, words.f1):
        assert figure.low is not None and figure.value is not None and figure.high is not None
        assert figure.low < figure.value < figure.high
        assert figure.method.startswith("bootstrap over 4 claims")


def test_passage_marks_every_word_that_it_overlaps() -> None:
    one = item(wice_token_row("a", "2", ":"))
    assert measured((one, P, passages(one, "a: the", "2"))).words.true_positive == 2
    assert measured((one, P, passages(one, "a: the", "2"))).words.false_positive == 2  # "a" and "the"


def test_three_way_table_counts_judge_by_row_and_people_by_column() -> None:
    supported = item(wice_token_row("a", "nothing", label="supported"))
    partly, not_supported = item(wice_token_row("b")), item(wice_token_row("c", label="not_supported"))
    found = measured(
        (supported, S, []),
        (supported, P, passages(supported, "red")),
        (partly, P, passages(partly, "red")),
        (partly, N, []),
        (not_supported, N, []),
        (not_supported, None, []),
    )
    assert found.table == ((1, 0, 0), (1, 1, 0), (0, 1, 1))
    assert (found.raw.value, found.open, found.disputed) == (3 / 5, 1, 0)
    assert found.as_json()["table"] == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]


def test_people_without_a_majority_of_three_are_disputed() -> None:
    rows = [wice_token_row("a", "red"), wice_token_row("a", "red", label="not_supported")]
    assert human_support(item(*rows)) is None
    assert human_support(item(*rows, rows[0])) is P
    assert measured((item(*rows), P, [])).disputed == 1


def test_figures_without_a_denominator_have_a_reason() -> None:
    one = item(wice_token_row("a", "nothing", label="supported"))
    found = measured((one, S, []))
    assert found.words.claims == 1
    for figure in (found.words.precision, found.words.recall, found.words.f1):
        assert figure.value is None and figure.reason
    same = item(wice_token_row("b"))
    single = measured((same, P, passages(same, "red")))
    assert (single.words.recall.value, single.words.recall.low) == (1.0, None)
    assert single.words.recall.reason


@pytest.mark.slow
def test_interval_covers_the_true_recall_of_correlated_words() -> None:
    """Claims are found entirely or not at all, so an interval over single words would be too narrow."""
    random_claims = random.Random(7)
    one = item(wice_token_row("a", *("red", "430", "Heron", "2")))
    covered = 0
    for _ in range(40):
        verdicts: list[Any] = []
        for _ in range(60):
            is_found = random_claims.random() < 0.6
            verdicts.append((one, P, passages(one, "red Heron 2", "430") if is_found else passages(one, "costs")))
        recall = measured(*verdicts).words.recall
        assert recall.low is not None and recall.high is not None
        covered += recall.low <= 0.6 <= recall.high
    assert covered >= 34


@pytest.mark.slow
def test_memory_is_bounded_by_clusters() -> None:
    one = item(wice_token_row("a"))
    marked = passages(one, "red")
    tally = SupportTally(WordRule.MAJORITY)
    for n in range(2 * MAX_CLUSTERS + 1):
        tally.add(one, P if n % 2 else S, marked if n % 2 else [])
    words = tally.result().words
    assert (words.claims, words.true_positive) == (2 * MAX_CLUSTERS + 1, MAX_CLUSTERS)
    assert words.recall.method.startswith(f"bootstrap over {MAX_CLUSTERS} groups of claims")


def test_recorded_judges_have_three_way_verdicts_and_no_words() -> None:
    def recorded(outcome: Outcome, **fields: Any) -> RecordedVerdict:
        return RecordedVerdict(outcome=outcome, model="m", **fields)

    verdicts = [
        recorded(Outcome.PASSED),
        recorded(Outcome.FAILED, partial=True),
        recorded(Outcome.FAILED),
        recorded(Outcome.NOT_JUDGED),
    ]
    labels = [label(wice_token_row(str(n)), judges=(verdict,)) for n, verdict in enumerate(verdicts)]
    tallies = RecordedTallies(words=WordRule.MAJORITY)
    for one in items_of(labels):
        tallies.add(one)
    [result] = tallies.results()
    assert result.support is not None
    assert result.support.table == ((0, 1, 0), (0, 1, 0), (0, 1, 0))
    assert (result.support.open, result.support.words.claims) == (1, 0)


def test_human_decision_of_token_rows_is_partial() -> None:
    assert label(wice_token_row("a")).human is HumanDecision.PARTIAL
