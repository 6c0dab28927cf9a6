"""Golden cases of the contract by row: the calls in order and the expected tree."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mind2web2 import AggregationStrategy, Evaluator, VerificationNode
from tests.compat.scripted import ScriptedClient, initialized_evaluator, tree

PASSED, FAILED, SKIPPED, INITIALIZED = ("passed", 1.0), ("failed", 0.0), ("skipped", 0.0), ("initialized", 0.0)
SEQUENTIAL = AggregationStrategy.SEQUENTIAL


def partial(score: float) -> tuple[str, Any]:
    return "partial", pytest.approx(score)


def parallel(**keywords: Any) -> tuple[Evaluator, ScriptedClient]:
    """Return an evaluator and its client, for which claims that start with "yes" are true."""
    client = YesOrNo()
    return initialized_evaluator(client, **keywords), client


def sequential() -> tuple[Evaluator, ScriptedClient]:
    return parallel(strategy=SEQUENTIAL)


class YesOrNo(ScriptedClient):
    def _next_vote(self, claim: str, url: str | None) -> bool:
        return claim.startswith("yes")


async def yes(evaluator: Evaluator, node: VerificationNode, **keywords: Any) -> bool:
    return await evaluator.verify(f"yes {node.id}", node, **keywords)


async def no(evaluator: Evaluator, node: VerificationNode, **keywords: Any) -> bool:
    return await evaluator.verify(f"no {node.id}", node, **keywords)


async def test_row_1_failed_step_skips_the_next_without_a_call():
    e, client = parallel()
    s = e.add_sequential("s", "s")
    a, b, d = (e.add_leaf(name, name, s) for name in "abd")
    x = e.add_leaf("x", "x")
    assert [await yes(e, a), await no(e, b), await yes(e, d), await yes(e, x)] == [True, False, False, True]
    assert "yes d" not in client.claims
    assert tree(e.get_summary()) == {
        "root": partial(2 / 3), "s": partial(1 / 3), "x": PASSED, "a": PASSED, "b": FAILED, "d": SKIPPED,
    }  # fmt: skip


async def test_row_2_gate_that_fails_later_keeps_earlier_verdicts():
    e, _ = parallel()
    p = e.add_parallel("p", "p")
    a, b = e.add_leaf("a", "a", p), e.add_leaf("b", "b", p)
    assert await yes(e, a)
    e.add_custom_node(False, "k", "k", p)
    assert not await yes(e, b)
    assert tree(e.get_summary()) == {"root": FAILED, "p": FAILED, "a": PASSED, "b": SKIPPED, "k": FAILED}


async def test_row_3_second_verify_overwrites_the_first():
    e, _ = parallel()
    a = e.add_leaf("a", "a")
    assert not await no(e, a)
    assert await yes(e, a)
    assert tree(e.get_summary()) == {"root": PASSED, "a": PASSED}


async def test_row_3_gate_that_failed_meanwhile_skips_the_second_verify():
    e, _ = parallel()
    a, k = e.add_leaf("a", "a"), e.add_leaf("k", "k", critical=True)
    await no(e, a)
    await yes(e, a)
    await no(e, k)
    assert not await yes(e, a)
    assert tree(e.get_summary()) == {"root": FAILED, "a": SKIPPED, "k": FAILED}


async def test_row_4_failed_gate_skips_a_critical_sibling_group():
    e, _ = parallel()
    e.add_custom_node(False, "g", "g")
    p = e.add_parallel("p", "p", critical=True)
    a, b = (e.add_leaf(name, name, p, critical=True) for name in "ab")
    assert [await yes(e, a), await yes(e, b)] == [False, False]
    assert tree(e.get_summary()) == {"root": FAILED, "g": FAILED, "p": SKIPPED, "a": SKIPPED, "b": SKIPPED}


async def test_row_5_leaf_created_as_skipped_blocks():
    e, client = parallel()
    p = e.add_parallel("p", "p", critical=True)
    e.add_leaf("a", "a", p, critical=True, status="skipped")
    b = e.add_leaf("b", "b", p, critical=True)
    assert not await yes(e, b)
    assert client.calls == []
    assert tree(e.get_summary()) == {"root": SKIPPED, "p": SKIPPED, "a": SKIPPED, "b": SKIPPED}


async def test_row_6_custom_nodes_after_a_failed_step_are_skipped():
    e, client = sequential()
    for name, result in (("c1", True), ("c2", False), ("c3", True)):
        e.add_custom_node(result, name, name, critical=False)
    leaf = e.add_leaf("l", "l")
    assert not await yes(e, leaf)
    assert client.calls == []
    assert tree(e.get_summary()) == {
        "root": partial(0.25), "c1": PASSED, "c2": FAILED, "c3": SKIPPED, "l": SKIPPED,
    }  # fmt: skip


def test_row_6_failed_critical_step_zeroes_the_root():
    e, _ = sequential()
    for name, result in (("c1", True), ("c2", False), ("c3", True)):
        e.add_custom_node(result, name, name)
    assert tree(e.get_summary()) == {"root": FAILED, "c1": PASSED, "c2": FAILED, "c3": SKIPPED}


async def test_row_7_later_critical_sibling_blocks_an_earlier_step():
    e, _ = sequential()
    a = e.add_leaf("a", "a")
    e.add_custom_node(False, "k", "k")
    assert not await yes(e, a)
    assert tree(e.get_summary()) == {"root": SKIPPED, "a": SKIPPED, "k": SKIPPED}


async def test_row_8_failed_leaf_below_an_earlier_step_blocks():
    e, _ = sequential()
    p, q = e.add_parallel("p", "p"), e.add_parallel("q", "q")
    e.add_custom_node(True, "t", "t", p, critical=False)
    e.add_custom_node(False, "f", "f", p, critical=False)
    leaf = e.add_leaf("l", "l", q)
    assert not await yes(e, leaf)
    assert tree(e.get_summary()) == {
        "root": partial(0.25), "p": partial(0.5), "q": SKIPPED, "t": PASSED, "f": FAILED, "l": SKIPPED,
    }  # fmt: skip


async def test_row_9_leaf_judged_early_keeps_its_verdict_under_a_skipped_step():
    e, _ = sequential()
    p, q = e.add_parallel("p", "p"), e.add_parallel("q", "q")
    a, b, leaf = e.add_leaf("a", "a", p), e.add_leaf("b", "b", p), e.add_leaf("l", "l", q)
    assert [await yes(e, leaf), await yes(e, a), await no(e, b)] == [True, True, False]
    assert tree(e.get_summary()) == {
        "root": partial(0.25), "p": partial(0.5), "q": SKIPPED, "a": PASSED, "b": FAILED, "l": PASSED,
    }  # fmt: skip


def test_row_10_empty_group_is_an_undecided_leaf():
    e, _ = parallel()
    e.add_parallel("empty", "empty")
    e.add_custom_node(True, "t", "t", critical=False)
    summary = e.get_summary()
    assert tree(summary) == {"root": partial(0.5), "empty": INITIALIZED, "t": PASSED}
    assert summary["tree_statistics"] == {"depth": 1, "total_nodes": 3, "leaf_nodes": 2}


async def test_row_11_empty_critical_group_gates_but_does_not_block():
    e, _ = parallel()
    e.add_parallel("empty", "empty", critical=True)
    leaf = e.add_leaf("l", "l")
    assert await yes(e, leaf)
    assert tree(e.get_summary()) == {"root": SKIPPED, "empty": INITIALIZED, "l": PASSED}


async def test_row_11_empty_first_step_skips_the_root():
    e, _ = sequential()
    e.add_parallel("empty", "empty")
    leaf = e.add_leaf("l", "l")
    assert await yes(e, leaf)
    assert tree(e.get_summary()) == {"root": SKIPPED, "empty": INITIALIZED, "l": SKIPPED}


def test_row_12_group_of_undecided_leaves_is_skipped():
    e, _ = parallel()
    p = e.add_parallel("p", "p")
    e.add_leaf("a", "a", p)
    e.add_leaf("b", "b", p)
    assert tree(e.get_summary()) == {"root": SKIPPED, "p": SKIPPED, "a": INITIALIZED, "b": INITIALIZED}


def test_row_12_undecided_first_step_skips_the_root():
    e, _ = sequential()
    e.add_leaf("a", "a")
    e.add_custom_node(True, "t", "t", critical=False)
    assert tree(e.get_summary()) == {"root": SKIPPED, "a": INITIALIZED, "t": SKIPPED}


def test_row_13_undecided_leaf_counts_zero():
    e, _ = parallel()
    e.add_custom_node(True, "k", "k")
    e.add_custom_node(True, "t", "t", critical=False)
    e.add_leaf("b", "b")
    e.add_custom_node(False, "f", "f", critical=False)
    assert tree(e.get_summary())["root"] == partial(1 / 3)
    assert tree(e.get_summary())["b"] == INITIALIZED


def test_row_13_root_fails_if_only_the_gate_passed():
    e, _ = parallel()
    e.add_custom_node(True, "k", "k")
    e.add_custom_node(False, "f", "f", critical=False)
    e.add_leaf("b", "b")
    assert tree(e.get_summary()) == {"root": FAILED, "k": PASSED, "f": FAILED, "b": INITIALIZED}


async def test_row_14_extra_prerequisite_blocks_after_a_leaf_below_it_failed():
    e, _ = parallel()
    p = e.add_parallel("p", "p")
    a, b, leaf = e.add_leaf("a", "a", p), e.add_leaf("b", "b", p), e.add_leaf("l", "l")
    assert await yes(e, a)
    assert await yes(e, leaf, extra_prerequisites=[p])
    assert not await no(e, b)
    assert not await yes(e, leaf, extra_prerequisites=[p])
    assert tree(e.get_summary()) == {
        "root": partial(0.25), "p": partial(0.5), "a": PASSED, "b": FAILED, "l": SKIPPED,
    }  # fmt: skip


async def test_row_15_node_cannot_be_its_own_prerequisite():
    e, client = parallel()
    a = e.add_leaf("a", "a")
    assert not await yes(e, a, extra_prerequisites=[a])
    assert client.calls == []
    assert tree(e.get_summary())["a"] == FAILED


async def test_row_15_own_earlier_verdict_blocks_through_the_parent():
    e, _ = parallel()
    p = e.add_parallel("p", "p")
    a = e.add_leaf("a", "a", p)
    await no(e, a)
    assert not await yes(e, a, extra_prerequisites=[p])
    assert tree(e.get_summary())["a"] == SKIPPED


async def test_row_15_parent_prerequisite_without_earlier_verdict_does_not_block():
    e, _ = parallel()
    p = e.add_parallel("p", "p")
    a = e.add_leaf("a", "a", p)
    assert await yes(e, a, extra_prerequisites=[p])


async def test_row_16_group_that_became_critical_blocks_by_its_leaves():
    e, _ = parallel()
    p = e.add_parallel("p", "p")
    q = e.add_parallel("q", "q", p)
    e.add_custom_node(True, "t", "t", q, critical=False)
    e.add_custom_node(False, "f", "f", q, critical=False)
    e.add_custom_node(True, "u", "u", p, critical=False)
    leaf = e.add_leaf("l", "l", p)
    q.critical = True
    assert not await yes(e, leaf)
    assert tree(e.get_summary()) == {
        "root": SKIPPED, "p": SKIPPED, "q": partial(0.5), "t": PASSED, "f": FAILED, "u": PASSED, "l": SKIPPED,
    }  # fmt: skip


async def test_row_17_computed_score_stays_until_it_is_computed_again():
    e, _ = parallel()
    a = e.add_leaf("a", "a")
    assert e.score() == 0.0
    assert await yes(e, a)
    assert e.score() == 0.0
    summary = e.get_summary()
    assert summary["final_score"] == 0.0
    assert tree(summary) == {"root": SKIPPED, "a": PASSED}
    assert summary["score"] == {
        "value": 1.0,
        "low": 1.0,
        "high": 1.0,
    }  # our own score is computed from the verdicts alone
    assert e.root is not None
    assert e.root.compute_score(mutate=True) == 1.0
    summary = e.get_summary()
    assert summary["final_score"] == 1.0
    assert tree(summary) == {"root": PASSED, "a": PASSED}


async def test_row_18_batch_checks_prerequisites_before_any_verdict():
    e, _ = parallel()
    k, leaf = e.add_leaf("k", "k", critical=True), e.add_leaf("l", "l")
    assert await e.batch_verify([("no k", None, k, None), ("yes l", None, leaf, "None")]) == [False, True]
    assert tree(e.get_summary()) == {"root": FAILED, "k": FAILED, "l": PASSED}


async def test_row_18_batch_is_skipped_after_a_failed_gate():
    e, client = parallel()
    k, leaf = e.add_leaf("k", "k", critical=True), e.add_leaf("l", "l")
    e.add_custom_node(False, "g", "g")
    assert await e.batch_verify([("no k", None, k, None), ("yes l", None, leaf, None)]) == [False, False]
    assert client.calls == []
    assert tree(e.get_summary()) == {"root": FAILED, "k": SKIPPED, "l": SKIPPED, "g": FAILED}


@pytest.mark.parametrize(("first", "expected"), [("k", SKIPPED), ("l", PASSED)])
async def test_row_19_skipped_gate_skips_leaves_verified_later(first: str, expected: tuple[str, float]):
    e, _ = parallel()
    q, p = e.add_parallel("q", "q"), e.add_parallel("p", "p")
    g = e.add_custom_node(False, "g", "g", q)
    k, leaf = e.add_leaf("k", "k", p, critical=True), e.add_leaf("l", "l", p)
    asked = [yes(e, k, extra_prerequisites=[g]), yes(e, leaf)]
    await asyncio.gather(*(asked if first == "k" else reversed(asked)))
    assert tree(e.get_summary()) == {
        "root": FAILED, "q": FAILED, "g": FAILED, "p": SKIPPED, "k": SKIPPED, "l": expected,
    }  # fmt: skip


async def test_row_20_gate_beside_an_ancestor_blocks():
    e, _ = parallel()
    u, p = e.add_parallel("u", "u"), e.add_parallel("p", "p", critical=True)
    a, k = e.add_leaf("a", "a", u), e.add_leaf("k", "k", p, critical=True)
    assert not await no(e, k)
    assert not await yes(e, a)
    assert tree(e.get_summary()) == {"root": FAILED, "u": SKIPPED, "p": FAILED, "a": SKIPPED, "k": FAILED}


async def test_row_21_failed_non_critical_leaf_does_not_block():
    e, _ = parallel()
    a, b = e.add_leaf("a", "a"), e.add_leaf("b", "b", critical=True)
    assert [await no(e, a), await yes(e, b)] == [False, True]
    assert tree(e.get_summary()) == {"root": FAILED, "a": FAILED, "b": PASSED}


async def test_row_22_inner_node_can_be_verified_until_it_is_scored():
    e, _ = parallel()
    p = e.add_parallel("p", "p")
    e.add_leaf("l", "l", p)
    assert await yes(e, p)
    assert (p.status, p.score) == PASSED
    assert tree(e.get_summary()) == {"root": SKIPPED, "p": SKIPPED, "l": INITIALIZED}


async def test_row_22_root_can_be_verified_despite_a_failed_child():
    e, client = parallel()
    e.add_custom_node(False, "f", "f")
    assert e.root is not None
    assert await yes(e, e.root)
    assert len(client.calls) == 2


def test_row_23_undecided_leaf_created_with_a_score_counts_it():
    e, _ = parallel()
    e.add_leaf("l", "l", score=1.0)
    assert tree(e.get_summary()) == {"root": PASSED, "l": ("initialized", 1.0)}


async def test_row_23_leaf_created_as_passed_can_still_fail():
    e, _ = parallel()
    leaf = e.add_leaf("l", "l", score=1.0, status="passed")
    assert not await no(e, leaf)
    assert tree(e.get_summary()) == {"root": FAILED, "l": FAILED}


def test_row_24_scoring_without_mutate_applies_the_sequential_rule():
    e, _ = sequential()
    e.add_custom_node(False, "f", "f", critical=False)
    second = e.add_custom_node(True, "t", "t", critical=False)
    assert e.root is not None
    assert e.root.compute_score() == 0.0
    assert (second.status, e.root.status) == ("passed", "initialized")
    assert e.root.compute_score(mutate=True) == 0.0
    assert (second.status, second.score) == SKIPPED


@pytest.mark.parametrize(
    ("trials", "votes", "verdict", "calls"),
    [
        (3, [True, False, True], True, 3),
        (3, [True, True], True, 2),
        (3, [False, False], False, 2),
        (5, [False, False, False], False, 3),
        (5, [False, True, False, True, True], True, 5),
        (1, [False], False, 1),
        (None, [True, True], True, 2),
    ],
)
async def test_row_25_voting_stops_when_the_majority_is_certain(
    trials: int | None, votes: list[bool], verdict: bool, calls: int
):
    client = ScriptedClient({"c": votes})
    e = initialized_evaluator(client)
    assert await e.verify("c", e.add_leaf("l", "l"), num_trials=trials) is verdict
    assert len(client.calls) == calls


@pytest.mark.parametrize("keywords", [{"majority_vote": False}, {"majority_vote": None}, {"num_trials": 1}])
async def test_row_25_without_a_majority_one_call_decides(keywords: dict[str, Any]):
    client = ScriptedClient({"c": [False, True, True]})
    e = initialized_evaluator(client)
    assert not await e.verify("c", e.add_leaf("l", "l"), **keywords)
    assert len(client.calls) == 1
