"""Construction of the tree: ids, inner nodes, leaves, and leaves decided by code."""

from __future__ import annotations

from typing import Any

import pytest

from mind2web2 import AggregationStrategy
from tests.compat.scripted import ScriptedClient, initialized_evaluator


def test_taken_ids_get_the_first_free_suffix():
    e = initialized_evaluator(ScriptedClient())
    assert [e.add_leaf(name, "x").id for name in ("a", "a", "a_1", "a", "root")] == [
        "a",
        "a_1",
        "a_1_1",
        "a_2",
        "root_1",
    ]


def test_id_stays_taken_when_the_call_raises():
    e = initialized_evaluator(ScriptedClient())
    parent = e.add_parallel("p", "p", critical=True)
    with pytest.raises(ValueError, match="critical"):
        e.add_leaf("a", "a", parent)
    with pytest.raises(ValueError, match="score"):
        e.add_leaf("b", "b", score=0.5)
    with pytest.raises(TypeError):
        e.add_parallel("c", "c", strategy=AggregationStrategy.PARALLEL)
    assert [e.check_id_available(name) for name in "abcd"] == [False, False, False, True]


def test_node_ids_count_and_lookup():
    e = initialized_evaluator(ScriptedClient())
    e.add_leaf("b", "b")
    e.add_leaf("a", "a")
    assert e.get_all_node_ids() == ["a", "b", "root"]
    assert e.get_node_count() == 3
    found = e.find_node("a")
    assert found is not None
    assert found.id == "a"
    assert e.find_node("nope") is None


@pytest.mark.parametrize(
    ("result", "status"),
    [("x", "passed"), (None, "failed"), ("", "failed")],
)
def test_custom_node_is_decided_by_truth_value(result: Any, status: str):
    node = initialized_evaluator(ScriptedClient()).add_custom_node(result, "k", "k")
    assert (node.status, node.score, node.critical) == (status, float(status == "passed"), True)


def test_custom_node_has_an_alias_and_rejects_other_keywords():
    e = initialized_evaluator(ScriptedClient())
    assert not e.add_existence_node(result=True, id="k", desc="k", parent=e.root, critical=False).critical
    with pytest.raises(TypeError):
        e.add_custom_node(True, "x", "x", weight=2.0)  # type: ignore[call-arg]
