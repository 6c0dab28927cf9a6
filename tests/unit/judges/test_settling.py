from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.errors import JudgeBug
from judges.settling import Settler
from rubrics.gating import wait_cycle
from rubrics.rubric import Rubric
from rubrics.scoring import Score, score, score_unclipped
from rubrics.tree import RubricNode, Strategy
from rubrics.tree_json import tree_json
from rubrics.verdict import Claim, Outcome, Reason, Verdict
from tests.unit.rubrics.random_rubrics import QUICK, unjudged_rubrics

OK, NO = Verdict(outcome=Outcome.PASSED), Verdict(outcome=Outcome.FAILED, reason=Reason.REFUTED)
UNKNOWN = Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.LLM_UNAVAILABLE)


class Judge:
    """Verdicts by the first letter of the claim: n fails, u is not judged, all others pass."""

    def __init__(self, pause: Callable[[str], Awaitable[object]] | None = None) -> None:
        self._pause = pause
        self.asked: list[str] = []
        self.finished: list[str] = []

    async def __call__(self, claim: Claim) -> Verdict:
        self.asked.append(claim.text)
        await (asyncio.sleep(0) if self._pause is None else self._pause(claim.text))
        self.finished.append(claim.text)
        return {"n": NO, "u": UNKNOWN}.get(claim.text[0], OK)


class Tree:
    """Rubric builder."""

    def __init__(self, strategy: Strategy = Strategy.PARALLEL) -> None:
        self.rubric = Rubric("t", "root", strategy)

    def group(self, id: str, strategy: Strategy = Strategy.PARALLEL, *, into: str = "root", critical: bool = False):
        node = RubricNode(id=id, desc=id, strategy=strategy, critical=critical)
        return self.rubric.add(self.rubric.find(into), node)

    def claim(self, text: str, *, into: str = "root", critical: bool = False, requires: tuple[str, ...] = ()):
        node = RubricNode(id=text, desc=text, claim=Claim(text=text), critical=critical, requires=requires)
        return self.rubric.add(self.rubric.find(into), node)

    def check(self, id: str, value: bool, *, into: str = "root", critical: bool = False):
        return self.rubric.add(self.rubric.find(into), RubricNode(id=id, desc=id, check=value, critical=critical))

    def outcomes(self) -> dict[str, str]:
        return {leaf.id: leaf.verdict.outcome.value for leaf in self.rubric.leaves() if leaf.verdict is not None}


async def settled(tree: Tree, judge: Judge) -> bool:
    return await Settler(tree.rubric, judge).settle(tree.rubric.root)


async def test_failed_critical_check_skips_its_siblings_without_a_request():
    tree, judge = Tree(), Judge()
    tree.claim("a")
    tree.check("gate", False, critical=True)
    assert not await settled(tree, judge)
    assert tree.outcomes() == {"a": "skipped", "gate": "failed"}
    assert judge.asked == []
    blocked = tree.rubric.find("a").verdict
    assert blocked is not None and blocked.blocked_by == "gate"


async def test_steps_of_a_sequence_are_settled_in_order():
    tree, judge = Tree(Strategy.SEQUENTIAL), Judge()
    for text in ("a", "b", "n", "d"):
        tree.claim(text)
    await settled(tree, judge)
    assert judge.asked == judge.finished == ["a", "b", "n"]
    assert tree.outcomes()["d"] == "skipped"


async def test_gate_is_final_before_the_leaves_it_gates():
    tree, judge = Tree(), Judge()
    tree.claim("a")
    tree.claim("n gate", critical=True)
    tree.claim("b")
    await settled(tree, judge)
    assert judge.asked == ["n gate"]
    assert tree.outcomes() == {"a": "skipped", "n gate": "failed", "b": "skipped"}


async def test_unblocked_leaves_of_different_groups_are_settled_concurrently():
    together = asyncio.Barrier(4)
    tree, judge = Tree(), Judge(lambda text: together.wait())
    for group in "xy":
        tree.group(group)
        for text in "ab":
            tree.claim(f"{text}{group}", into=group)
    async with asyncio.timeout(240):
        assert await settled(tree, judge)


async def test_failed_prerequisite_skips_the_leaf():
    tree, judge = Tree(), Judge()
    tree.group("g")
    tree.claim("n first", into="g")
    tree.claim("a", requires=("g",))
    await settled(tree, judge)
    assert judge.asked == ["n first"]
    assert tree.outcomes()["a"] == "skipped"


async def test_settling_one_node_settles_only_it_and_its_prerequisites():
    tree, judge = Tree(Strategy.SEQUENTIAL), Judge()
    for text in ("a", "b", "c"):
        tree.claim(text)
    settler = Settler(tree.rubric, judge)
    assert await settler.settle(tree.rubric.find("b"))
    assert judge.asked == ["a", "b"]
    await settler.settle(tree.rubric.root)
    assert judge.asked == ["a", "b", "c"]


async def test_concurrent_settling_judges_each_leaf_once():
    tree, judge = Tree(), Judge()
    tree.claim("a")
    settler = Settler(tree.rubric, judge)
    assert await asyncio.gather(*(settler.settle(tree.rubric.root) for _ in range(3))) == [True] * 3
    assert judge.asked == ["a"]


async def test_existing_verdict_is_not_replaced():
    tree, judge = Tree(), Judge()
    tree.claim("a").verdict = UNKNOWN
    tree.check("c", True).verdict = UNKNOWN
    await settled(tree, judge)
    assert tree.outcomes() == {"a": "not_judged", "c": "not_judged"}
    assert judge.asked == []


async def test_cyclic_dependency_raises_judge_bug():
    tree = Tree()
    tree.claim("b")
    tree.claim("gate", critical=True, requires=("b",))
    async with asyncio.timeout(240):
        with pytest.raises(JudgeBug, match="cyclic dependency"):
            await settled(tree, Judge())


async def test_claims_of_a_large_rubric_start_in_several_iterations_of_the_event_loop():
    tree, iteration = Tree(), 0
    for number in range(100):
        tree.claim(f"c{number}")
    starts: list[int] = []

    async def count_iterations() -> None:
        nonlocal iteration
        while True:
            iteration += 1
            await asyncio.sleep(0)

    async def started(text: str) -> None:
        starts.append(iteration)
        await asyncio.sleep(0)

    counting = asyncio.create_task(count_iterations())
    await settled(tree, Judge(started))
    counting.cancel()
    assert max(starts.count(each) for each in starts) == 10
    assert starts[0] > 100 // 50  # what each claim waits for is found for 50 claims at a time
    assert set(tree.outcomes().values()) == {"passed"}


def random_tree(seed: int) -> Tree:
    """Return a random tree with gates, sequences, checks, and claims that fail or are not judged."""
    draw = random.Random(seed)
    tree = Tree(draw.choice(list(Strategy)))
    groups = ["root"]
    for number in range(draw.randint(6, 24)):
        into = draw.choice(groups)
        must = tree.rubric.find(into).critical
        critical = must or draw.random() < 0.3
        kind = draw.random()
        if kind < 0.25:
            groups.append(tree.group(f"g{number}", draw.choice(list(Strategy)), into=into, critical=critical).id)
        elif kind < 0.4:
            tree.check(f"check{number}", draw.random() < 0.8, into=into, critical=critical)
        else:
            tree.claim(f"{draw.choice('aaaanu')}{number}", into=into, critical=critical)
    return tree


@pytest.mark.parametrize("seed", range(8))
async def test_tree_is_independent_of_the_order_of_completion(seed: int):
    trees = []
    for order in range(4):
        draw = random.Random(order)

        async def pause(text: str, draw: random.Random = draw) -> None:
            for _ in range(draw.randint(0, 6)):
                await asyncio.sleep(0)

        tree, judge = random_tree(seed), Judge(pause)
        await settled(tree, judge)
        assert all(leaf.verdict is not None for leaf in tree.rubric.leaves() if leaf.claim is not None)
        trees.append((tree_json(tree.rubric), sorted(judge.asked)))
    assert all(each == trees[0] for each in trees)


@st.composite
def rubrics_with_requirements(draw: st.DrawFn) -> tuple[Rubric, dict[str, bool], frozenset[str]]:
    """Draw a rubric of claims, the truth of each claim, and the claims that a fault leaves without a verdict."""
    rubric = draw(unjudged_rubrics(min_nodes=3, max_nodes=8, weights=st.sampled_from([1.0, 2.0])))
    leaves = [leaf for leaf in rubric.leaves() if leaf is not rubric.root]
    for leaf in leaves:
        leaf.claim, leaf.check = Claim(text=leaf.id), None
    gateable = [node for node in rubric.walk() if all(each.weight > 0 for each in rubric.path_to(node))]
    for node in gateable[1:]:
        others = [
            leaf.id
            for leaf in leaves
            if leaf in gateable and leaf not in rubric.path_to(node) and node not in rubric.path_to(leaf)
        ]
        if others:
            node.requires = tuple(draw(st.lists(st.sampled_from(others), max_size=3, unique=True)))
            if wait_cycle(rubric):
                node.requires = ()
    truth = {leaf.id: draw(st.booleans()) for leaf in leaves}
    lost = draw(st.lists(st.sampled_from(sorted(truth)), min_size=1, max_size=3)) if truth else []
    return rubric, truth, frozenset(lost)


@QUICK
@given(rubrics_with_requirements())
def test_bounds_equal_those_of_every_assignment_of_the_claims_without_a_verdict(drawn) -> None:
    rubric, truth, lost = drawn

    def settled_scores(assigned: Mapping[str, bool], lost: Collection[str] = ()) -> list[Score]:
        async def judging(claim: Claim) -> Verdict:
            return UNKNOWN if claim.text in lost else OK if assigned[claim.text] else NO

        for leaf in rubric.leaves():
            leaf.verdict = None
        asyncio.run(Settler(rubric, judging).settle(rubric.root))
        return [score(rubric), score_unclipped(rubric) or score(rubric)]

    found = settled_scores(truth, lost)
    # The truth of a skipped claim matters if the claim before it would have passed.
    judged = (Outcome.PASSED, Outcome.FAILED)
    free = [leaf.id for leaf in rubric.leaves() if leaf.id in truth and leaf.verdict.outcome not in judged]
    possible = [
        [one.low for one in settled_scores({**truth, **dict(zip(free, bits, strict=True))})]
        for bits in product((False, True), repeat=len(free))
    ]
    for bounded, reached in zip(found, zip(*possible, strict=True), strict=True):
        assert (bounded.low, bounded.high) == (min(reached), max(reached))


@pytest.mark.parametrize("required", [("u", "n"), ("n", "u"), ("ux", "u", "n")])
async def test_leaf_behind_a_failed_and_an_unknown_one_is_skipped_for_certain(required: tuple[str, ...]):
    tree = Tree()
    for text in sorted(required):
        tree.claim(text)
    tree.claim("c", requires=required)
    await settled(tree, Judge())
    assert score(tree.rubric).high == pytest.approx((len(required) - 1) / (len(required) + 1))
    verdict = tree.rubric.find("c").verdict
    assert verdict is not None and verdict.blocked_by == "n"
