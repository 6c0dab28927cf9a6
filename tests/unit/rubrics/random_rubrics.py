"""Random rubrics for property tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from rubrics.rubric import Rubric
from rubrics.tree import RubricNode, Strategy
from rubrics.verdict import Claim, Outcome, Quote, Reason, Usage, Verdict, Vote

# No deadline and no health check of the drawing speed, because they depend on the load of the machine.
QUICK = settings(
    max_examples=settings().max_examples * 2 // 5, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
"""Settings with fewer examples than the profile, because trees take longer to draw."""

WEIGHTS = st.one_of(st.just(1.0), st.floats(min_value=0.01, max_value=100.0))
UNIT = st.floats(min_value=0.0, max_value=1.0)


@st.composite
def unjudged_rubrics(
    draw: st.DrawFn,
    *,
    min_nodes: int = 0,
    max_nodes: int = 10,
    weights: st.SearchStrategy[float] = WEIGHTS,
    penalties: bool = True,
) -> Rubric:
    """Draw a rubric without verdicts. Its leaves have claims or checks. ``penalties``: some weights are negative."""
    rubric = Rubric("task", "the task", draw(st.sampled_from(Strategy)))
    open_nodes = [rubric.root]
    inside_penalty: set[str] = set()
    for number in range(draw(st.integers(min_value=min_nodes, max_value=max_nodes))):
        parent = draw(st.sampled_from(open_nodes))
        node = RubricNode(
            id=f"n{number}",
            desc=draw(st.text(max_size=8)),
            critical=parent.critical or draw(st.booleans()),
            weight=draw(weights),
            strategy=draw(st.sampled_from(Strategy)),
        )
        is_inside = parent.id in inside_penalty
        may_subtract = penalties and not (is_inside or parent.critical or parent.strategy is Strategy.SEQUENTIAL)
        if is_inside or (may_subtract and draw(st.integers(0, 3)) == 0):
            inside_penalty.add(node.id)
            node.critical, node.weight = False, node.weight if is_inside else -node.weight
        kind = draw(st.sampled_from(["group", "claim", "claim", "check"]))
        if kind == "claim":
            sources = draw(st.one_of(st.none(), st.lists(st.text(max_size=4), max_size=2).map(tuple)))
            node.claim = Claim(text=draw(st.text(max_size=8)), sources=sources)
        elif kind == "check":
            node.check = draw(st.booleans())
        else:
            open_nodes.append(node)
        rubric.add(parent, node)
    return rubric


VOTES = st.builds(
    Vote,
    result=st.one_of(st.none(), st.booleans()),
    model=st.text(max_size=5),
    cached=st.booleans(),
    fault=st.one_of(st.none(), st.sampled_from(Reason)),
)
QUOTES = st.builds(Quote, text=st.text(max_size=5), page_id=st.text(max_size=5), start=st.integers(), end=st.integers())
USAGES = st.builds(
    Usage,
    calls=st.integers(min_value=0),
    cached_calls=st.integers(min_value=0),
    input_tokens=st.integers(min_value=0),
    output_tokens=st.integers(min_value=0),
    usd=st.one_of(st.none(), UNIT),
)
VERDICTS = st.builds(
    Verdict,
    outcome=st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.UNDECIDED]),
    reason=st.one_of(st.none(), st.sampled_from(Reason)),
    reasoning=st.text(max_size=8),
    votes=st.lists(VOTES, max_size=3).map(tuple),
    quotes=st.lists(QUOTES, max_size=2).map(tuple),
    evidence=st.lists(st.text(max_size=4), max_size=2).map(tuple),
    prompt=st.one_of(st.none(), st.text(max_size=4)),
    model=st.one_of(st.none(), st.text(max_size=4)),
    usage=USAGES,
    blocked_by=st.one_of(st.none(), st.sampled_from([f"n{number}" for number in range(6)])),
    grounded=st.one_of(st.none(), st.booleans()),
)


@st.composite
def judged_rubrics(draw: st.DrawFn, *, max_nodes: int = 10, penalties: bool = True) -> Rubric:
    """Draw a rubric whose leaves have verdicts, except for some that have none."""
    rubric = draw(unjudged_rubrics(max_nodes=max_nodes, penalties=penalties))
    for leaf in rubric.leaves():
        leaf.verdict = draw(st.one_of(st.none(), VERDICTS))
    return rubric
