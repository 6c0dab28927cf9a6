"""Options of suite runs: body of a request, stored form that is read later, and what the commands build."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from app.api.request_fields import WHOLE_NUMBER, SingleModel
from judges.suites.rules import MAX_HTML_CHARS, Counting, Metric, NoPositive, Protocol, Shuffle

_NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]*$"
BULK_PRIORITY = -10
"""Default priority: lower than that of interactive submissions."""
_MAX_TOKENS = {Protocol.TOURNAMENT: 50, Protocol.GUIDE: 512}
DataPath: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=1000, description="Absolute path, or path relative to a folder of ASSAY_SUITE_DATA"),
]
SplitName: TypeAlias = Annotated[
    str,
    # The name becomes a part of a path, which must not leave the folder of the data.
    Field(
        max_length=100,
        pattern=r"^([^\x00-\x1f\x7f/.][^\x00-\x1f\x7f/]*)?$",
        description="Does not contain '/' or start with '.'",
    ),
]


class SuiteName(StrEnum):
    """Suites with runs."""

    MIND2WEB = "mind2web"
    MM_MIND2WEB = "mm-mind2web"


class SuiteRunIn(BaseModel):
    """Options of the runs of all suites."""

    model_config = ConfigDict(extra="forbid", strict=True)

    data: DataPath
    split: SplitName | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31), WHOLE_NUMBER] = 0
    run: Annotated[str | None, Field(max_length=200, pattern=_NO_CONTROL_CHARACTERS, description="Free-form label")] = (
        None
    )
    model: SingleModel | None = None
    predictions: Annotated[
        DataPath | None, Field(description="Score the answers in this file instead of asking a model")
    ] = None
    max_examples: Annotated[
        int | None, Field(ge=1, le=10**9, description="Maximum number of steps to evaluate"), WHOLE_NUMBER
    ] = None
    priority: Annotated[
        int, Field(ge=-100, le=100, description="Jobs with a higher priority start first"), WHOLE_NUMBER
    ] = BULK_PRIORITY
    budget_usd: Annotated[
        float | None,
        Field(gt=0, le=1e6, allow_inf_nan=False, strict=False, description="Maximum cost of the run in USD"),
    ] = None

    def paths(self) -> dict[str, str]:
        """Return the paths of files to read, by field name."""
        paths = {name: getattr(self, name, None) for name in ("data", "predictions", "scores", "prompt_template")}
        return {name: path for name, path in paths.items() if path is not None}


class MultimodalRunIn(SuiteRunIn):
    """Options of a Multimodal-Mind2Web~ run. ``seed`` only affects the resampling of the intervals."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"data": "mm/snapshot_20dist.parquet", "split": "test_website", "model": "openai/gpt-4o"}
        }
    )

    # JSON has enumerations as text, which strict mode would refuse.
    tokens: Annotated[Counting, Field(strict=False, description="How tokens of operations are counted for F1")] = (
        Counting.SET
    )


class Mind2WebRunIn(SuiteRunIn):
    """Options of a Mind2Web run."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "data": "mind2web/data",
                "split": "test_task",
                "scores": "mind2web/scores_all_data.pkl",
                "model": "openai/gpt-4o",
            }
        }
    )

    scores: Annotated[
        DataPath | None, Field(description="Candidate scores of the ranker: the pickle, or Parquet converted from it")
    ] = None
    prompt_template: Annotated[
        DataPath | None, Field(description="File with a JSON list of chat messages, or an object")
    ] = None
    protocol: Annotated[
        Protocol, Field(strict=False, description="tournament: published rounds of five; guide: one question per step")
    ] = Protocol.TOURNAMENT
    top_k: Annotated[int, Field(ge=1, le=10_000), WHOLE_NUMBER] = 50
    max_html_chars: Annotated[
        int, Field(ge=100, le=10**8, description="Characters of the page in the guide's question"), WHOLE_NUMBER
    ] = MAX_HTML_CHARS
    metric: Annotated[
        Metric | None, Field(strict=False, description="Rule for a step (default: mindact, guide: action)")
    ] = None
    no_positive: Annotated[
        NoPositive | None, Field(strict=False, description="Steps without a positive (default: zero, guide: skip)")
    ] = None
    temperature: Annotated[float, Field(strict=False, ge=0.0, le=2.0)] = 0.0
    max_tokens: Annotated[
        int | None, Field(ge=1, le=10**6, description="Limit of a reply (default: 50, guide: 512)"), WHOLE_NUMBER
    ] = None
    shuffle: Annotated[Shuffle, Field(strict=False)] = Shuffle.STEP
    compat_trailing: bool = False

    @property
    def is_guide(self) -> bool:
        return self.protocol is Protocol.GUIDE

    @property
    def step_metric(self) -> Metric:
        return self.metric or (Metric.ACTION if self.is_guide else Metric.MINDACT)

    @property
    def no_positive_policy(self) -> NoPositive:
        return self.no_positive or (NoPositive.SKIP if self.is_guide else NoPositive.ZERO)

    @property
    def reply_tokens(self) -> int:
        """Maximum output tokens of a reply."""
        return self.max_tokens or _MAX_TOKENS[self.protocol]
