"""Remote reward model for OpenRLHF: ``--reward.remote_url http://127.0.0.1:8001/get_reward``.

    REWARD_URL=http://127.0.0.1:8000 python openrlhf.py --port 8001

The label of a prompt (``--data.label_key``) is a task ID, or JSON with ``task_id`` or ``rubric`` and other fields of
``POST /v1/verify``. OpenRLHF cannot exclude a single rollout, so a masked reward is answered with 503: it asks five
times, then training stops with an error instead of continuing with a wrong reward.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel

DEADLINE_S = 150.0  # OpenRLHF gives up after 180 s


class RewardIn(BaseModel):
    """Request of OpenRLHF: ``query`` has prompts with responses, in the order of ``prompts`` and ``labels``."""

    query: list[str]
    prompts: list[str]
    labels: list[str]


def create_app(url: str, *, api_key: str | None = None, strip: Sequence[str] = ()) -> FastAPI:
    """Return the web application. ``strip`` are special tokens to remove from responses, such as ``<|im_end|>``."""
    app = FastAPI()
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    @app.post("/get_reward")
    async def get_reward(body: RewardIn) -> Any:
        rollouts = zip(body.query, body.prompts, body.labels, strict=True)
        items = [{"answer": _answer(query, prompt, strip), **_rubric(label)} for query, prompt, label in rollouts]
        try:
            async with httpx.AsyncClient(headers=headers, timeout=DEADLINE_S + 20, trust_env=False) as client:
                reply = await client.post(f"{url}/v1/verify", json={"items": items, "deadline_s": DEADLINE_S})
        except httpx.TransportError as error:
            return JSONResponse({"detail": str(error)}, 503)
        if reply.is_error:
            return JSONResponse({"detail": reply.text}, reply.status_code)
        found = reply.json()["items"]
        for item in found:
            if item["mask"]:
                return JSONResponse({"detail": f"masked: {item['mask_reason']}: {item['mask_detail']}"}, 503)
        rewards, strict = [item["reward"] for item in found], [item["scores"]["strict"]["value"] for item in found]
        logs = {} if None in strict else {"strict_reward": strict}
        return {"rewards": rewards, "scores": rewards, "extra_logs": logs}

    return app


def _answer(query: str, prompt: str, strip: Sequence[str]) -> str:
    answer = query.removeprefix(prompt)
    for token in strip:
        answer = answer.replace(token, "")
    return answer if answer.strip() else "-"  # supports no claim


def _rubric(label: str) -> dict[str, Any]:
    return dict(json.loads(label)) if label.lstrip().startswith("{") else {"task_id": label}


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=8001)
    options.add_argument("--strip", action="append", default=[], help="special token to remove from responses")
    given = options.parse_args()
    service = os.environ.get("REWARD_URL", "http://127.0.0.1:8000")
    uvicorn.run(create_app(service, api_key=os.environ.get("ASSAY_API_KEY"), strip=given.strip), port=given.port)
