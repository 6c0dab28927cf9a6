"""Adapters with the real trainers, each in an environment of its own: ``make trainers`` installs and runs them.

Without its environment in ``.trainers``, a test is skipped.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from app.client import AsyncClient
from app.features.rewards.adapters.openrlhf import create_app
from app.server.application import HttpServer, server_config
from tests.integration.app.features.rewards.rollouts import RUBRIC, rollout
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

ROOT = Path(__file__).resolve().parents[5]
SCRIPTS = Path(__file__).with_name("trainer_scripts")
MASKED = rollout(director_page="members")
CASES = {"good": rollout(), "half": rollout(director="Tobias Quell"), "masked": MASKED}

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(900)]


def python_of(trainer: str) -> Path:
    return ROOT / ".trainers" / trainer / "bin" / "python"


def needs(trainer: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not python_of(trainer).exists(), reason=f"`make trainers` installs {trainer}")


async def run(trainer: str, folder: Path, **values: Any) -> Any:
    """Run the script of a trainer with its Python, and return the last line of its output as JSON."""
    process = await asyncio.create_subprocess_exec(
        *(str(python_of(trainer)), str(SCRIPTS / f"with_{trainer.replace('-', '_')}.py"), json.dumps(values)),
        cwd=folder,
        env={
            "PATH": f"{python_of(trainer).parent}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "HF_HUB_OFFLINE": "1",
            "WANDB_MODE": "disabled",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4000:]
    return json.loads(output.decode().splitlines()[-1])


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    """Serve an application in this event loop, and yield its URL."""
    ready = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = HttpServer(server_config(app, host="127.0.0.1", port=port), ready.set)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        await ready.wait()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await running


@needs("nemo-gym")
async def test_nemo_gym_agent_receives_rewards_and_masks(verifier_url: str, tmp_path: Path) -> None:
    found = await run("nemo-gym", tmp_path, url=verifier_url, rubric=RUBRIC, answers=CASES)

    assert found["good"]["reward"] == 1.0
    assert (found["half"]["reward"], found["half"]["mask_sample"], found["half"]["failure_kind"]) == (0.75, False, None)
    assert found["half"]["reward_components"] == {"compatible": 0.75, "strict": 0.75, "founded": 1.0, "director": 0.0}
    masked = found["masked"]
    assert (masked["mask_sample"], masked["failure_kind"]) == (True, "pages_unreadable")
    assert masked["failure_reason"].startswith("1 of 2 pages")
    assert masked["reward"] == 0.875  # the middle of the bounds, and not 0


@needs("verifiers")
async def test_verifiers_trace_has_the_reward_or_an_error(verifier_url: str, tmp_path: Path) -> None:
    found = await run("verifiers", tmp_path, url=verifier_url, rubric=RUBRIC, answers=CASES)

    assert found["good"] == {"ok": True, "reward": 1.0, "rewards": {"assay": 1.0}, "strict": 1.0, "errors": []}
    assert (found["half"]["reward"], found["half"]["strict"]) == (0.75, 0.75)
    assert (found["masked"]["ok"], found["masked"]["rewards"]) == (False, {"assay": None})
    assert "pages_unreadable" in found["masked"]["errors"][0]


@needs("harbor")
async def test_harbor_trial_reads_the_reward_or_records_an_error(verifier_url: str, tmp_path: Path) -> None:
    found = await run("harbor", tmp_path, url=verifier_url, rubric=RUBRIC, answers=CASES)

    assert found["good"] == {"reward": 1.0, "compatible": 1.0, "strict": 1.0}
    assert found["half"]["reward"] == 0.75
    assert found["masked"] == "RewardFileNotFoundError"


@needs("openrlhf")
async def test_openrlhf_executor_receives_rewards_and_no_reward_if_masked(verifier_url: str, tmp_path: Path) -> None:
    async with AsyncClient(verifier_url) as client, serving(create_app(client)) as url:
        found = await run("openrlhf", tmp_path, reward_url=f"{url}/get_reward", rubric=RUBRIC, answers=CASES)

    assert found["good"] == {"reward": [1.0], "scores": [1.0], "extra_logs": {"strict_reward": [1.0]}}
    assert found["half"]["reward"] == [0.75]
    assert found["masked"]["reward"] is None


@needs("trl")
async def test_grpo_of_trl_trains_on_rewards_without_the_masked_ones(
    verifier_url: str, tmp_path: Path, model: StandInLLM
) -> None:
    """A randomly initialized model trains for one step: the path of the example configuration in docs/rewards.md."""
    model.rule = lambda call: len(call.block("answer")) % 2 == 0 or "kind" in call.claim
    model.fault_for = lambda call: Fault(status=503) if is_masked(call) else None
    rubric = {
        "format": 1,
        "description": "Say something.",
        "rubric": {"parallel": {"even": {"claim": "The answer is even"}, "kind": {"claim": "The answer is kind"}}},
    }
    found = await run("trl", tmp_path, url=verifier_url, rubric=rubric)

    rewards = found["rewards"]
    known = [reward for reward in rewards if reward is not None]
    assert len(rewards) == 16
    assert set(known) <= {0.5, 1.0}
    assert 0 < len(known) < len(rewards)
    [step] = [entry for entry in found["log"] if "reward" in entry]
    assert step["reward"] == pytest.approx(sum(known) / len(known), abs=1e-4)
    assert step["assay/masked"] == pytest.approx(1 - len(known) / len(rewards), abs=1e-4)
    assert 0 < step["assay/strict"] <= step["assay/compatible"] == pytest.approx(step["reward"], abs=1e-4)
    assert found["weights_changed"]


def is_masked(call: Call) -> bool:
    return len(call.block("answer")) % 3 == 0
