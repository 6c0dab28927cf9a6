"""Response models of summaries: averages of an agent with bounds and intervals. Further fields may be present."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from judges.analysis.statistics.intervals import Interval
from rubrics.scoring import Score


class OpenModel(BaseModel):
    """Response model that passes fields on that it does not name."""

    model_config = ConfigDict(extra="allow")


class ScoreOut(BaseModel):
    """A score. ``value`` is null while leaves that were not judged could change it; then the bounds differ."""

    value: float | None = None
    low: float
    high: float


def score_out(score: Score | None) -> ScoreOut | None:
    """Return a score for the API; None stays None."""
    return None if score is None else ScoreOut(value=score.value, low=score.low, high=score.high)


class UsageTotalsOut(BaseModel):
    """Model calls, tokens and cost."""

    calls: int
    cached_calls: int = Field(description="Requests that were answered by a stored or shared reply")
    input_tokens: int
    output_tokens: int
    usd: float | None = Field(description="Cost; null if a price is unknown")


class NotJudgedOut(BaseModel):
    """Counts of what was not judged."""

    answers: int
    incomplete: int = Field(description="Answers with a result and leaves that were not judged")
    without_result: int
    leaves: int


class AverageBoundsOut(BaseModel):
    """Averages with bounds."""

    score: ScoreOut | None
    success: ScoreOut | None
    pass_at_k: ScoreOut | None = Field(description="Over the tasks that have an answer of every run")


class HeadlineFigureOut(ScoreOut):
    """A headline figure over tasks, with intervals."""

    tasks: int
    interval: Interval | None
    student_t: Interval | None
    bootstrap: Interval | None


class PassEstimateOut(ScoreOut):
    """Estimate of pass@k or pass^k for one k."""

    k: int
    tasks: int
    interval: Interval | None


class NotJudgedShareOut(BaseModel):
    """Number and share of answers that were not judged completely."""

    answers: int
    share: float


class StatisticsOut(OpenModel):
    """Headline figures with bounds and intervals."""

    level: float = Field(description="Confidence level of the intervals")
    tasks: int
    answers: int
    not_judged: NotJudgedShareOut
    score: HeadlineFigureOut
    success: HeadlineFigureOut
    pass_at_k: list[PassEstimateOut]
    pass_hat_k: list[PassEstimateOut]
    smallest_detectable_difference: float | None
    warnings: list[str]


class LeaderboardRowOut(OpenModel):
    """Averages of an agent. ``pass_at_<number of runs>`` is a further field."""

    agent: str
    agent_name: str = Field(description="Same as agent, as the public toolkit names it")
    num_tasks: int
    num_runs: int
    num_answers: int
    avg_score: float | None
    avg_score_std: float | None
    success_rate: float | None
    success_rate_std: float | None
    avg_answer_word_count: float | None
    avg_answer_word_count_std: float | None
    not_judged: NotJudgedOut
    nothing_applies: int = Field(description="Answers without a score, because no leaf applies; no figure counts them")
    bounds: AverageBoundsOut
    usage: UsageTotalsOut
    seconds: float
    judges: dict[str, int] = Field(description="Number of answers by judge model")
    unfinished: int = Field(description="Jobs that are queued or running")
    statistics: StatisticsOut | None


class RunAveragesOut(BaseModel):
    """Averages of one run."""

    num_tasks: int
    avg_score: float
    success_rate: float
    avg_word_count: float


class TaskAnswerOut(BaseModel):
    """Score of one answer."""

    answer_name: str
    score: float
    success: bool
    word_count: int


class TaskAveragesOut(BaseModel):
    """Averages of one task."""

    answers: list[TaskAnswerOut]
    best_score: float
    avg_score: float
    passed: bool = Field(alias="pass")


class WithoutResultOut(BaseModel):
    """An answer whose job failed."""

    task_id: str
    answer_name: str
    error_code: str | None


class MissingRunOut(BaseModel):
    """Answer that a task lacks, although other tasks have one of the same name."""

    task_id: str
    answer_name: str


class AgentSummaryOut(LeaderboardRowOut):
    """Averages of an agent, by run and by task."""

    per_run: dict[str, RunAveragesOut]
    tasks: dict[str, TaskAveragesOut]
    without_result: list[WithoutResultOut]
    missing_runs: list[MissingRunOut]
