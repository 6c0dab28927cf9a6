"""What a run over HTTP is asked to do: the body of the request, and what is stored of it for the worker."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.api.request_fields import WHOLE, Model
from judges.suites.mind2web.rules import Metric, NoPositive, Shuffle
from judges.suites.multimodal.readings import Counting

_PLAIN = r"^[^\x00-\x1f\x7f]*$"
BULK = -10
"""The priority of work in bulk: behind answers that somebody waits for."""
_PATHS = ("data", "predictions", "scores", "prompt_template")
DataPath = Annotated[
    str, Field(min_length=1, max_length=1000, description="Absolute, or below a folder of ASSAY_SUITE_DATA")
]


class RunOrder(BaseModel):
    """What every suite takes."""

    model_config = ConfigDict(extra="forbid", strict=True)

    data: DataPath
    split: Annotated[str | None, Field(max_length=100, pattern=_PLAIN)] = None
    model: Model | None = None
    predictions: Annotated[DataPath | None, Field(description="Score the answers of this file; ask no model")] = None
    max_examples: Annotated[int | None, Field(ge=1, le=10**9, description="Maximum number of steps"), WHOLE] = None
    seed: Annotated[int, Field(ge=0, lt=2**31), WHOLE] = 0
    run: Annotated[str | None, Field(max_length=200, pattern=_PLAIN, description="A label of the owner's")] = None
    priority: Annotated[int, Field(ge=-100, le=100, description="Jobs with a higher priority start first"), WHOLE] = (
        BULK
    )
    budget_usd: Annotated[
        float | None,
        Field(gt=0, le=1e6, allow_inf_nan=False, strict=False, description="What the model may cost for the whole run"),
    ] = None

    def paths(self) -> dict[str, str]:
        """What is to be read, by the field that names it."""
        named = {name: getattr(self, name, None) for name in _PATHS}
        return {name: path for name, path in named.items() if path is not None}


class TildeOrder(RunOrder):
    """A run of Multimodal-Mind2Web~."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"data": "mm/snapshot_20dist.parquet", "split": "test_website", "model": "openai/gpt-4o"}
        }
    )

    # Enumerations come as text in JSON, which the strict mode would refuse.
    tokens: Annotated[Counting, Field(strict=False, description="How tokens of operations are counted")] = Counting.SET


class MindActOrder(RunOrder):
    """A run of Mind2Web."""

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

    scores: Annotated[DataPath | None, Field(description="The ranker's scores: the pickle, or Parquet made of it")] = (
        None
    )
    prompt_template: Annotated[DataPath | None, Field(description="A JSON list of chat messages")] = None
    top_k: Annotated[int, Field(ge=1, le=10_000), WHOLE] = 50
    temperature: Annotated[float, Field(strict=False, ge=0.0, le=2.0)] = 0.0
    metric: Annotated[Metric, Field(strict=False)] = Metric.MINDACT
    no_positive: Annotated[NoPositive, Field(strict=False)] = NoPositive.ZERO
    shuffle: Annotated[Shuffle, Field(strict=False)] = Shuffle.STEP
    compat_trailing: bool = False
