"""Resources server for NeMo Gym. Copy this file into the folder of a resources server, as ``app.py``.

A row of the data set has ``task_id`` or ``rubric`` beside ``responses_create_params``. With ``mask_sample``, a rollout
must not be trained on. ``reward``, which NeMo Gym requires, is then the middle of the bounds: it misleads least if the
mask is ignored.
"""

from __future__ import annotations

from typing import Any

import httpx
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from pydantic import ConfigDict


class AssayConfig(BaseResourcesServerConfig):
    assay_url: str = "http://127.0.0.1:8000"
    assay_api_key: str = ""
    deadline_s: float = 120.0
    options: dict[str, Any] = {}  # noqa: RUF012 - further fields of POST /v1/verify, for example `score`


class AssayVerifyRequest(BaseVerifyRequest):
    model_config = ConfigDict(extra="allow")

    task_id: str | None = None
    rubric: dict[str, Any] | None = None


class AssayVerifyResponse(BaseVerifyResponse):
    model_config = ConfigDict(extra="allow")

    mask_sample: bool
    failure_kind: str | None  # assay:<mask_reason>: NeMo Gym accepts unregistered kinds only with a namespace
    failure_reason: str | None
    reward_components: dict[str, float]  # both scores (the middle of their bounds) and the judged leaves


class AssayResourcesServer(SimpleResourcesServer):
    config: AssayConfig

    async def verify(self, body: AssayVerifyRequest) -> AssayVerifyResponse:
        rubric = {"task_id": body.task_id} if body.rubric is None else {"rubric": body.rubric}
        answer = _answer(body.response.model_dump()["output"])
        request = {"answer": answer, **rubric, **self.config.options, "deadline_s": self.config.deadline_s}
        headers = {"Authorization": f"Bearer {self.config.assay_api_key}"} if self.config.assay_api_key else {}
        async with httpx.AsyncClient(headers=headers, timeout=self.config.deadline_s + 30, trust_env=False) as client:
            reply = await client.post(f"{self.config.assay_url}/v1/verify", json=request)
        found = reply.raise_for_status().json()
        scores = {kind: _middle(score) for kind, score in found["scores"].items()}
        leaves = {leaf["id"]: leaf["score"] for leaf in found["components"] if leaf["score"] is not None}
        return AssayVerifyResponse(
            **body.model_dump(),
            reward=_middle(found["bounds"]) if found["mask"] else found["reward"],
            mask_sample=found["mask"],
            failure_kind=f"assay:{found['mask_reason']}" if found["mask"] else None,
            failure_reason=found["mask_detail"],
            reward_components=scores | leaves,
        )


def _middle(bounds: dict[str, float]) -> float:
    return (bounds["low"] + bounds["high"]) / 2


def _answer(output: list[dict[str, Any]]) -> str:
    messages = [item for item in output if item.get("type") == "message"]
    text = "".join(part.get("text") or "" for part in messages[-1]["content"]) if messages else ""
    return text if text.strip() else "-"  # supports no claim


if __name__ == "__main__":
    AssayResourcesServer.run_webserver()
