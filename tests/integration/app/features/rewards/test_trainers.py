"""Scripts of examples/trainers with the real trainers, each in its own environment: ``make trainers`` runs them.

Without its environment in ``.trainers``, a test is skipped.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from app.server.application import HttpServer, server_config
from examples.trainers.openrlhf import create_app
from tests.integration.app.features.rewards.rollouts import RUBRIC, grpo_script, rollout
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
            "PYTHONPATH": f"{ROOT}:{folder}",
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
    assert (masked["mask_sample"], masked["failure_kind"]) == (True, "assay:pages_unreadable")
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

    assert (found["good"], found["half"]) == ({"reward": 1.0}, {"reward": 0.75})
    assert found["masked"] == "RewardFileNotFoundError"


@needs("openrlhf")
async def test_openrlhf_executor_receives_rewards_and_no_reward_if_masked(verifier_url: str, tmp_path: Path) -> None:
    async with serving(create_app(verifier_url)) as url:
        found = await run("openrlhf", tmp_path, reward_url=f"{url}/get_reward", rubric=RUBRIC, answers=CASES)

    assert found["good"] == {"reward": [1.0], "scores": [1.0], "extra_logs": {"strict_reward": [1.0]}}
    assert found["half"]["reward"] == [0.75]
    assert found["masked"]["reward"] is None


ON_CPU = {
    '"Qwen/Qwen3-4B"': '"policy"',
    "use_vllm=True": "use_vllm=False",
    "bf16=True": "bf16=False, use_cpu=True",
    "max_steps=500": "max_steps=1",
    "gradient_accumulation_steps=4": "gradient_accumulation_steps=1",
    "max_completion_length=4096": "max_completion_length=12",
    "mask_truncated_completions=True": "mask_truncated_completions=False",
    "learning_rate=1e-6": "learning_rate=0.01",
}
"""Changes of the script for a random model, whose completions never end, and a machine without a GPU."""


@needs("trl")
async def test_documented_grpo_script_trains_on_rewards_without_the_masked_ones(
    verifier_url: str, tmp_path: Path, model: StandInLLM
) -> None:
    model.rule = lambda call: len(call.block("answer")) % 2 == 0 or "kind" in call.claim
    model.fault_for = lambda call: Fault(status=503) if is_masked(call) else None
    rubric = {
        "format": 1,
        "description": "Say something.",
        "rubric": {"parallel": {"even": {"claim": "The answer is even"}, "kind": {"claim": "The answer is kind"}}},
    }
    script = grpo_script().replace("http://127.0.0.1:8000", verifier_url)
    for documented, small in ON_CPU.items():
        assert documented in script
        script = script.replace(documented, small)
    shutil.copy(ROOT / "examples" / "trainers" / "trl.py", tmp_path / "assay_reward.py")
    found = await run("trl", tmp_path, script=script, rubric=rubric)

    async with httpx.AsyncClient(timeout=60) as client:
        text = (await client.get(f"{verifier_url}/metrics")).text
    masked, rewarded = (
        sample(text, "assay_verifications_total", outcome=outcome) for outcome in ("masked", "rewarded")
    )
    assert masked > 0
    assert rewarded > 0
    [step] = [entry for entry in found["log"] if "reward" in entry]
    mean = sample(text, "assay_reward_sum", score="compatible") / rewarded
    assert step["reward"] == pytest.approx(step["assay/compatible"], abs=1e-4)
    assert masked + rewarded <= 16  # equal completions are verified once
    if masked + rewarded == 16:
        assert step["assay/masked"] == pytest.approx(masked / 16, abs=1e-4)
        assert step["reward"] == pytest.approx(mean, abs=1e-4)
    assert 0.5 <= step["reward"] <= 1
    assert found["weights_changed"]


def sample(text: str, name: str, **labels: str) -> float:
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


def is_masked(call: Call) -> bool:
    return len(call.block("answer")) % 3 == 0
