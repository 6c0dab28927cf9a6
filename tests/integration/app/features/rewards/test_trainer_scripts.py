"""Scripts of examples/trainers with a real service and a stand-in model, without the trainers.

Stand-ins replace the few classes of NeMo Gym and ``verifiers`` that the scripts use.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from examples.trainers import harbor
from examples.trainers.openrlhf import create_app
from examples.trainers.trl import assay_reward
from tests.integration.app.features.rewards.rollouts import RUBRIC, grpo_script, rollout
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

MASKED = rollout(director_page="members")


async def test_reward_function_returns_none_for_masked_completions(verifier_url: str) -> None:
    logged: dict[str, float] = {}
    texts = [rollout(), rollout(director="Tobias Quell"), MASKED]
    messages = [[{"role": "assistant", "content": text}] for text in texts]
    rubrics = [json.dumps(RUBRIC)] * len(texts)
    reward = assay_reward(verifier_url)

    of_texts = await asyncio.to_thread(
        reward, prompts=["When?"] * 3, completions=texts, rubric=rubrics, log_metric=logged.__setitem__, step=1
    )
    of_messages = await asyncio.to_thread(reward, prompts=[[]] * 3, completions=messages, rubric=rubrics)
    empty = await asyncio.to_thread(reward, prompts=["When?"], completions=[""], rubric=[RUBRIC])

    assert of_texts == of_messages == [1.0, 0.75, None]
    assert empty != [1.0]
    assert logged == {
        "assay/masked": pytest.approx(1 / 3),
        "assay/compatible": pytest.approx(0.875),
        "assay/strict": pytest.approx(0.875),
    }


async def test_documented_grpo_script_asks_the_service_for_its_rewards(verifier_url: str) -> None:
    """Everything of the script but TRL: its reward function, called as ``GRPOTrainer`` calls it."""
    [made] = [
        node
        for node in ast.parse(grpo_script()).body
        if isinstance(node, ast.Assign) and ast.unparse(node).startswith("reward = assay_reward(")
    ]
    names: dict[str, Any] = {"assay_reward": assay_reward, "os": SimpleNamespace(environ={"REWARD_URL": verifier_url})}
    exec(compile(ast.Module([made], []), "docs/rewards.md", "exec"), names)
    completions = [rollout(), rollout(director="Tobias Quell"), rollout(director_page="members")]
    group: dict[str, Any] = {"prompts": ["When?"] * 3, "completions": completions, "completion_ids": [[1]] * 3}
    columns = {"rubric": [json.dumps(RUBRIC)] * 3, "trainer_state": None, "log_extra": print}
    rewards = await asyncio.to_thread(names["reward"], **group, **columns, log_metric=lambda name, value: None)

    assert rewards == [1.0, 0.75, None]


async def test_remote_reward_model_answers_in_the_format_of_openrlhf(verifier_url: str) -> None:
    prompt = "<user>When was it founded?</user><assistant>"
    label = json.dumps({"rubric": RUBRIC})
    transport = httpx.ASGITransport(app=create_app(verifier_url, strip=["</s>"]))
    async with httpx.AsyncClient(transport=transport, base_url="http://adapter", timeout=120) as trainer:

        async def ask(*answers: str, labels: list[str]) -> httpx.Response:
            queries, prompts = [f"{prompt}{answer}</s>" for answer in answers], [prompt] * len(answers)
            return await trainer.post("/get_reward", json={"query": queries, "prompts": prompts, "labels": labels})

        found = await ask(rollout(), rollout(director="Tobias Quell"), labels=[label, label])
        masked = await ask(rollout(), MASKED, labels=[label, label])
        unknown = await ask(rollout(), labels=["unknown"])

    rewards = [1.0, 0.75]
    assert found.json() == {"rewards": rewards, "scores": rewards, "extra_logs": {"strict_reward": rewards}}
    assert (masked.status_code, masked.json()["detail"].split(": ")[:2]) == (503, ["masked", "pages_unreadable"])
    assert unknown.status_code == 404


async def test_harbor_verifier_writes_a_reward_or_no_file(verifier_url: str, tmp_path: Path, model: StandInLLM) -> None:
    names = ("answer.md", "rubric.json", "reward.json", "reward-details.json")
    answer, rubric, reward, details = (tmp_path / name for name in names)
    rubric.write_text(json.dumps(RUBRIC))

    def contents(path: Path) -> Any:
        return json.loads(path.read_text()) if path.exists() else None

    async def run(text: str) -> tuple[int | None, str, Any, Any]:
        answer.write_text(text)
        for path in (reward, details):
            path.write_text('{"reward": 1}')  # of an agent that wants to be rewarded
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(harbor.__file__), str(answer), "--rubric", str(rubric), "--out", str(reward)),
            env={"REWARD_URL": verifier_url},
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await process.communicate()
        return process.returncode, errors.decode(), contents(reward), contents(details)

    scores = {"compatible": 0.75, "strict": 0.75}
    assert await run(rollout(director="Tobias Quell")) == (0, "", {"reward": 0.75}, scores)
    assert (await run("\ufeff" + rollout()))[::2] == (0, {"reward": 1.0})
    code, errors, *written = await run(MASKED)
    assert (code, written) == (1, [None, None])
    assert errors.startswith("no reward: masked: pages_unreadable: 1 of 2 pages")
    model.always = Fault(status=503)
    assert (await run(rollout(note="During an outage. ")))[::2] == (1, None)
    assert (await run("   "))[::2] == (1, None)


@pytest.fixture
def with_stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Import a script of ``examples/trainers`` with a stand-in for a module of its trainer."""

    def load(script: str, stand_in: str, **names: Any) -> Any:
        module = ModuleType(stand_in)
        vars(module).update(names)
        parent = ModuleType(stand_in.partition(".")[0])
        setattr(parent, stand_in.partition(".")[2], module)
        monkeypatch.setitem(sys.modules, parent.__name__, parent)
        monkeypatch.setitem(sys.modules, stand_in, module)
        monkeypatch.delitem(sys.modules, f"examples.trainers.{script}", raising=False)
        return importlib.import_module(f"examples.trainers.{script}")

    return load


class Response(BaseModel):
    output: list[dict[str, Any]]


class VerifyRequest(BaseModel):
    response: Response


class VerifyResponse(VerifyRequest):
    reward: float


class Configured:
    def __init__(self, config: Any) -> None:
        self.config = config


async def test_nemo_gym_server_returns_rewards_and_masks(verifier_url: str, with_stand_in: Any) -> None:
    script = with_stand_in(
        "nemo_gym",
        "nemo_gym.base_resources_server",
        BaseResourcesServerConfig=BaseModel,
        BaseVerifyRequest=VerifyRequest,
        BaseVerifyResponse=VerifyResponse,
        SimpleResourcesServer=Configured,
    )
    server = script.AssayResourcesServer(script.AssayConfig(assay_url=verifier_url))

    async def verified(text: str) -> Any:
        output: list[dict[str, Any]] = [{"type": "reasoning"}, {"type": "message", "content": [{"text": text}]}]
        return await server.verify(script.AssayVerifyRequest(response=Response(output=output), rubric=RUBRIC))

    half, masked = await verified(rollout(director="Tobias Quell")), await verified(MASKED)
    assert (half.reward, half.mask_sample, half.failure_kind) == (0.75, False, None)
    assert half.reward_components == {"compatible": 0.75, "strict": 0.75, "founded": 1.0, "director": 0.0}
    assert (masked.reward, masked.mask_sample) == (0.875, True)  # the middle of the bounds, and not 0
    assert masked.failure_kind == "assay:pages_unreadable"
    assert masked.failure_reason.startswith("1 of 2 pages")


class Task:
    def __class_getitem__(cls, names: Any) -> type:
        return cls

    def __init__(self, data: Any, config: Any) -> None:
        self.data, self.config = data, config


class Taskset(Configured):
    def __class_getitem__(cls, names: Any) -> type:
        return cls


async def test_verifiers_task_returns_the_reward_or_fails(
    verifier_url: str, tmp_path: Path, with_stand_in: Any
) -> None:
    names = {"TaskConfig": BaseModel, "TasksetConfig": BaseModel, "TaskData": BaseModel, "State": None, "Trace": Any}
    script = with_stand_in(
        "verifiers", "verifiers.v1", **names, Task=Task, Taskset=Taskset, reward=lambda function: function
    )
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"prompt": "When?", "rubric": RUBRIC}) + "\n\n")
    config = script.AssayTasksetConfig(
        tasks=tmp_path / "tasks.jsonl", task=script.AssayTaskConfig(assay_url=verifier_url)
    )
    [task] = script.AssayTaskset(config).load()
    metrics: dict[str, float] = {}

    async def reward(text: str) -> Any:
        return await task.assay(SimpleNamespace(last_reply=text, record_metric=metrics.__setitem__))

    assert await reward(rollout(director="Tobias Quell")) == 0.75
    assert metrics == {"assay_compatible": 0.75, "assay_strict": 0.75}
    with pytest.raises(script.RewardMasked, match="pages_unreadable: 1 of 2 pages"):
        await reward(MASKED)
