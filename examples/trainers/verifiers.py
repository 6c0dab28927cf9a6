"""Taskset for ``verifiers``. Copy this file into a package of your own, for example as ``assay_tasks.py``.

``tasks`` of its configuration is a file with one JSON object per line: ``prompt``, and ``task_id`` or ``rubric``. If a
reward is masked, scoring fails: the trace has an error and no reward, and is not trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import verifiers.v1 as vf

__all__ = ["AssayTaskset"]


class AssayTaskConfig(vf.TaskConfig):
    assay_url: str = "http://127.0.0.1:8000"
    assay_api_key: str = ""
    deadline_s: float = 120.0
    options: dict[str, Any] = {}  # noqa: RUF012 - further fields of POST /v1/verify, for example `score`


class AssayTasksetConfig(vf.TasksetConfig):
    tasks: Path
    task: AssayTaskConfig = AssayTaskConfig()


class AssayTaskData(vf.TaskData):
    task_id: str | None = None
    rubric: dict[str, Any] | None = None


class RewardMasked(Exception):
    """The reward is not reliable."""


class AssayTask(vf.Task[AssayTaskData, vf.State, AssayTaskConfig]):
    @vf.reward
    async def assay(self, trace: vf.Trace) -> float:
        """Return the reward of the last reply, and record both scores as metrics.

        Raises:
            RewardMasked: There is no reliable reward.
        """
        config = self.config
        rubric = {"task_id": self.data.task_id} if self.data.rubric is None else {"rubric": self.data.rubric}
        answer = trace.last_reply or "-"  # supports no claim
        body = {"answer": answer, **rubric, **config.options, "deadline_s": config.deadline_s}
        headers = {"Authorization": f"Bearer {config.assay_api_key}"} if config.assay_api_key else {}
        async with httpx.AsyncClient(headers=headers, timeout=config.deadline_s + 30, trust_env=False) as client:
            found = (await client.post(f"{config.assay_url}/v1/verify", json=body)).raise_for_status().json()
        if found["mask"]:
            raise RewardMasked(f"{found['mask_reason']}: {found['mask_detail']}")
        for kind, score in found["scores"].items():
            if score["value"] is not None:
                trace.record_metric(f"assay_{kind}", score["value"])
        return float(found["reward"])


class AssayTaskset(vf.Taskset[AssayTask, AssayTasksetConfig]):
    def load(self) -> Iterator[AssayTask]:
        with self.config.tasks.open(encoding="utf-8-sig") as lines:
            for line in lines:
                if line.strip():
                    yield AssayTask(AssayTaskData(**json.loads(line)), self.config.task)
