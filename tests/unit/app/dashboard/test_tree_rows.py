"""Rows of a result's tree in one response."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.dashboard.result_cache import Tree, tree_of
from app.dashboard.results import SECTION, Row, TreeRows, Unloaded
from tests.fakes.judged import FAILED, NOT_JUDGED, SKIPPED, leaf, many_leaves, result_of, rubric_of

LARGE = tree_of(result_of(rubric_of(*many_leaves(100, 100))))


def rows_below(row: Row) -> Iterator[Row | Unloaded]:
    yield row
    for child in row.below:
        if isinstance(child, Row):
            yield from rows_below(child)
        else:
            yield child


def loaded(row: Row) -> list[str]:
    return [each.node.key for each in rows_below(row) if isinstance(each, Row)]


def flat(leaves: int) -> Tree:
    return tree_of(result_of(rubric_of(*(leaf(f"n{nth}") for nth in range(leaves)))))


@pytest.mark.parametrize("gate", [NOT_JUDGED, FAILED])
def test_node_that_unjudged_leaves_could_still_raise_is_not_failed(gate):
    tree = tree_of(result_of(rubric_of(leaf("gate", gate, critical=True), leaf("b", SKIPPED, blocked_by="gate"))))
    assert tree.state(tree.outline.root) == ("open" if gate is NOT_JUDGED else "failed")


def test_large_tree_has_only_the_group_of_the_chosen_leaf():
    root = TreeRows(LARGE, chosen="part42/leaf4250").root()
    keys = loaded(root)
    assert len(keys) == 1 + 100 + 100 and "part42/leaf4250" in keys
    unloaded = [each for each in rows_below(root) if isinstance(each, Unloaded)]
    assert {each.group for each in unloaded} == {f"part{nth}" for nth in range(100)} - {"part42"}
    assert {each.count for each in unloaded} == {100}


@pytest.mark.parametrize(("chosen", "first", "last"), [(0, 0, 99), (150, 100, 199), (999, 900, 999)])
def test_long_group_is_loaded_around_the_chosen_leaf(chosen: int, first: int, last: int):
    root = TreeRows(flat(1_000), chosen=f"n{chosen}").root()
    keys = loaded(root)[1:]
    assert (keys[0], keys[-1], len(keys)) == (f"n{first}", f"n{last}", SECTION)


def test_sections_cover_a_group_in_both_directions():
    tree = flat(350)
    root = TreeRows(tree, chosen="n120").root()
    earlier, *_, later = root.below
    assert isinstance(earlier, Unloaded) and isinstance(later, Unloaded)
    assert (earlier.at, earlier.count, earlier.earlier, later.at, later.count) == (0, 100, True, 200, 150)
    before = TreeRows(tree).section("root", earlier.at, earlier=True)
    after = TreeRows(tree).section("root", later.at)
    assert [row.node.key for row in before if isinstance(row, Row)] == [f"n{nth}" for nth in range(100)]
    assert [type(row) for row in before] == [Row] * 100
    assert isinstance(after[-1], Unloaded) and (after[-1].at, after[-1].count) == (300, 50)
