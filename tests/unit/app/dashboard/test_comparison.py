"""Two sides on the same tasks: why leaves flipped."""

from __future__ import annotations

import pytest

from app.dashboard.comparison import Cause, flips, judged, paired
from tests.fakes.judged import FAILED, SKIPPED, leaf, page_entry, result_of, rubric_of

URL = "https://a.example/"


def side(*children, task_id: str = "t", **changes):
    return judged(result_of(rubric_of(*children, task_id=task_id), **changes))


def why(before, after) -> set[Cause]:
    [flip] = flips(before, after)
    return {cause for cause, _ in flip.causes}


def test_the_tasks_of_a_comparison_get_their_answers_by_name():
    left = [side(leaf("a"), task_id="one"), side(leaf("a"), task_id="one", answer_name="answer_2.md")]
    right = [side(leaf("a", FAILED), task_id="one"), side(leaf("a"), task_id="two")]
    tasks = [{"task_id": "one"}, {"task_id": "two"}]
    one, two = paired(tasks, left, right)
    assert [(pair.before.answer_name, pair.after.answer_name) for pair in one.answers] == [("answer_1.md",) * 2]
    assert (one.task_id, one.flips) == ("one", 1)
    assert (two.task_id, two.answers) == ("two", ())


def test_another_claim_is_the_answers_doing():
    before, after = leaf("a", claim="It is 5", sources=[URL]), leaf("a", FAILED, claim="It is 6", sources=[URL])
    assert why(side(before), side(after, answer_sha256="d" * 64)) == {Cause.ANSWER}


def test_other_sources_are_the_answers_doing():
    before, after = leaf("a", claim="x", sources=[URL]), leaf("a", FAILED, claim="x", sources=["https://b.example/"])
    assert why(side(before), side(after, answer_sha256="d" * 64)) == {Cause.ANSWER}


@pytest.mark.parametrize("changed", [{"sha256": "e" * 64}, {"outcome": "login_wall"}])
def test_another_text_of_the_same_page_is_the_pages_doing(changed):
    before = side(leaf("a", claim="x", sources=[URL]), pages=[page_entry(URL)])
    after = side(leaf("a", FAILED, claim="x", sources=[URL]), pages=[page_entry(URL, **changed)])
    assert why(before, after) == {Cause.PAGE}


def test_another_judge_file_or_prompt_is_the_judges_doing():
    asked = leaf("a", FAILED, claim="x", sources=[URL])
    before = side(leaf("a", claim="x", sources=[URL]))
    assert why(before, side(asked, judge={"script_sha256": "f" * 64, "version": "2"})) == {Cause.JUDGE}
    prompted = leaf("a", FAILED, claim="x", sources=[URL], prompt="verify_page@2")
    assert why(before, side(prompted)) == {Cause.JUDGE}


def test_another_model_is_the_models_doing():
    before, after = leaf("a", claim="x", sources=[URL]), leaf("a", FAILED, claim="x", sources=[URL])
    assert why(side(before), side(after, model="other")) == {Cause.MODEL}


def test_a_gate_is_named():
    before = side(leaf("g"), leaf("a", claim="x", sources=[URL]))
    after = side(leaf("g"), leaf("a", SKIPPED, claim="x", sources=[URL], blocked_by="g"))
    assert why(before, after) == {Cause.GATE}


def test_nothing_changed_but_the_vote():
    before, after = leaf("a", claim="x", sources=[URL]), leaf("a", FAILED, claim="x", sources=[URL])
    assert why(side(before), side(after)) == {Cause.VOTE}


def test_leaves_of_one_side_only_are_flips_too():
    [lost, new] = flips(side(leaf("a")), side(leaf("b")))
    assert (lost.key, lost.before, lost.after, lost.gain) == ("a", "passed", None, -1)
    assert (new.key, new.before, new.after, new.gain) == ("b", None, "passed", 1)
