from __future__ import annotations

from typing import Any

import pytest

from judges.analysis.rejudging import with_rejudged

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
        "script": {"sha256": "2" * 64},
        "model": "gpt-4o",
        "asked_in": "f" * 16,
        "prompts": ["extract_answer@1", "verify_page@1"],
        "pages": [page()],
    }
    return plain | facts


def rejudged_leaves(now: dict[str, Any], before: dict[str, Any] | None) -> list[Any]:
    tree = with_rejudged(now, before)["eval_breakdown"][0]["verification_tree"]
    return [each["rejudged"] for each in tree["children"]]


def again(*because: str) -> dict[str, Any]:
    return {"reused": False, "because": list(because)}


def test_first_result_has_nothing_to_compare_with():
    first = with_rejudged(result(), None)
    assert first["rejudged"] is None
    assert rejudged_leaves(result(), None) == [None]


def test_cached_votes_are_reused():
    now = result(leaf(cached=True), id="res_2")
    assert rejudged_leaves(now, result()) == [{"reused": True, "because": []}]
    assert with_rejudged(now, result())["rejudged"] == {"of": "res_1", "reused": 1, "again": 0, "because": {}}


@pytest.mark.parametrize(
    ("now", "because"),
    [
        (result(answer_sha256="9" * 64), ["answer"]),
        (result(pages=[page(text="b" * 64)]), ["page"]),
        (result(script={"sha256": "9" * 64}), ["script"]),
        (result(leaf(prompt="verify_page@2"), prompts=["extract_answer@1", "verify_page@2"]), ["prompt"]),
        (result(leaf(model="gpt-6-luna"), model="gpt-6-luna"), ["model"]),
        (result(), ["not_kept"]),
    ],
)
def test_changed_input_is_the_cause(now: dict[str, Any], because: list[str]):
    assert rejudged_leaves(now, result()) == [again(*because)]


def test_changed_page_of_another_leaf_is_no_cause():
    pages = [page(), page(OTHER)]
    before = result(leaf(), leaf("lyon", sources=[OTHER]), pages=pages)
    now = result(leaf(cached=True), leaf("lyon", sources=[OTHER]), pages=[page(), page(OTHER, text="c" * 64)])
    assert rejudged_leaves(now, before) == [{"reused": True, "because": []}, again("page")]


def test_changed_script_is_no_cause_if_the_claim_is_equal():
    now = result(leaf(cached=True), script={"sha256": "9" * 64})
    assert rejudged_leaves(now, result()) == [{"reused": True, "because": []}]


def test_leaves_without_votes_are_not_classified():
    """Code decided them, or a gate blocked them, so no model was asked."""
    assert rejudged_leaves(result(leaf(votes=[])), result()) == [None]


def test_summary_counts_leaves_and_causes():
    before = result(leaf("a"), leaf("b", sources=None), leaf("c"))
    now = result(leaf("a"), leaf("b", sources=None, cached=True), leaf("c"), pages=[page(text="b" * 64)], id="res_2")
    summary = with_rejudged(now, before)["rejudged"]
    assert summary == {"of": "res_1", "reused": 1, "again": 2, "because": {"page": 2}}
