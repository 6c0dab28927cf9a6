"""Response of the resources server for NeMo Gym, with stand-ins for the classes of NeMo Gym."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

NAME = "app.features.rewards.adapters.nemo_gym"


class Response(BaseModel):
    output: list[dict[str, Any]]


class Config(BaseModel):
    pass


class Request(BaseModel):
    response: Response


class VerifyResponse(Request):
    reward: float


class Server:
    def __init__(self, config: Any) -> None:
        self.config = config


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Any:
    stand_in = ModuleType("nemo_gym.base_resources_server")
    stand_in.BaseResourcesServerConfig = Config  # type: ignore[attr-defined]
    stand_in.BaseVerifyRequest = Request  # type: ignore[attr-defined]
    stand_in.BaseVerifyResponse = VerifyResponse  # type: ignore[attr-defined]
    stand_in.SimpleResourcesServer = Server  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nemo_gym", ModuleType("nemo_gym"))
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    yield importlib.import_module(NAME)
    sys.modules.pop(NAME, None)


def verified(mask_reason: str | None, low: float, high: float, leaf: float | None) -> dict[str, Any]:
    """Return a response of ``POST /v1/verify``."""
    score = {"value": None if mask_reason else low, "low": low, "high": high}
    return {
        "reward": None if mask_reason else low,
        "mask": mask_reason is not None,
        "mask_reason": mask_reason,
        "mask_detail": mask_reason and "1 of 2 pages",
        "bounds": {"low": low, "high": high},
        "scores": {"compatible": score, "strict": score},
        "components": [{"id": "founded", "score": 1.0}, {"id": "director", "score": leaf}],
    }


def scores(value: float) -> dict[str, float]:
    return {"compatible": value, "strict": value}


@pytest.mark.parametrize(
    ("found", "reward", "kind", "components"),
    [
        (verified(None, 0.75, 0.75, 0.0), 0.75, None, {**scores(0.75), "founded": 1.0, "director": 0.0}),
        (verified("deadline", 0.75, 1.0, None), 0.875, "assay:deadline", {**scores(0.875), "founded": 1.0}),
        (verified("judge_failed", 0.0, 1.0, None), 0.5, "assay:judge_failed", {**scores(0.5), "founded": 1.0}),
    ],
)
async def test_response_has_a_valid_failure_kind_and_only_floats(
    adapter: Any, found: dict[str, Any], reward: float, kind: str | None, components: dict[str, float]
):
    class Client:
        async def verify_answer(self, body: dict[str, Any]) -> dict[str, Any]:
            return found

    server = adapter.AssayResourcesServer(config=adapter.AssayConfig())
    server.client = Client()
    response = await server.verify(adapter.AssayVerifyRequest(response=Response(output=[]), task_id="t"))
    assert (response.reward, response.failure_kind, response.mask_sample) == (reward, kind, kind is not None)
    assert response.model_dump()["reward_components"] == components
    assert all(type(value) is float for value in response.reward_components.values())
