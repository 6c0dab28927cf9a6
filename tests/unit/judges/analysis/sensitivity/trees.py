"""Result trees for tests of sensitivity: fixed ones and a hypothesis strategy."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from judges.analysis.overrides import JudgedNode, judged_tree
from rubrics.node import RubricNode
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, group, leaf, result_of, rubric_of

WEIGHTS = st.sampled_from([0.5, 1.0, 1.0, 2.0, 3.0])


def tree(*children: RubricNode, sequential: bool = False, **changes: Any) -> JudgedNode:
    """Return the tree of a result with these nodes below its root."""
    found = judged_tree(result_of(rubric_of(*children, sequential=sequential), **changes))
    assert found is not None
    return found


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a result of up to three levels with critical nodes, sequences, split votes and not judged leaves."""
    count = 0

    def node(depth: int, *, critical: bool) -> RubricNode:
        nonlocal count
        count += 1
        name, weight = f"n{count}", draw(WEIGHTS)
        if depth == 0 or draw(st.booleans()):
            outcome = draw(st.sampled_from([PASSED, PASSED, FAILED, NOT_JUDGED]))
            passed = outcome is PASSED
            votes = draw(st.sampled_from([(passed, passed), (passed, not passed, passed)]))
            return leaf(name, outcome, claim=f"claim {name}", critical=critical, weight=weight, votes=votes)
        below = draw(st.integers(1, 3))
        children = [node(depth - 1, critical=critical or draw(st.booleans())) for _ in range(below)]
        return group(name, *children, critical=critical, weight=weight, sequential=draw(st.booleans()))

    children = [node(2, critical=draw(st.booleans())) for _ in range(draw(st.integers(1, 4)))]
    return result_of(rubric_of(*children, sequential=draw(st.booleans())))
