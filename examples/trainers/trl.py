"""Reward function for ``GRPOTrainer`` of TRL. Copy this file beside the training script, as ``assay_reward.py``.

    trainer = GRPOTrainer(model, reward_funcs=assay_reward("http://127.0.0.1:8000"), train_dataset=dataset, args=config)

The dataset has a column ``task_id`` or ``rubric``. TRL excludes completions whose reward is None from the baseline of
their group and from the loss.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx

MAX_ITEMS = 1000


def assay_reward(
    url: str, *, api_key: str | None = None, deadline_s: float = 120.0, **options: Any
) -> Callable[..., list[float | None]]:
    """Return a reward function. ``options`` are further fields of ``POST /v1/verify``, for example ``score``.

    The function returns one reward per completion, None for a masked one. It logs the share of masked rewards and the
    means of the compatible and the strict score.
    """
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def reward(
        completions: Sequence[Any], log_metric: Callable[[str, float], None] | None = None, **columns: Any
    ) -> list[float | None]:
        # A column of the dataset cannot hold objects of different shapes, so a rubric may be JSON.
        rubrics = [
            {"rubric": json.loads(rubric) if isinstance(rubric, str) else rubric}
            for rubric in columns.get("rubric", [])
        ] or [{"task_id": task_id} for task_id in columns["task_id"]]
        items = [
            {**_answer(completion), **rubric, **options}
            for completion, rubric in zip(completions, rubrics, strict=True)
        ]
        found: list[dict[str, Any]] = []
        with httpx.Client(headers=headers, timeout=deadline_s + 30, trust_env=False) as client:
            for start in range(0, len(items), MAX_ITEMS):
                body = {"items": items[start : start + MAX_ITEMS], "deadline_s": deadline_s}
                found += client.post(f"{url}/v1/verify", json=body).raise_for_status().json()["items"]
        if log_metric is not None:
            _log(found, log_metric)
        return [item["reward"] for item in found]

    reward.__name__ = "assay"
    return reward


def _answer(completion: Any) -> dict[str, Any]:
    """Return the fields of an answer: a text, or the messages of a conversation."""
    if isinstance(completion, str):
        return {"answer": completion if completion.strip() else "-"}  # supports no claim
    messages = [{"role": each["role"], "content": each.get("content")} for each in completion]
    return {"messages": messages} if any(each["content"] for each in messages) else {"answer": "-"}


def _log(found: Sequence[dict[str, Any]], log_metric: Callable[[str, float], None]) -> None:
    log_metric("assay/masked", sum(item["mask"] for item in found) / len(found))
    for kind in ("compatible", "strict"):
        values = [item["scores"][kind]["value"] for item in found if not item["mask"]]
        known = [value for value in values if value is not None]
        if known:
            log_metric(f"assay/{kind}", sum(known) / len(known))
