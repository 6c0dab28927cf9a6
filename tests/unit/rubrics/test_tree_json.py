from __future__ import annotations

from typing import Any

import pytest

from rubrics.rubric import Rubric
from rubrics.tree import RubricNode, Strategy
from rubrics.tree_json import leaf_states, page_digests_of, parameters_of, script_of, script_sha256_of, tree_json
from rubrics.verdict import CheckNote, Claim, Outcome, Quote, QuoteOrigin, Reason, SourceCheck, Usage, Verdict, Vote

PARAMETERS = {"verify": {"reasoning_effort": "low"}}
SCRIPT = {"name": "bridges", "version": "3", "kind": "native", "sha256": "ab" * 32}
VERSION_1 = {
    "schema_version": 1,
    "judge": {
        "name": "bridges",
        "version": "3",
        "kind": "native",
        "script_sha256": "ab" * 32,
        "parameters": PARAMETERS,
    },
}
VERSION_2 = {
    "schema_version": 2,
    "judge": {"model": "m", "reasoning_effort": "low", "temperature": None},
    "script": SCRIPT,
    "parameters": PARAMETERS,
}


@pytest.mark.parametrize("result", [VERSION_1, VERSION_2], ids=["1", "2"])
def test_script_and_parameters_are_read_from_every_version(result: dict[str, Any]) -> None:
    assert script_of(result) == SCRIPT
    assert script_sha256_of(result) == "ab" * 32
    assert parameters_of(result) == PARAMETERS


def test_result_of_the_public_toolkit_has_only_the_hash_of_its_script() -> None:
    result = {"judge": {"model": "m"}, "eval_script_sha256": "cd" * 32}
    assert script_of(result) == {"sha256": "cd" * 32}
    assert parameters_of(result) is None


@pytest.mark.parametrize("result", [{}, {"judge": None}, {"judge": [1], "script": "s", "parameters": 3}])
def test_missing_or_invalid_fields_are_unknown(result: dict[str, Any]) -> None:
    assert script_of(result) == {}
    assert script_sha256_of(result) is None
    assert parameters_of(result) is None


def test_digests_of_a_leaf_are_read_from_every_version() -> None:
    assert page_digests_of({"evidence": ["a", "b"]}) == ("a", "b")
    assert page_digests_of({"evidence": {"claim": "c", "sources": [], "checks": []}, "page_digests": ["a"]}) == ("a",)
    assert (
        page_digests_of({"evidence": {"claim": "c"}})
        == page_digests_of({})
        == page_digests_of({"evidence": None})
        == ()
    )


UPSTREAM_FIELDS = ["id", "desc", "critical", "score", "status", "strategy", "children"]


@pytest.fixture
def rubric() -> Rubric:
    made = Rubric("lineage", "who advised whom", Strategy.SEQUENTIAL)
    given_leaf = RubricNode(id="given", desc="a name is given", check=True, verdict=Verdict(outcome=Outcome.PASSED))
    made.add(made.root, given_leaf)
    verdict = Verdict(
        outcome=Outcome.FAILED,
        reason=Reason.REFUTED,
        reasoning="the page names another",
        votes=(Vote(result=False, model="m"), Vote(result=None, model="m", cached=True, fault=Reason.TIMEOUT)),
        quotes=(
            Quote(text="another", page_id="p1", start=3, end=10),
            Quote(text="seen", page_id="p1", start=0, end=0, origin=QuoteOrigin.IMAGE),
        ),
        evidence=("ab12",),
        prompt="verify@3",
        model="m",
        usage=Usage(calls=2, cached_calls=1, input_tokens=30, output_tokens=4, usd=None),
        grounded=False,
        checks=(SourceCheck(url="https://a.example/x", passed=False, votes=(False, False), note=CheckNote.ERROR),),
        signals=("orders_in_page",),
    )
    claim = Claim(text="A advised B", sources=("https://a.example/x",), instruction="spelling may differ")
    made.add(made.root, RubricNode(id="source", desc="the page says so", weight=2.0, claim=claim, verdict=verdict))
    group = made.add(made.root, RubricNode(id="rest", desc="the rest", requires=("given",)))
    made.add(group, RubricNode(id="open", desc="never settled", claim=Claim(text="C advised A")))
    return made


def test_tree_starts_with_the_fields_of_the_public_toolkit_in_order(rubric: Rubric) -> None:
    pending = [tree_json(rubric)]
    while pending:
        node = pending.pop()
        assert list(node)[: len(UPSTREAM_FIELDS)] == UPSTREAM_FIELDS
        pending += node["children"]


def test_leaf_has_all_fields_of_its_verdict(rubric: Rubric) -> None:
    assert tree_json(rubric)["children"][1] == {
        "id": "source",
        "desc": "the page says so",
        "critical": False,
        "score": 0.0,
        "status": "failed",
        "strategy": "parallel",
        "children": [],
        "evidence": {
            "claim": "A advised B",
            "sources": ["https://a.example/x"],
            "checks": [
                {
                    "url": "https://a.example/x",
                    "passed": False,
                    "votes": [False, False],
                    "reasoning": None,
                    "note": "error",
                }
            ],
        },
        "weight": 2.0,
        "requires": [],
        "check": None,
        "outcome": "failed",
        "reason": "refuted",
        "reasoning": "the page names another",
        "sources": ["https://a.example/x"],
        "votes": [
            {"result": False, "model": "m", "cached": False, "fault": None},
            {"result": None, "model": "m", "cached": True, "fault": "timeout"},
        ],
        "quotes": [
            {"text": "another", "page_id": "p1", "start": 3, "end": 10, "origin": "text"},
            {"text": "seen", "page_id": "p1", "start": 0, "end": 0, "origin": "image"},
        ],
        "blocked_by": None,
        "claim": "A advised B",
        "instruction": "spelling may differ",
        "page_digests": ["ab12"],
        "prompt": "verify@3",
        "model": "m",
        "usage": {"calls": 2, "cached_calls": 1, "input_tokens": 30, "output_tokens": 4, "usd": None},
        "grounded": False,
        "grounding": "image",
        "signals": ["orders_in_page"],
    }


def test_inner_nodes_have_the_compatible_score_and_status(rubric: Rubric) -> None:
    tree = tree_json(rubric)
    assert (tree["score"], tree["status"]) == (0.25, "partial")
    assert (tree["children"][2]["score"], tree["children"][2]["status"]) == (0.0, "skipped")
    assert "outcome" not in tree["children"][2]


def test_unsettled_leaf_is_undecided(rubric: Rubric) -> None:
    open_leaf = tree_json(rubric)["children"][2]["children"][0]
    assert (open_leaf["outcome"], open_leaf["status"], open_leaf["sources"]) == ("undecided", "initialized", None)


@pytest.mark.parametrize("prices", [(None, 1.0), (1.0, None), (None, None)])
def test_cost_with_an_unknown_price_is_unknown(prices: tuple[float | None, float | None]) -> None:
    first, second = (Usage(calls=1, usd=usd) for usd in prices)
    assert first + second == Usage(calls=2, usd=None)


def test_penalty_that_is_met_applies_and_is_not_passed() -> None:
    def node(id: str, *children: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {"id": id, "children": list(children), **fields}

    part = node("part", node("met", status="passed"), node("unmet", outcome="failed"), node("open", outcome="skipped"))
    trees = [node("root", node("a", outcome="passed"), node("p", part, weight=-2), node("b", status="initialized"))]
    trees.append(node("leaf", outcome="failed", status="passed"))
    states = leaf_states({"eval_breakdown": [{"verification_tree": tree} for tree in trees]})
    assert [(leaf["id"], state) for leaf, state in states] == [
        ("a", "passed"), ("met", "applies"), ("unmet", "avoided"), ("open", "skipped"), ("b", "undecided"),
        ("leaf", "failed"),
    ]  # fmt: skip
