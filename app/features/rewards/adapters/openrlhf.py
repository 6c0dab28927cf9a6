"""Remote reward model for OpenRLHF: ``--reward.remote_url http://127.0.0.1:8001/get_reward``.

    python -m app.features.rewards.adapters.openrlhf --url http://127.0.0.1:8000 --port 8001

The label of a prompt (``--data.label_key``) is a task ID, or JSON with ``task_id`` or ``rubric`` and other fields of
``POST /v1/verify``. OpenRLHF cannot exclude a single rollout, so a masked reward is answered with 503: it asks five
times, then training stops with an error instead of continuing with a wrong reward.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from assay_client import ApiError, AsyncClient, ServerUnreachable

_DEADLINE_S = 150.0
"""Shorter than the 180 s after which OpenRLHF gives up."""


class RewardIn(BaseModel):
    """Request of OpenRLHF: ``query`` has prompts with responses, in the order of ``prompts`` and ``labels``."""

    query: list[str]
    prompts: list[str]
    labels: list[str | None] | None = None


def create_app(
    client: AsyncClient, *, task_id: str | None = None, deadline_s: float = _DEADLINE_S, strip: Sequence[str] = ()
) -> FastAPI:
    """Return the web application.

    Args:
        task_id: Task of prompts without a label.
        strip: Special tokens to remove from the responses, for example ``<|im_end|>``.
    """
    app = FastAPI()

    @app.post("/get_reward")
    async def get_reward(body: RewardIn) -> Any:
        labels = body.labels or [None] * len(body.query)
        items = [
            {"answer": _answer(query, prompt, strip), **_rubric(label, task_id)}
            for query, prompt, label in zip(body.query, body.prompts, labels, strict=True)
        ]
        try:
            found = (await client.verify_answers({"items": items, "deadline_s": deadline_s}))["items"]
        except ServerUnreachable as error:
            return JSONResponse({"detail": str(error)}, 503)
        except ApiError as error:
            return JSONResponse({"detail": str(error)}, error.status)
        masked = next((item for item in found if item["mask"]), None)
        if masked is not None:
            return JSONResponse({"detail": f"masked: {masked['mask_reason']}: {masked['mask_detail']}"}, 503)
        rewards = [item["reward"] for item in found]
        strict = [item["scores"]["strict"]["value"] for item in found]
        logs = {} if None in strict else {"strict_reward": strict}
        return {"rewards": rewards, "scores": rewards, "extra_logs": logs}

    return app


def _answer(query: str, prompt: str, strip: Sequence[str]) -> str:
    """Return the response in a query. An empty one is a dash, which supports no claim."""
    answer = query.removeprefix(prompt)
    for token in strip:
        answer = answer.replace(token, "")
    return answer if answer.strip() else "-"


def _rubric(label: str | None, task_id: str | None) -> dict[str, Any]:
    if label and label.lstrip().startswith("{"):
        fields: dict[str, Any] = json.loads(label)
        return fields
    return {"task_id": label or task_id}


def main(
    url: str = "http://127.0.0.1:8000",
    host: str = "127.0.0.1",
    port: int = 8001,
    task_id: str | None = None,
    deadline_s: float = _DEADLINE_S,
    strip: Annotated[list[str] | None, typer.Option(help="Special token to remove from responses")] = None,
    api_key: Annotated[str | None, typer.Option(envvar="ASSAY_API_KEY")] = None,
) -> None:
    """Serve rewards for OpenRLHF."""
    client = AsyncClient(url, api_key=api_key)
    uvicorn.run(create_app(client, task_id=task_id, deadline_s=deadline_s, strip=strip or ()), host=host, port=port)


if __name__ == "__main__":
    typer.run(main)
