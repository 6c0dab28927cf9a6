from __future__ import annotations

import pytest

from rubrics.node import RubricNode, Strategy
from rubrics.rubric import Rubric
from rubrics.schema import tree_json
from rubrics.verdict import CheckNote, Claim, Outcome, Quote, QuoteOrigin, Reason, SourceCheck, Usage, Verdict, Vote

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
