from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import inf, nan, nextafter
from random import Random
from statistics import fmean

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rubrics.rubric import InvalidNode, Rubric
from rubrics.scoring import (
    NodeScore,
    Score,
    bounds,
    compatible_score,
    is_success,
    penalty_leaves,
    reaches,
    score,
    score_nodes,
    score_strict,
    score_unclipped,
    score_with,
    tree_score,
    unclipped_score,
    unknown_leaves,
)
from rubrics.tree import RubricNode, Status, Strategy, find_path
from rubrics.verdict import Outcome, Reason, Verdict
from tests.unit.rubrics.random_rubrics import QUICK, UNIT, judged_rubrics, unjudged_rubrics


def flat(*weighted: tuple[float, float], critical: tuple[int, ...] = ()) -> tuple[RubricNode, dict[str, float]]:
    """Return a parallel parent of (weight, score) leaves. ``critical`` lists the positions of its gates."""
    rubric = Rubric("task", "the task")
    scores = {}
    for number, (weight, points) in enumerate(weighted):
        rubric.add(rubric.root, RubricNode(id=f"n{number}", desc="", weight=weight, critical=number in critical))
        scores[f"n{number}"] = points
    return rubric.root, scores


def score_of(root: RubricNode, scores: Mapping[str, float]) -> float:
    return tree_score(root, lambda leaf: scores[leaf.id])


def unclipped_of(root: RubricNode, scores: Mapping[str, float]) -> float:
    return unclipped_score(root, lambda leaf: scores[leaf.id])


@st.composite
def scored_trees(draw: st.DrawFn, *, penalties: bool = True) -> tuple[Rubric, dict[str, float]]:
    rubric = draw(unjudged_rubrics(penalties=penalties))
    return rubric, {leaf.id: draw(st.one_of(st.sampled_from([0.0, 1.0]), UNIT)) for leaf in rubric.leaves()}


@QUICK
@given(scored_trees(), st.data())
def test_score_with_another_leaf_is_that_of_the_whole_tree(
    tree: tuple[Rubric, dict[str, float]], data: st.DataObject
) -> None:
    rubric, scores = tree
    changed, points = data.draw(st.sampled_from(list(rubric.leaves()))), data.draw(st.sampled_from([0.0, 0.5, 1.0]))

    def leaf(node: RubricNode) -> NodeScore:
        return NodeScore(scores[node.id], Status.INITIALIZED)

    path = find_path(rubric.root, changed)
    assert score_with(path, points, score_nodes(rubric.root, leaf), leaf) == score_of(
        rubric.root, {**scores, changed.id: points}
    )


@QUICK
@given(scored_trees(), st.data())
def test_raising_a_leaf_never_lowers_the_score_unless_it_is_of_a_penalty(
    tree: tuple[Rubric, dict[str, float]], data: st.DataObject
) -> None:
    rubric, scores = tree
    leaf = data.draw(st.sampled_from(list(rubric.leaves())))
    raised = {**scores, leaf.id: data.draw(st.floats(min_value=scores[leaf.id], max_value=1.0))}
    higher, lower = (scores, raised) if id(leaf) in penalty_leaves(rubric.root) else (raised, scores)
    for scored in (tree_score, unclipped_score):
        assert scored(rubric.root, lambda one: higher[one.id]) >= scored(rubric.root, lambda one: lower[one.id])


@QUICK
@given(st.lists(UNIT, min_size=1, max_size=20))
def test_equal_weights_give_the_plain_mean(points: list[float]) -> None:
    assume(sum(points) / len(points) < 1.0)
    assert score_of(*flat(*((1.0, point) for point in points))) == sum(points) / len(points)


@QUICK
@given(scored_trees(penalties=False))
def test_score_is_one_exactly_if_all_leaves_passed(tree: tuple[Rubric, dict[str, float]]) -> None:
    rubric, scores = tree
    all_passed = all(points == 1.0 for points in scores.values())
    assert (score_of(rubric.root, scores) == 1.0) is all_passed


@QUICK
@given(judged_rubrics())
def test_low_value_and_high_are_in_order(rubric: Rubric) -> None:
    for found in (score(rubric), score_strict(rubric)):
        assert 0.0 <= found.low <= found.high <= 1.0
        assert found.value == (found.low if found.low == found.high else None)


@QUICK
@given(judged_rubrics())
def test_strict_score_never_exceeds_the_score(rubric: Rubric) -> None:
    plain, strict = score(rubric), score_strict(rubric)
    assert strict.low <= plain.low
    assert strict.high <= plain.high


@QUICK
@given(judged_rubrics(max_nodes=9))
def test_bounds_match_every_assignment_of_the_unknown_leaves(rubric: Rubric) -> None:
    leaves = list(rubric.leaves())
    unknown = sorted(unknown_leaves({leaf.id: leaf.verdict for leaf in leaves}))
    known = {leaf.id: compatible_score(leaf.verdict).score for leaf in leaves}
    possible = [
        score_of(rubric.root, {**known, **dict(zip(unknown, bits, strict=True))})
        for bits in product((0.0, 1.0), repeat=len(unknown))
    ]
    found = score(rubric)
    assert (found.low, found.high) == (min(possible), max(possible))
    assert found.value == (possible[0] if len(set(possible)) == 1 else None)


def reference(node: RubricNode, points: Mapping[str, Fraction]) -> Fraction:
    """Return the unclipped score of a node, computed from the rules with exact numbers."""
    if not node.children:
        return points[node.id]
    scores = [
        points[child.id] if not child.children else max(Fraction(0), reference(child, points))
        for child in node.children
    ]
    if node.strategy is Strategy.SEQUENTIAL:
        first_miss = next((place for place, one in enumerate(scores) if one < 1), len(scores))
        scores = [one if place <= first_miss else Fraction(0) for place, one in enumerate(scores)]
    pairs = list(zip(node.children, scores, strict=True))
    credit = all(one == 1 for child, one in pairs if child.critical)
    gains = [(Fraction(child.weight), one) for child, one in pairs if not child.critical and child.weight > 0]
    losses = [(Fraction(-child.weight), one) for child, one in pairs if not child.critical and child.weight < 0]
    total = sum(weight for weight, _ in gains) or sum(weight for weight, _ in losses) or Fraction(1)
    has_gate = any(child.critical for child in node.children)
    gained = sum((weight * one for weight, one in gains), Fraction(0)) / total if gains else Fraction(has_gate)
    return gained * credit - sum((weight * one for weight, one in losses), Fraction(0)) / total


def test_scores_of_random_trees_are_those_of_independent_exact_arithmetic() -> None:
    drawn = Random(52)
    for _ in range(2_000):
        rubric = Rubric("task", "", drawn.choice(list(Strategy)))
        groups = [rubric.root]
        for number in range(drawn.randint(1, 12)):
            parent = drawn.choice(groups)
            penalty = any(each.weight < 0 for each in rubric.path_to(parent))
            node = RubricNode(
                id=f"n{number}", desc="", weight=drawn.randint(1, 9), strategy=drawn.choice(list(Strategy))
            )
            node.critical = parent.critical or (not penalty and drawn.random() < 0.2)
            if not (penalty or node.critical or parent.strategy is Strategy.SEQUENTIAL) and drawn.random() < 0.3:
                node.weight = -node.weight
            rubric.add(parent, node)
            if drawn.random() < 0.5:
                groups.append(node)
        points = {leaf.id: Fraction(drawn.choice([0, 0, 1, 1, 1])) for leaf in rubric.leaves()}
        exact = reference(rubric.root, points)
        scores = {leaf_id: float(one) for leaf_id, one in points.items()}
        assert unclipped_of(rubric.root, scores) == pytest.approx(float(exact), abs=1e-12)
        assert score_of(rubric.root, scores) == pytest.approx(max(float(exact), 0.0), abs=1e-12)


@QUICK
@given(scored_trees(), st.data())
def test_bounds_contain_the_score_if_leaves_are_intervals(
    tree: tuple[Rubric, dict[str, float]], data: st.DataObject
) -> None:
    rubric, lows = tree
    highs = {leaf_id: data.draw(st.floats(min_value=low, max_value=1.0)) for leaf_id, low in lows.items()}
    between = {leaf_id: data.draw(st.floats(min_value=lows[leaf_id], max_value=highs[leaf_id])) for leaf_id in lows}
    found = bounds(rubric.root, lambda leaf: (lows[leaf.id], highs[leaf.id]))
    assert found.low <= score_of(rubric.root, between) <= found.high


@given(st.lists(st.integers(min_value=0, max_value=100), min_size=1, max_size=50))
def test_mean_of_decimal_scores_reaches_itself_and_nothing_more(hundredths: list[int]) -> None:
    mean = Fraction(sum(hundredths), 100 * len(hundredths))
    figure = fmean(each / 100 for each in hundredths)
    assert reaches(figure, float(mean))
    assert reaches(float(mean), figure)
    assert not reaches(figure, float(mean + Fraction(1, 10**8)))


@pytest.mark.parametrize(("points", "expected"), [(1.0, True), (1 - 1e-7, True), (1 - 1e-5, False), (0.0, False)])
def test_success_has_one_tolerance(points: float, expected: bool) -> None:
    assert is_success(points) is expected


@pytest.mark.parametrize(
    ("weighted", "critical", "clipped", "unclipped"),
    [
        ([(7, 1), (3, 0), (-5, 1)], (), 0.2, 0.2),
        ([(7, 0), (3, 0), (-5, 1)], (), 0.0, -0.5),
        ([(7, 0), (3, 0), (-5, 0)], (), 0.0, 0.0),
        ([(7, 1), (3, 1), (-5, 0)], (), 1.0, 1.0),
        ([(7, 1), (3, 1), (-1e-20, 1)], (), nextafter(1.0, 0.0), nextafter(1.0, 0.0)),
        ([(1, 0), (10, 1), (-5, 1)], (0,), 0.0, -0.5),
        ([(1, 1), (10, 1), (-5, 1)], (0,), 0.5, 0.5),
        ([(1, 1), (-5, 1), (-3, 0)], (0,), 0.375, 0.375),
        ([(1, 1), (-5, 0)], (0,), 1.0, 1.0),
        ([(-5, 1), (-3, 0)], (), 0.0, -0.625),
        ([(-5, 0), (-3, 0)], (), 0.0, 0.0),
        ([(1, 0), (-5, 0)], (0,), 0.0, 0.0),
        ([(1.5e308, 1), (-1.5e308, 0.5)], (), 0.5, 0.5),
        ([(1e-300, 1), (-1e300, 1)], (), 0.0, -1e9),
    ],
)
def test_penalties_are_subtracted_and_the_score_is_clipped(
    weighted: list[tuple[float, float]], critical: tuple[int, ...], clipped: float, unclipped: float
) -> None:
    root, scores = flat(*weighted)
    for place in critical:
        root.children[place].critical = True
    assert score_of(root, scores) == clipped
    assert unclipped_of(root, scores) == unclipped


def test_group_with_a_negative_weight_subtracts_its_share() -> None:
    rubric = Rubric("task", "the task")
    rubric.add(rubric.root, RubricNode(id="facts", desc="", weight=4))
    mistakes = rubric.add(rubric.root, RubricNode(id="mistakes", desc="", weight=-2))
    for name in ("first", "second"):
        rubric.add(mistakes, RubricNode(id=name, desc=""))
    assert score_of(rubric.root, {"facts": 1.0, "first": 1.0, "second": 0.0}) == 0.75


def test_penalized_leaf_counts_minus_one() -> None:
    rubric = two_leaves(PASSED, Verdict(outcome=Outcome.FAILED, reason=Reason.SOURCE_FORBIDDEN, penalized=True))
    rubric.find("b").weight = 3.0
    assert score(rubric) == Score(value=0.0, low=0.0, high=0.0)
    assert score_unclipped(rubric) == Score(value=-0.5, low=-0.5, high=-0.5)
    assert score_unclipped(two_leaves(PASSED, FAILED)) is None


def test_weights_shift_the_mean() -> None:
    assert score_of(*flat((3.0, 1.0), (1.0, 0.0))) == 0.75


def test_critical_child_below_one_zeroes_its_parent() -> None:
    assert score_of(*flat((1.0, 0.999), (1.0, 1.0), critical=(0,))) == 0.0


def test_only_critical_children_give_one_or_zero() -> None:
    assert score_of(*flat((1.0, 1.0), (9.0, 1.0), critical=(0, 1))) == 1.0


def test_failed_leaf_with_a_tiny_weight_keeps_the_score_below_one() -> None:
    root, scores = flat((1.0, 1.0), (1e-20, 0.0))
    assert score_of(root, scores) == nextafter(1.0, 0.0)
    settled = score_nodes(
        root, lambda leaf: NodeScore(scores[leaf.id], Status.PASSED if scores[leaf.id] else Status.FAILED)
    )
    assert settled[id(root)].status is Status.PARTIAL


def test_huge_weights_do_not_overflow() -> None:
    assert score_of(*flat((1.5e308, 1.0), (1.5e308, 0.0))) == 0.5


@pytest.mark.parametrize("weight", [0.0, nan, inf, -inf])
def test_invalid_weight_is_reported_with_its_node(weight: float) -> None:
    root, scores = flat((1.0, 1.0), (1.0, 0.0))
    root.children[1].weight = weight
    with pytest.raises(InvalidNode, match="'n1'"):
        score_of(root, scores)


def test_root_alone_is_a_leaf() -> None:
    root = Rubric("task", "the task").root
    assert score_nodes(root, lambda leaf: NodeScore(0.0, Status.INITIALIZED)) == {id(root): (0.0, Status.INITIALIZED)}


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.PASSED, (1.0, Status.PASSED)),
        (Outcome.FAILED, (0.0, Status.FAILED)),
        (Outcome.SKIPPED, (0.0, Status.SKIPPED)),
        (Outcome.NOT_JUDGED, (0.0, Status.FAILED)),
        (Outcome.UNDECIDED, (0.0, Status.INITIALIZED)),
    ],
)
def test_each_outcome_has_its_compatible_score_and_status(outcome: Outcome, expected: tuple[float, Status]) -> None:
    assert compatible_score(Verdict(outcome=outcome)) == expected


def test_leaf_without_a_verdict_is_undecided() -> None:
    assert compatible_score(None) == compatible_score(Verdict(outcome=Outcome.UNDECIDED))


def skipped(by: str | None) -> Verdict:
    return Verdict(outcome=Outcome.SKIPPED, reason=Reason.GATED, blocked_by=by)


NOT_JUDGED = Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.TIMEOUT)
PASSED = Verdict(outcome=Outcome.PASSED)
FAILED = Verdict(outcome=Outcome.FAILED, reason=Reason.REFUTED)


def test_leaf_skipped_because_of_an_unknown_one_is_unknown_through_any_chain() -> None:
    verdicts = {"a": NOT_JUDGED, "b": skipped("a"), "c": skipped("b"), "d": PASSED}
    assert unknown_leaves(verdicts) == {"a", "b", "c"}


def test_leaf_skipped_because_of_a_failed_one_is_known() -> None:
    assert unknown_leaves({"a": FAILED, "b": skipped("a"), "c": skipped("b")}) == frozenset()


@pytest.mark.parametrize("by", [None, "nowhere", "a", "b"])
def test_leaf_whose_blocker_chain_does_not_end_is_known(by: str | None) -> None:
    assert unknown_leaves({"a": skipped(by), "b": skipped("a"), "c": None}) == frozenset()


def two_leaves(first: Verdict, second: Verdict, *, strategy: Strategy = Strategy.PARALLEL) -> Rubric:
    rubric = Rubric("task", "the task", strategy)
    rubric.add(rubric.root, RubricNode(id="a", desc="", verdict=first))
    rubric.add(rubric.root, RubricNode(id="b", desc="", verdict=second))
    return rubric


def test_unknown_leaf_opens_the_score() -> None:
    assert score(two_leaves(PASSED, NOT_JUDGED)) == Score(value=None, low=0.5, high=1.0)


def test_step_skipped_because_of_an_unknown_one_may_still_pass() -> None:
    chain = two_leaves(NOT_JUDGED, skipped("a"), strategy=Strategy.SEQUENTIAL)
    assert score(chain) == Score(value=None, low=0.0, high=1.0)


def test_unknown_leaf_that_cannot_change_the_score_keeps_its_value() -> None:
    chain = two_leaves(FAILED, NOT_JUDGED, strategy=Strategy.SEQUENTIAL)
    assert score(chain) == Score(value=0.0, low=0.0, high=0.0)


@pytest.mark.parametrize(("grounded", "expected"), [(True, 1.0), (None, 1.0), (False, 0.5)])
def test_strict_score_excludes_a_passed_leaf_without_a_quote(grounded: bool | None, expected: float) -> None:
    rubric = two_leaves(PASSED, Verdict(outcome=Outcome.PASSED, grounded=grounded))
    assert score_strict(rubric).value == expected
    assert score(rubric).value == 1.0
