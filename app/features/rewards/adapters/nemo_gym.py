"""Resources server for NeMo Gym. In the ``app.py`` of a resources server:

    from app.features.rewards.adapters.nemo_gym import AssayResourcesServer
    if __name__ == "__main__":
        AssayResourcesServer.run_webserver()

A row of the data set has ``task_id`` or ``rubric`` beside ``responses_create_params``.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from pydantic import ConfigDict, Field

from assay_client import AsyncClient


class AssayConfig(BaseResourcesServerConfig):
    """Configuration. ``options`` are further fields of ``POST /v1/verify``, for example ``score``."""

    assay_url: str = "http://127.0.0.1:8000"
    assay_api_key: str | None = None
    deadline_s: float = 120.0
    options: dict[str, Any] = Field(default_factory=dict)


class AssayVerifyRequest(BaseVerifyRequest):
    """Rollout with its task or rubric."""

    model_config = ConfigDict(extra="allow")

    task_id: str | None = None
    rubric: dict[str, Any] | None = None


class AssayVerifyResponse(BaseVerifyResponse):
    """Reward. With ``mask_sample``, the rollout must not be trained on. ``reward``, which is required, is then the
    middle of the bounds, so that it misleads least where the mask is ignored.

    ``failure_kind`` is ``assay:<mask_reason>``: NeMo Gym knows only registered kinds and those with a namespace.
    ``reward_components`` are floats: both scores (the middle of their bounds) and the leaves that were judged.
    """

    model_config = ConfigDict(extra="allow")

    mask_sample: bool
    failure_kind: str | None
    failure_reason: str | None
    reward_components: dict[str, float]


class AssayResourcesServer(SimpleResourcesServer):
    """Resources server whose ``/verify`` asks assay."""

    config: AssayConfig

    @cached_property
    def client(self) -> AsyncClient:
        return AsyncClient(self.config.assay_url, api_key=self.config.assay_api_key)

    async def verify(self, body: AssayVerifyRequest) -> AssayVerifyResponse:
        rubric = {"task_id": body.task_id} if body.rubric is None else {"rubric": body.rubric}
        answer = _answer(body.response.model_dump()["output"])
        found = await self.client.verify_answer(
            {"answer": answer, **rubric, **self.config.options, "deadline_s": self.config.deadline_s}
        )
        bounds = found["bounds"]
        scores = {kind: (score["low"] + score["high"]) / 2 for kind, score in found["scores"].items()}
        leaves = {leaf["id"]: leaf["score"] for leaf in found["components"] if leaf["score"] is not None}
        return AssayVerifyResponse(
            **body.model_dump(),
            reward=(bounds["low"] + bounds["high"]) / 2 if found["mask"] else found["reward"],
            mask_sample=found["mask"],
            failure_kind=f"assay:{found['mask_reason']}" if found["mask"] else None,
            failure_reason=found["mask_detail"],
            reward_components=scores | leaves,
        )


def _answer(output: list[dict[str, Any]]) -> str:
    """Return the text of the last message of the model. An empty one is a dash, which supports no claim."""
    messages = [item for item in output if item.get("type") == "message"]
    texts = [part.get("text") or "" for part in messages[-1]["content"]] if messages else []
    return "".join(texts) if "".join(texts).strip() else "-"
