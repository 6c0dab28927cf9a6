from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.labels import HumanDecision, Label
from judges.analysis.meta_eval.items import Exclusion, items_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def label(
    human: HumanDecision, reviewer: str = "", *, hours: int = 0, claim: str | None = "It rains", **fields
) -> Label:
    return Label(human=human, claim=claim, reviewer=reviewer, at=NOON + timedelta(hours=hours), **fields)


def test_majority_of_people_decides() -> None:
    (item,) = items_of(
        [label(HumanDecision.PASSED, "a"), label(HumanDecision.FAILED, "b"), label(HumanDecision.PASSED, "c")]
    )
    assert (item.human, item.left_out, item.unanimous) == (True, None, False)


def test_newest_label_of_a_person_counts_in_any_file_order() -> None:
    (item,) = items_of([label(HumanDecision.PASSED, "a", hours=2), label(HumanDecision.FAILED, "a", hours=1)])
    assert (item.human, len(item.labels)) == (True, 1)


def test_labels_without_reviewer_count_as_different_people() -> None:
    (item,) = items_of([label(HumanDecision.FAILED), label(HumanDecision.FAILED), label(HumanDecision.PASSED, "a")])
    assert (item.human, len(item.labels)) == (False, 3)


def test_disputed_item_is_excluded() -> None:
    (item,) = items_of(
        [label(HumanDecision.PASSED, "a"), label(HumanDecision.FAILED, "b"), label(HumanDecision.UNCLEAR, "c")]
    )
    assert (item.human, item.left_out) == (None, Exclusion.DISPUTED)


def test_unclear_items_and_checks_by_code_are_excluded() -> None:
    unclear, by_code = items_of(
        [label(HumanDecision.UNCLEAR, "a"), label(HumanDecision.PASSED, "a", claim=None, leaf="given")]
    )
    assert (unclear.left_out, by_code.left_out) == (Exclusion.UNCLEAR, Exclusion.BY_CODE)


def test_leaves_of_two_results_are_separate_items_even_with_equal_claims() -> None:
    found = items_of(
        [
            label(HumanDecision.PASSED, result_id="res_1", leaf="x"),
            label(HumanDecision.PASSED, result_id="res_2", leaf="x"),
        ]
    )
    assert len(found) == 2


def test_labels_without_result_are_one_item_if_claim_pages_and_answer_match() -> None:
    same = [label(HumanDecision.PASSED, "a", answer="Rain."), label(HumanDecision.PASSED, "b", answer="Rain.")]
    other = [label(HumanDecision.PASSED, "b", answer="Sun."), label(HumanDecision.PASSED, "b", claim="It snows")]
    assert [len(item.labels) for item in items_of(same + other)] == [2, 1, 1]


@given(words=st.lists(st.sampled_from(HumanDecision), min_size=1, max_size=9), order=st.randoms())
def test_order_of_labels_does_not_matter(words, order) -> None:
    labels = [label(word, f"person {n}") for n, word in enumerate(words)]
    shuffled = list(labels)
    order.shuffle(shuffled)
    (one,), (other,) = items_of(labels), items_of(shuffled)
    assert (one.human, one.left_out) == (other.human, other.left_out)
