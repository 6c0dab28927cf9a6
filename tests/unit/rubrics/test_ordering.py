from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rubrics.gating import decided_by_code, gating_leaf, prerequisites_of, wait_cycle
from rubrics.rubric import Rubric
from rubrics.scoring import score
from rubrics.tree import RubricNode, Strategy, leaves_below
from rubrics.verdict import Claim, Outcome, Reason, Verdict
from tests.unit.rubrics.random_rubrics import QUICK, unjudged_rubrics

OUTCOMES = st.sampled_from([Outcome.PASSED, Outcome.PASSED, Outcome.FAILED])


def settle_all(rubric: Rubric, outcomes: dict[str, Outcome], order: Random) -> None:
    """Settle the leaves as a runner does: checks first, then ready leaves, which finish in a random order."""
    open_leaves = []
    for leaf in rubric.leaves():
        leaf.verdict = None
        if not decided_by_code(leaf):
            open_leaves.append(leaf)
        elif leaf.check is not None:
            leaf.verdict = Verdict(outcome=Outcome.PASSED if leaf.check else Outcome.FAILED)
    asked: list[RubricNode] = []
    while open_leaves or asked:
        unsettled = {id(leaf) for leaf in (*open_leaves, *asked)}
        ready = [leaf for leaf in open_leaves if not any(id(each) in unsettled for each in awaited(rubric, leaf))]
        assert ready or asked, "every open leaf waits for another"
        if ready and (not asked or order.random() < 0.5):
            leaf = order.choice(ready)
            open_leaves.remove(leaf)
            blocker = gating_leaf(rubric, leaf)
            if blocker is None:
                asked.append(leaf)
            else:
                leaf.verdict = Verdict(outcome=Outcome.SKIPPED, reason=Reason.GATED, blocked_by=blocker.id)
        else:
            leaf = asked.pop(order.randrange(len(asked)))
            leaf.verdict = Verdict(outcome=outcomes[leaf.id])


def awaited(rubric: Rubric, leaf: RubricNode) -> list[RubricNode]:
    return [each for node in prerequisites_of(rubric, leaf) for each in leaves_below(node)]


@st.composite
def rubrics_with_outcomes(draw: st.DrawFn) -> tuple[Rubric, dict[str, Outcome]]:
    rubric = draw(unjudged_rubrics())
    return rubric, {leaf.id: draw(OUTCOMES) for leaf in rubric.leaves() if not decided_by_code(leaf)}


@QUICK
@given(rubrics_with_outcomes(), st.integers(), st.integers())
def test_verdicts_do_not_depend_on_the_order_of_completion(
    tree: tuple[Rubric, dict[str, Outcome]], first_seed: int, second_seed: int
) -> None:
    rubric, outcomes = tree
    settle_all(rubric, outcomes, Random(first_seed))
    first = [leaf.verdict for leaf in rubric.leaves()]
    settle_all(rubric, outcomes, Random(second_seed))
    assert [leaf.verdict for leaf in rubric.leaves()] == first


@QUICK
@given(rubrics_with_outcomes(), st.integers())
def test_gating_never_changes_the_score(tree: tuple[Rubric, dict[str, Outcome]], seed: int) -> None:
    rubric, outcomes = tree
    settle_all(rubric, outcomes, Random(seed))
    gated = score(rubric)
    for leaf in rubric.leaves():
        if leaf.id in outcomes:
            leaf.verdict = Verdict(outcome=outcomes[leaf.id])
    assert score(rubric) == gated


def leaf(node_id: str, *, critical: bool = False, requires: tuple[str, ...] = ()) -> RubricNode:
    return RubricNode(id=node_id, desc="", critical=critical, claim=Claim(text=node_id), requires=requires)


def test_leaves_that_require_each_other_form_a_cycle() -> None:
    rubric = Rubric("task", "")
    a = rubric.add(rubric.root, leaf("a"))
    rubric.add(rubric.root, leaf("b", requires=("a",)))
    rubric.add(rubric.root, leaf("c", requires=("b",)))
    a.requires = ("c",)
    cycle = wait_cycle(rubric)
    assert sorted(cycle) == ["a", "b", "c"]
    following = cycle[1:] + cycle[:1]
    assert all(
        prerequisites_of(rubric, rubric.find(one)) == [rubric.find(next_)]
        for one, next_ in zip(cycle, following, strict=True)
    )


def test_gate_that_requires_a_leaf_it_gates_forms_a_cycle() -> None:
    rubric = Rubric("task", "")
    rubric.add(rubric.root, leaf("plain"))
    rubric.add(rubric.root, leaf("gate", critical=True, requires=("plain",)))
    assert sorted(wait_cycle(rubric)) == ["gate", "plain"]


def test_earlier_step_that_requires_a_later_one_forms_a_cycle() -> None:
    rubric = Rubric("task", "", Strategy.SEQUENTIAL)
    group = rubric.add(rubric.root, RubricNode(id="group", desc=""))
    first = rubric.add(group, leaf("first"))
    rubric.add(rubric.root, leaf("second"))
    first.requires = ("second",)
    assert sorted(wait_cycle(rubric)) == ["first", "group", "second"]


def test_check_waits_for_nothing_and_forms_no_cycle() -> None:
    rubric = Rubric("task", "")
    check = rubric.add(rubric.root, RubricNode(id="check", desc="", check=True))
    rubric.add(rubric.root, leaf("a", requires=("check",)))
    check.requires = ("a",)
    assert wait_cycle(rubric) == ()


def test_required_leaf_that_did_not_pass_blocks() -> None:
    rubric = Rubric("task", "")
    needed = rubric.add(rubric.root, leaf("needed"))
    group = rubric.add(rubric.root, RubricNode(id="group", desc="", requires=("needed",)))
    asked = rubric.add(group, leaf("asked"))
    assert gating_leaf(rubric, asked) is None
    needed.verdict = Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.TIMEOUT)
    assert gating_leaf(rubric, asked) is needed
