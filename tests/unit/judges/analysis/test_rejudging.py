from __future__ import annotations

import copy
from typing import Any

import pytest

from judges.analysis.rejudging import Cause, with_rejudged

URL = "https://towns.example/paris"
OTHER = "https://towns.example/lyon"


def leaf(id: str = "districts", *, cached: bool = False, **facts: Any) -> dict[str, Any]:
    vote = {"result": True, "model": "gpt-4o", "cached": cached, "fault": None}
    calls = {"calls": 0 if cached else 2, "cached_calls": 2 if cached else 0}
    plain = {
        "id": id,
        "children": [],
        "outcome": "passed",
        "claim": "Paris has twenty districts",
        "instruction": None,
        "sources": [URL],
        "votes": [vote, vote],
        "prompt": "verify_page@1",
        "model": "gpt-4o",
        "usage": calls,
    }
    return plain | facts


def page(url: str = URL, text: str = "a" * 64, outcome: str = "ok") -> dict[str, Any]:
    return {"url": url, "outcome": outcome, "bodies": {"text": text, "html": "0" * 64}}


def result(*leaves: dict[str, Any], **facts: Any) -> dict[str, Any]:
    tree = {"id": "root", "children": list(leaves) or [leaf()]}
    plain = {
        "id": "res_1",
        "eval_breakdown": [{"info": [], "verification_tree": tree}],
        "answer_sha256": "1" * 64,
        "judge": {"script_sha256": "2" * 64},
        "model": "gpt-4o",
        "asked_in": "f" * 16,
        "prompts": ["extract_answer@1", "verify_page@1"],
        "pages": [page()],
    }
    return plain | facts


def told(now: dict[str, Any], before: dict[str, Any] | None) -> list[Any]:
    tree = with_rejudged(now, before)["eval_breakdown"][0]["verification_tree"]
    return [each["rejudged"] for each in tree["children"]]


def again(*because: str) -> dict[str, Any]:
    return {"reused": False, "because": list(because)}


def test_the_first_result_of_an_answer_has_nothing_to_be_compared_with():
    first = with_rejudged(result(), None)
    assert first["rejudged"] is None
    assert told(result(), None) == [None]


def test_votes_that_were_there_already_are_reused():
    now = result(leaf(cached=True), id="res_2")
    assert told(now, result()) == [{"reused": True, "because": []}]
    assert with_rejudged(now, result())["rejudged"] == {"of": "res_1", "reused": 1, "again": 0, "because": {}}


@pytest.mark.parametrize(
    ("now", "because"),
    [
        (result(answer_sha256="9" * 64), ["answer"]),
        (result(pages=[page(text="b" * 64)]), ["page"]),
        (result(pages=[page(outcome="blocked")]), ["page"]),
        (result(judge={"script_sha256": "9" * 64}), ["script"]),
        (result(leaf(claim="Paris has 20 districts"), judge={"script_sha256": "9" * 64}), ["script"]),
        (result(leaf(prompt="verify_page@2"), prompts=["extract_answer@1", "verify_page@2"]), ["prompt"]),
        (result(leaf(claim="x"), prompts=["extract_answer@2", "verify_page@1"]), ["prompt"]),
        (result(leaf(model="gpt-6-luna"), model="gpt-6-luna"), ["model"]),
        (result(asked_in="e" * 16), ["model"]),
        (result(), ["not_kept"]),
        (result(answer_sha256="9" * 64, pages=[page(text="b" * 64)], model="gpt-6-luna"), ["answer", "page", "model"]),
    ],
)
def test_each_leaf_says_what_had_changed(now: dict[str, Any], because: list[str]):
    assert told(now, result()) == [again(*because)]


def test_a_page_that_another_leaf_is_judged_by_is_no_reason():
    pages = [page(), page(OTHER)]
    before = result(leaf(), leaf("lyon", sources=[OTHER]), pages=pages)
    now = result(leaf(cached=True), leaf("lyon", sources=[OTHER]), pages=[page(), page(OTHER, text="c" * 64)])
    assert told(now, before) == [{"reused": True, "because": []}, again("page")]


def test_what_is_not_shown_of_a_page_is_no_reason():
    elsewhere = {**page(), "bodies": {"text": "a" * 64, "html": "f" * 64}}
    assert told(result(leaf(cached=True), pages=[elsewhere]), result()) == [{"reused": True, "because": []}]


def test_a_changed_file_is_no_reason_for_a_leaf_that_asks_the_same():
    now = result(leaf(cached=True), judge={"script_sha256": "9" * 64})
    assert told(now, result()) == [{"reused": True, "because": []}]


def test_what_had_been_judged_before_is_reused_and_still_says_what_changed():
    """A page went back to what it was: its replies are there, though the last result was judged by another one."""
    now = result(leaf(cached=True))
    assert told(now, result(pages=[page(text="b" * 64)])) == [{"reused": True, "because": ["page"]}]


@pytest.mark.parametrize("outcome", ["not_judged", "skipped", "undecided"])
def test_a_leaf_without_a_verdict_up_to_now_is_new(outcome: str):
    assert told(result(), result(leaf(outcome=outcome))) == [again("new")]
    assert told(result(leaf(), leaf("more")), result()) == [again("not_kept"), again("new")]


def test_a_page_that_can_be_read_now_is_the_reason_and_not_that_nobody_knew():
    before = result(leaf(outcome="not_judged", votes=[]), pages=[page(outcome="blocked")])
    assert told(result(), before) == [again("page")]


def test_leaves_without_a_vote_say_nothing():
    """Code decided them, or a gate was closed: no model was asked, then or now."""
    assert told(result(leaf(votes=[])), result()) == [None]


def test_a_vote_that_is_half_there_is_judged_again():
    votes = [{"result": True, "model": "m", "cached": cached, "fault": None} for cached in (True, False)]
    now = result(leaf(votes=votes, usage={"calls": 1, "cached_calls": 1}))
    assert told(now, result()) == [again("not_kept")]


def test_the_lexical_judge_computes_so_what_has_not_changed_counts_as_reused():
    before = result(leaf(model="lexical"), model="lexical")
    assert told(before, before) == [{"reused": True, "because": []}]
    assert told(result(leaf(model="lexical"), model="lexical", answer_sha256="9" * 64), before) == [again("answer")]


def test_leaves_of_one_name_are_told_apart_by_their_order():
    before = result(leaf("twice"), leaf("twice", claim="other", outcome="not_judged"))
    now = result(leaf("twice", cached=True), leaf("twice", claim="other"))
    assert told(now, before) == [{"reused": True, "because": []}, again("new")]


def test_the_summary_counts_leaves_and_causes():
    before = result(leaf("a"), leaf("b", sources=None), leaf("c"))
    now = result(leaf("a"), leaf("b", sources=None, cached=True), leaf("c"), pages=[page(text="b" * 64)], id="res_2")
    summary = with_rejudged(now, before)["rejudged"]
    assert summary == {"of": "res_1", "reused": 1, "again": 2, "because": {"page": 2}}


def test_results_of_the_public_toolkit_are_no_stumbling_block():
    bare = {"final_score": 0.5, "eval_breakdown": [{"verification_tree": {"id": "root", "children": []}}]}
    assert told(result(), bare) == [again("new")]


def test_a_result_is_not_changed_by_being_compared():
    now, before = result(), result()
    copies = copy.deepcopy((now, before))
    with_rejudged(now, before)
    assert (now, before) == copies


def test_every_cause_is_in_the_published_schema():
    from app.api.results import result_schema

    assert result_schema()["$defs"]["cause"]["enum"] == [cause.value for cause in Cause]
