from __future__ import annotations

from datetime import UTC, datetime, timedelta

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


def test_disputed_item_is_excluded() -> None:
    (item,) = items_of(
        [label(HumanDecision.PASSED, "a"), label(HumanDecision.FAILED, "b"), label(HumanDecision.UNCLEAR, "c")]
    )
    assert (item.human, item.left_out) == (None, Exclusion.DISPUTED)


def test_labels_without_result_are_one_item_if_claim_pages_and_answer_match() -> None:
    same = [label(HumanDecision.PASSED, "a", answer="Rain."), label(HumanDecision.PASSED, "b", answer="Rain.")]
    other = [label(HumanDecision.PASSED, "b", answer="Sun."), label(HumanDecision.PASSED, "b", claim="It snows")]
    assert [len(item.labels) for item in items_of(same + other)] == [2, 1, 1]
