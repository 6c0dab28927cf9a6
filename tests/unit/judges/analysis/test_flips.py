"""Flips between two sides on the same tasks, and their causes."""

from __future__ import annotations

from typing import Any

import pytest

from judges.analysis.flips import Cause, ComparableResult, comparable_result, flips
from tests.fakes.judged import FAILED, SKIPPED, leaf, page_entry, result_of, rubric_of

URL = "https://a.example/"


def side(*children: Any, task_id: str = "t", **changes: Any) -> ComparableResult:
    return comparable_result(result_of(rubric_of(*children, task_id=task_id), **changes))


def causes_of(before: ComparableResult, after: ComparableResult) -> set[Cause]:
    [flip] = flips([before], [after])
    return {each.cause for each in flip.causes}


def test_answers_are_paired_by_task_and_name():
    left = [side(leaf("a"), task_id="one"), side(leaf("a"), task_id="one", answer_name="answer_2.md")]
    right = [
        side(leaf("a", FAILED), task_id="one"),
        side(leaf("a", FAILED), task_id="one", answer_name="answer_3.md"),
        side(leaf("a", FAILED), task_id="two"),
    ]
    [flip] = flips(left, right)
    assert (flip.task_id, flip.answer_name, flip.leaf) == ("one", "answer_1.md", "a")
    assert (flip.result_before, flip.result_after) == (left[0].result_id, right[0].result_id)


@pytest.mark.parametrize(
    ("changed", "changes", "cause"),
    [
        ({"claim": "y"}, {"answer_sha256": "d" * 64}, Cause.ANSWER),
        ({}, {"pages": [page_entry(URL, sha256="e" * 64)]}, Cause.PAGE),
        ({}, {"pages": [page_entry(URL, outcome="login_wall")]}, Cause.PAGE),
        ({}, {"script": {"sha256": "f" * 64, "version": "2"}}, Cause.JUDGE),
        ({}, {"model": "other"}, Cause.MODEL),
        ({}, {}, Cause.VOTE),
    ],
)
def test_cause_is_what_changed(changed: dict[str, Any], changes: dict[str, Any], cause: Cause):
    same: dict[str, Any] = {"claim": "x", "sources": [URL]}
    pages: dict[str, Any] = {"pages": [page_entry(URL)]} if "pages" in changes else {}
    before = side(leaf("a", **same), **pages)
    assert causes_of(before, side(leaf("a", FAILED, **(same | changed)), **changes)) == {cause}


def test_gate_is_the_cause():
    before = side(leaf("g"), leaf("a", claim="x", sources=[URL]))
    after = side(leaf("g"), leaf("a", SKIPPED, claim="x", sources=[URL], blocked_by="g"))
    assert causes_of(before, after) == {Cause.GATE}


def test_leaves_of_only_one_side_are_flips():
    [lost, new] = flips([side(leaf("a"))], [side(leaf("b"))])
    assert (lost.leaf, lost.before, lost.after, lost.gain) == ("a", "passed", None, -1)
    assert (new.leaf, new.before, new.after, new.gain) == ("b", None, "passed", 1)


def test_penalty_that_applies_is_a_loss():
    lost, won = leaf("p", weight=-1.0), leaf("p", FAILED, weight=-1.0)
    [flip] = flips([side(leaf("a"), won)], [side(leaf("a"), lost)])
    assert (flip.before, flip.after, flip.gain) == ("avoided", "applies", -1)
