from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from rubrics.errors import SchemaError
from rubrics.node import RubricNode, Strategy
from rubrics.rubric import Rubric
from rubrics.schema import rubric_from_json, rubric_json, tree_json
from rubrics.scoring import score, score_strict
from rubrics.verdict import CheckNote, Claim, Outcome, Quote, QuoteOrigin, Reason, SourceCheck, Usage, Verdict, Vote
from tests.unit.rubrics.random_rubrics import QUICK, judged_rubrics

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


@QUICK
@given(judged_rubrics())
def test_rubric_survives_json(rubric: Rubric) -> None:
    document = rubric_json(rubric)
    read = rubric_from_json(json.loads(json.dumps(document)))
    assert rubric_json(read) == document
    assert [leaf.verdict for leaf in read.leaves()] == [leaf.verdict for leaf in rubric.leaves()]
    assert (score(read), score_strict(read)) == (score(rubric), score_strict(rubric))


def test_forward_requirements_survive_json(rubric: Rubric) -> None:
    rubric.require(rubric.find("given"), "open")
    read = rubric_from_json(rubric_json(rubric))
    assert {node.id: node.requires for node in read.walk() if node.requires} == {"given": ("open",), "rest": ("given",)}


def test_scores_in_a_document_are_ignored(rubric: Rubric) -> None:
    document = rubric_json(rubric)
    document["tree"]["score"] = document["tree"]["children"][1]["score"] = 1.0
    assert rubric_json(rubric_from_json(document)) == rubric_json(rubric)


def with_value(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return a copy of ``document`` with the value at a dotted path replaced."""
    copy = deepcopy(document)
    *way, last = path.split(".")
    here: Any = copy
    for part in way:
        here = here[int(part) if isinstance(here, list) else part]
    here[last] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("schema_version", 1, "schema_version"),
        ("tree.children", None, "tree.children"),
        ("tree.children.1.critcal", True, "tree.children.1.critcal"),
        ("tree.children.1.weight", "heavy", "tree.children.1.weight"),
        ("tree.children.1.weight", float("nan"), "tree.children.1.weight"),
        ("tree.children.1.outcome", "maybe", "tree.children.1.outcome"),
        ("tree.children.1.votes", [{"model": "m"}], "tree.children.1.votes.0.result"),
        ("tree.children.1.weight", 0.0, "tree"),
        ("tree.children.1.id", "given", "tree"),
        ("tree.children.1.check", True, "tree"),
        ("tree.children.2.requires", ["nowhere"], "tree"),
        ("tree.id", "top", "tree"),
        ("tree.critical", True, "tree"),
    ],
)
def test_invalid_document_is_rejected_with_the_path_of_the_problem(
    rubric: Rubric, path: str, value: object, where: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        rubric_from_json(with_value(rubric_json(rubric), path, value))
    assert caught.value.path == where
    assert caught.value.message


@pytest.mark.parametrize("document", [None, [], "rubric", {}])
def test_value_that_is_not_a_document_is_rejected(document: object) -> None:
    with pytest.raises(SchemaError):
        rubric_from_json(document)


def test_tree_of_extreme_depth_is_rejected(rubric: Rubric) -> None:
    document = rubric_json(rubric)
    node = document["tree"]
    for level in range(5_000):
        node["children"] = [{**node, "id": f"n{level}", "children": []}]
        node = node["children"][0]
    with pytest.raises(SchemaError):
        rubric_from_json(document)
