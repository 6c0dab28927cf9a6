from __future__ import annotations

from math import nan

import pytest

from rubrics.rubric import InvalidNode, Rubric, UnknownNode
from rubrics.tree import RubricNode, Strategy, statistics
from rubrics.verdict import Claim


def node(node_id: str, **fields: object) -> RubricNode:
    return RubricNode(id=node_id, desc=node_id, **fields)  # type: ignore[arg-type]


@pytest.fixture
def rubric() -> Rubric:
    """Return the rubric root( g!( a, b ), c ), where g is critical."""
    made = Rubric("task", "the task")
    group = made.add(made.root, node("g", critical=True))
    made.add(group, node("a", critical=True, claim=Claim(text="A holds")))
    made.add(group, node("b", critical=True, check=True))
    made.add(made.root, node("c", weight=2.0, claim=Claim(text="C holds")))
    return made


def test_walk_visits_parents_first_and_leaves_from_left_to_right(rubric: Rubric) -> None:
    assert [each.id for each in rubric.walk()] == ["root", "g", "a", "b", "c"]
    assert [each.id for each in rubric.leaves()] == ["a", "b", "c"]


def test_path_leads_from_the_root_to_the_node(rubric: Rubric) -> None:
    assert [each.id for each in rubric.path_to(rubric.find("b"))] == ["root", "g", "b"]
    assert rubric.path_to(rubric.root) == [rubric.root]


def test_statistics_count_depth_nodes_and_leaves(rubric: Rubric) -> None:
    counted = statistics(rubric.root)
    assert (counted.depth, counted.total_nodes, counted.leaf_nodes) == (2, 5, 3)


def test_root_alone_is_one_leaf_of_depth_zero() -> None:
    counted = statistics(Rubric("task", "").root)
    assert (counted.depth, counted.total_nodes, counted.leaf_nodes) == (0, 1, 1)


def test_find_names_the_unknown_id(rubric: Rubric) -> None:
    assert "a" in rubric
    assert "z" not in rubric
    with pytest.raises(UnknownNode, match="'z'"):
        rubric.find("z")


@pytest.mark.parametrize(
    ("parent", "added", "message"),
    [
        ("root", node("a"), "in use"),
        ("root", node(""), "empty"),
        ("root", node("x", weight=0.0), "weight"),
        ("root", node("x", weight=nan), "weight"),
        ("root", node("x", weight=-5.0, critical=True), "make a critical claim or check of its opposite"),
        ("g", node("x", weight=-5.0), "out of the critical group"),
        ("root", node("x", weight=-5.0, requires=("c",)), "remove the prerequisite"),
        ("g", node("x"), "critical"),
        ("a", node("x", critical=True), "is a leaf"),
        ("root", node("x", claim=Claim(text="X"), check=True), "not both"),
        ("root", node("x", children=[node("y")]), "already has children"),
        ("g", node("x", critical=True, requires=("g",)), "'g', which contains it"),
    ],
)
def test_invalid_node_is_rejected_and_not_added(rubric: Rubric, parent: str, added: RubricNode, message: str) -> None:
    before = [each.id for each in rubric.walk()]
    with pytest.raises(InvalidNode, match=message):
        rubric.add(rubric.find(parent), added)
    assert [each.id for each in rubric.walk()] == before


def test_node_with_an_unknown_requirement_is_rejected_and_not_added(rubric: Rubric) -> None:
    with pytest.raises(UnknownNode, match="'z'"):
        rubric.add(rubric.root, node("x", requires=("z",)))
    assert "x" not in rubric


def test_penalty_is_kept_apart_from_gates_and_other_penalties(rubric: Rubric) -> None:
    mistakes = rubric.add(rubric.root, node("mistakes", weight=-5.0))
    rubric.add(mistakes, node("first", weight=2.0))
    for added, message in (
        (node("x", critical=True), "cannot be critical"),
        (node("x", weight=-1.0), "inside the penalty 'mistakes'"),
        (node("x", requires=("first",)), "part of a penalty"),
    ):
        with pytest.raises(InvalidNode, match=message) as caught:
            rubric.add(mistakes, added)
        assert caught.value.node_id == "x"
    steps = rubric.add(rubric.root, node("steps", strategy=Strategy.SEQUENTIAL))
    with pytest.raises(InvalidNode, match="beside it"):
        rubric.add(steps, node("x", weight=-1.0))
    with pytest.raises(InvalidNode, match="part of a penalty"):
        rubric.add(rubric.root, node("x", requires=("first",)))


def test_node_inherits_the_requirements_of_its_groups(rubric: Rubric) -> None:
    group = rubric.add(rubric.root, node("h", requires=("c",)))
    added = rubric.add(group, node("x", requires=("b", "a")))
    assert [each.id for each in rubric.required_by(added)] == ["b", "a", "c"]
