from __future__ import annotations

from math import nan

import pytest

from rubrics.lint import LintRule, lint
from rubrics.rubric import Rubric
from rubrics.tree import RubricNode
from rubrics.verdict import Claim


def group(node_id: str, **fields: object) -> RubricNode:
    return RubricNode(id=node_id, desc=f"group {node_id}", **fields)  # type: ignore[arg-type]


def claim(
    node_id: str, text: str | None = None, *, sources: tuple[str, ...] | None = None, **fields: object
) -> RubricNode:
    asked = Claim(text=text or f"the {node_id} is right", sources=sources)
    return RubricNode(id=node_id, desc=f"leaf {node_id}", claim=asked, **fields)  # type: ignore[arg-type]


def under_root(*nodes: RubricNode) -> Rubric:
    rubric = Rubric("task", "the task")
    for node in nodes:
        rubric.add(rubric.root, node)
    return rubric


def findings(rubric: Rubric) -> list[tuple[str, str]]:
    return [(finding.code.value, finding.node_id) for finding in lint(rubric)]


def test_valid_rubric_has_no_findings() -> None:
    rubric = under_root(claim("a", critical=True), claim("b", weight=2.0), claim("c"))
    inner = rubric.add(rubric.root, group("g"))
    rubric.add(inner, RubricNode(id="given", desc="something is given", check=True, critical=True))
    rubric.add(inner, claim("d", sources=("https://a.example",)))
    assert findings(rubric) == []


def test_duplicate_claim_is_found_anywhere_in_the_tree() -> None:
    rubric = under_root(claim("a", "The sky is  blue"), group("g"))
    rubric.add(rubric.find("g"), claim("b", "the sky is blue"))
    rubric.add(rubric.find("g"), claim("c"))
    assert findings(rubric) == [("duplicate_text", "b")]


def test_same_claim_with_different_sources_is_accepted() -> None:
    assert findings(under_root(claim("a", "It is so", sources=("u",)), claim("b", "It is so", sources=("v",)))) == []


def test_siblings_with_the_same_description_are_found() -> None:
    rubric = under_root(group("g"), group("h"))
    for parent in "gh":
        for n in (1, 2):
            rubric.add(rubric.find(parent), RubricNode(id=f"{parent}{n}", desc=f"part {n}", check=True))
    assert findings(rubric) == []
    rubric.find("h2").desc = "Part 1"
    assert findings(rubric) == [("duplicate_text", "h2")]


@pytest.mark.parametrize("weight", [0.0, nan])
def test_invalid_weight_is_found(weight: float) -> None:
    rubric = under_root(claim("a"), claim("b"))
    rubric.find("b").weight = weight
    assert ("bad_weight", "b") in findings(rubric)


def test_penalties_are_no_pointless_weights_but_need_a_positive_one() -> None:
    assert findings(under_root(claim("a", weight=7.0), claim("b", weight=7.0), claim("p", weight=-5.0))) == []
    assert findings(under_root(claim("p", weight=-5.0), claim("q", weight=-5.0))) == [("only_penalties", "root")]
    assert findings(under_root(claim("gate", critical=True), claim("p", weight=-5.0))) == []


def test_critical_penalty_is_found_and_the_message_names_the_alternative() -> None:
    rubric = under_root(claim("a"), claim("p"))
    rubric.find("p").weight, rubric.find("p").critical = -5.0, True
    [finding] = lint(rubric)
    assert (finding.code, finding.node_id) == ("critical_penalty", "p")
    assert "critical claim or check of its opposite" in finding.message


def test_weight_on_a_gate_is_found() -> None:
    assert findings(under_root(claim("a", critical=True, weight=2.0), claim("b"))) == [("pointless_weight", "a")]


def test_weight_shared_by_all_averaged_siblings_is_found() -> None:
    assert findings(under_root(claim("a", weight=2.0))) == [("pointless_weight", "a")]
    rubric = under_root(claim("gate", critical=True), claim("a", weight=3.0), claim("b", weight=3.0))
    assert findings(rubric) == [("pointless_weight", "a"), ("pointless_weight", "b")]


def test_group_with_only_gates_is_found() -> None:
    assert findings(under_root(claim("a", critical=True), claim("b", critical=True))) == [("only_critical", "root")]


def test_children_of_a_critical_group_may_all_be_critical() -> None:
    rubric = under_root(group("g", critical=True), claim("z"))
    rubric.add(rubric.find("g"), claim("a", critical=True))
    rubric.add(rubric.find("g"), claim("b", critical=True))
    assert findings(rubric) == []


def test_leaf_without_claim_or_check_and_empty_rubric_are_found() -> None:
    assert findings(under_root(group("g"), claim("a"))) == [("no_check", "g")]
    assert findings(Rubric("task", "the task")) == [("no_check", "root")]


def test_group_with_one_child_is_found() -> None:
    rubric = under_root(group("g"))
    rubric.add(rubric.find("g"), claim("a"))
    assert findings(rubric) == [("single_child", "g")]


def test_cycle_is_found_at_its_first_node() -> None:
    rubric = under_root(claim("a"), claim("b", requires=("a",)))
    rubric.find("a").requires = ("b",)
    [finding] = lint(rubric)
    assert finding.code is LintRule.CYCLE
    assert finding.message in {
        "these leaves wait for each other: a > b; remove one prerequisite",
        "these leaves wait for each other: b > a; remove one prerequisite",
    }


@pytest.mark.parametrize(
    "text",
    [
        "The laptop costs 900 dollars and has 16 GB of memory",
        "Ada Byron wrote the notes; she died in 1852",
        "The museum is open on Mondays, but the shop is closed",
        "The bridge was built in 1932. It spans the harbour and was painted grey",
        "The film won two awards as well as being long, while its sequel was ignored",
    ],
)
def test_claim_with_two_statements_is_found(text: str) -> None:
    assert findings(under_root(claim("a", text))) == [("compound_claim", "a")]


@pytest.mark.parametrize(
    "text",
    [
        "'Ada Byron' and 'Ada Lovelace' are the same person",
        'The book "Was It Him and Is It Her" was printed in 1999',
        "\u2018What is and what was\u2019 is the title",
        "J. K. Rowling wrote the book",
        "The price is 3.50 dollars",
        "Dr. Jones supervised the thesis",
    ],
)
def test_claim_with_one_statement_is_accepted(text: str) -> None:
    assert findings(under_root(claim("a", text))) == []


@pytest.mark.parametrize(
    "text",
    [
        "The plan is comprehensive.",
        "The summary was very good and short",
        "The answer gives a clear explanation of the cause",
        "It is well-written",
    ],
)
def test_claim_about_quality_without_a_criterion_is_found(text: str) -> None:
    assert ("vague_claim", "a") in findings(under_root(claim("a", text), claim("b")))


@pytest.mark.parametrize(
    "text",
    [
        "The ticket is good until 3 May",
        "'Good information' is the title of the page",
        "The Great Eastern was a ship",
    ],
)
def test_fact_with_a_word_of_quality_is_not_vague(text: str) -> None:
    assert findings(under_root(claim("a", text), claim("b"))) == []
