"""Response models of comparisons and of the sensitivity analysis."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from app.api.figures import OpenModel, ScoreOut
from judges.analysis.flips import Flip
from judges.analysis.sensitivity.consistency import VoteStatistics
from judges.analysis.statistics.interval import Interval


class SideOut(BaseModel):
    """One side of a comparison: an agent, a run or a result."""

    name: str
    tasks: int
    answers: int
    not_judged: int
    judges: dict[str, int] = Field(description="Number of answers by judge model")


class SignFlipOut(BaseModel):
    """Sign-flip test of the task differences."""

    p: float
    p_holm: float = Field(description="Corrected for the number of comparisons")
    exact: bool
    patterns: int
    tasks_that_differ: int
    smallest_p: float
    method: str


class FigureComparisonOut(BaseModel):
    """One figure on both sides. The difference is b - a."""

    a: ScoreOut | None
    b: ScoreOut | None
    tasks: int
    certain: int = Field(description="Tasks without answers that could change the difference")
    difference: float | None
    low: float | None
    high: float | None
    student_t: Interval | None
    bootstrap: Interval | None
    whatever_is_open: Interval | None
    sign_flip: SignFlipOut | None
    smallest_detectable_difference: float | None
    verdict: Literal["b_higher", "b_lower", "not_told_apart", "too_few_tasks", "nothing_to_compare"]
    warnings: list[str]


class TaskComparisonOut(BaseModel):
    """One task on both sides, with the leaves that flipped."""

    task_id: str
    a: ScoreOut
    b: ScoreOut
    difference: ScoreOut
    flipped: int
    flips: list[Flip]


class SideComparisonOut(OpenModel):
    """Comparison of one side with ``a``."""

    b: SideOut
    score: FigureComparisonOut
    success: FigureComparisonOut
    tasks: list[TaskComparisonOut]
    only_a: list[str]
    only_b: list[str]
    flipped: int
    flips_left_out: int


class ComparisonOut(OpenModel):
    """Comparison of each ``b`` with ``a`` over the tasks that both have."""

    level: float
    a: SideOut
    comparisons: list[SideComparisonOut]


class ChangeOut(BaseModel):
    """Change of a score if a leaf is inverted."""

    least: float
    greatest: float


class VotesOut(BaseModel):
    """Votes for and against a claim."""

    yes: int
    no: int


class InversionOut(BaseModel):
    """Effect of inverting the outcome of one leaf."""

    leaf: str
    desc: str
    outcome: str
    to: str
    score: ScoreOut
    change: ChangeOut
    votes: VotesOut


class InversionsOut(BaseModel):
    """Leaves of a result by the change of its score if they were inverted."""

    result_id: str | None
    task_id: str | None
    answer_name: str | None
    score: ScoreOut | None
    flips: list[InversionOut]
    without_effect: int
    left_out: int


class DifferenceOut(BaseModel):
    """b - a with bounds, and the side that is ahead in any case."""

    low: float
    high: float
    ahead: Literal["a", "b"] | None


class LeafChangeOut(BaseModel):
    """One change of one leaf, and the resulting difference."""

    task_id: str
    leaf: str
    difference: DifferenceOut


class LeadCountsOut(BaseModel):
    """Number of changes by their effect on the side that is ahead."""

    tried: int
    holds: int
    lost: int
    open: int


class SingleChangesOut(LeadCountsOut):
    """Changes of one leaf at a time."""

    turns: list[LeafChangeOut]


class RandomChangesOut(LeadCountsOut):
    """Random changes of everything at once."""

    seed: int
    low: float
    high: float


class WeightsRedrawnOut(RandomChangesOut):
    """Random changes of the weights."""

    scheme: str


class VoteSensitivityOut(BaseModel):
    """Effect of other votes."""

    split_leaves: int
    minority_wins: SingleChangesOut
    minority_wins_everywhere: DifferenceOut
    redrawn: RandomChangesOut


class WeightSensitivityOut(BaseModel):
    """Effect of other weights."""

    equal: DifferenceOut
    redrawn: WeightsRedrawnOut


class OrderSensitivityOut(BaseModel):
    """Whether the leading side keeps its lead. The last three fields are absent if the sides share no task."""

    a: str
    b: str
    tasks: int
    ahead: Literal["a", "b"] | None
    difference: DifferenceOut | None
    leave_one_leaf_out: SingleChangesOut | None = None
    votes: VoteSensitivityOut | None = None
    weights: WeightSensitivityOut | None = None


class JudgedResultOut(BaseModel):
    """Outcome of a leaf in one result."""

    result_id: str
    outcome: str


class FlakyLeafOut(BaseModel):
    """Leaf with different outcomes for equal inputs."""

    task_id: str
    leaf: str
    model: str
    answer_sha256: str
    passed: int
    judged: int
    results: list[JudgedResultOut]


class ConsistencyOut(BaseModel):
    """Self-consistency of a task's judge."""

    task_id: str
    results: int
    votes: list[VoteStatistics]
    judged_again: int
    flaky_leaves: int
    flaky_share: Interval | None
    flaky: list[FlakyLeafOut]
    older_left_out: bool
