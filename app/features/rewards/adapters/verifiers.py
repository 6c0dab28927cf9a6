"""Taskset for ``verifiers``. In a package of your own, for example ``assay_tasks.py``:

    from app.features.rewards.adapters.verifiers import AssayTaskset
    __all__ = ["AssayTaskset"]

``tasks`` of its configuration is a file with one JSON object per line: ``prompt``, and ``task_id`` or ``rubric``. If a
reward is masked, scoring fails: the trace has an error and no reward, and is not trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from assay_client import AsyncClient

__all__ = ["AssayTaskset"]


class AssayTaskConfig(vf.TaskConfig):
    """Where and how to verify. ``options`` are further fields of ``POST /v1/verify``, for example ``score``."""

    assay_url: str = "http://127.0.0.1:8000"
    assay_api_key: str | None = None
    deadline_s: float = 120.0
    options: dict[str, Any] = Field(default_factory=dict)


class AssayTasksetConfig(vf.TasksetConfig):
    """Configuration of the taskset. ``tasks`` is a file of JSON lines."""

    tasks: Path
    task: AssayTaskConfig = AssayTaskConfig()


class AssayTaskData(vf.TaskData):
    """Prompt with its task or rubric."""

    task_id: str | None = None
    rubric: dict[str, Any] | None = None


class RewardMasked(Exception):
    """The reward is not reliable."""


class AssayTask(vf.Task[AssayTaskData, vf.State, AssayTaskConfig]):
    """Task whose reward comes from assay."""

    @cached_property
    def _client(self) -> AsyncClient:
        return AsyncClient(self.config.assay_url, api_key=self.config.assay_api_key)

    @vf.reward
    async def assay(self, trace: vf.Trace) -> float:
        """Return the reward of the last reply, and record both scores as metrics.

        Raises:
            RewardMasked: There is no reliable reward.
        """
        rubric = {"task_id": self.data.task_id} if self.data.rubric is None else {"rubric": self.data.rubric}
        answer = trace.last_reply or "-"  # supports no claim
        config = self.config
        found = await self._client.verify_answer(
            {"answer": answer, **rubric, **config.options, "deadline_s": config.deadline_s}
        )
        if found["mask"] or found["reward"] is None:
            raise RewardMasked(f"{found['mask_reason']}: {found['mask_detail']}")
        for kind, score in found["scores"].items():
            if score["value"] is not None:
                trace.record_metric(f"assay_{kind}", score["value"])
        return float(found["reward"])


class AssayTaskset(vf.Taskset[AssayTask, AssayTasksetConfig]):
    """Tasks of a file."""

    def load(self) -> Iterator[AssayTask]:
        with self.config.tasks.open(encoding="utf-8-sig") as lines:
            for line in lines:
                if line.strip():
                    yield AssayTask(AssayTaskData(**json.loads(line)), self.config.task)
