"""Adapters that need no trainer: reward function of TRL, remote reward model of OpenRLHF, verifier of Harbor."""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from app.features.rewards.adapters import harbor
from app.features.rewards.adapters.openrlhf import create_app
from app.features.rewards.adapters.trl import assay_reward
from assay_client import AsyncClient
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
    async with (
        AsyncClient(verifier_url) as client,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=create_app(client, task_id="unknown", strip=["</s>"])),
            base_url="http://adapter",
            timeout=120,
        ) as trainer,
    ):

        async def ask(*answers: str, labels: list[str] | None) -> httpx.Response:
            body = {"query": [f"{prompt}{answer}</s>" for answer in answers], "prompts": [prompt] * len(answers)}
            return await trainer.post("/get_reward", json=body | ({} if labels is None else {"labels": labels}))

        found = await ask(rollout(), rollout(director="Tobias Quell"), labels=[label, label])
        masked = await ask(rollout(), MASKED, labels=[label, label])
        unknown = await ask(rollout(), labels=None)

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
