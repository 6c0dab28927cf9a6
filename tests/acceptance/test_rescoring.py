"""``assay results rescore``, ``usage`` and dry runs on a real server with the stand-in model."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.prepared_database import prepare_database
from tests.fakes.program import environment_for
from tests.fakes.warm_start import warm_assay
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule

pytestmark = pytest.mark.postgres

TASK = """
format: 1
description: When was the old bridge of Vellmar built?
rubric:
  parallel:
    year: {claim: The bridge was built in 1764}
    town: {claim: The bridge stands in Vellmar}
"""
ANSWERS = {"answer_1.md": "It was built in 1764, in Vellmar.", "answer_2.md": "In 1800, I think."}


@pytest.fixture
def home(service_home: Path) -> Path:
    (service_home / "judges.d").mkdir()
    answers = service_home / "answers" / "otter" / "bridge"
    answers.mkdir(parents=True)
    for file, text in ANSWERS.items():
        (answers / file).write_text(text)
    prepare_database(service_home)
    return service_home


def environment(home: Path, model: StandInLLM) -> dict[str, str]:
    return environment_for(
        home,
        ASSAY_JUDGES=str(home / "judges.d"),
        ASSAY_MODEL="openai/gpt-4.1",
        OPENAI_API_KEY="key-of-the-tests",
        OPENAI_BASE_URL=model.base_url,
        COLUMNS="160",
    )


@asynccontextmanager
async def serving(home: Path, model: StandInLLM) -> AsyncIterator[str]:
    log = home / "log"
    written = log.stat().st_size if log.exists() else 0
    with log.open("a") as output:
        process = await asyncio.create_subprocess_exec(
            *(warm_assay(), "serve", "--port", "0", "--workers", "1"),
            env=environment(home, model),
            cwd=home,
            stderr=output,
            stdout=output,
        )
    try:
        async with asyncio.timeout(240):
            while not (output_text := re.findall(r"assay serves at (http://\S+?):? ", log.read_text()[written:])):
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.05)
        yield output_text[-1]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 240) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def assay(home: Path, model: StandInLLM, *arguments: str, code: int = 0) -> str:
    """Run a command that must end with this exit code, and return its output."""
    process = await asyncio.create_subprocess_exec(
        *(warm_assay(), *arguments),
        env=environment(home, model),
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output_text, error_text = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == code, error_text.decode()
    return output_text.decode()


async def assay_json(home: Path, model: StandInLLM, *arguments: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(await assay(home, model, *arguments, "--json"))
    return read


async def test_rescoring_requests_only_changed_claims_and_usage_counts_calls(home: Path):
    judge = home / "judges.d" / "bridge.yaml"
    judge.write_text(TASK)
    answers = str(home / "answers" / "otter" / "bridge")
    named = ("--agent", "otter", "--task", "bridge")
    async with StandInLLM(rule=keyword_rule({"is in": False})) as model:
        async with serving(home, model) as url:
            await assay(home, model, "submit", answers, *named, "--url", url, "--wait")
            first = len(model.calls)
            # two answers, two claims each, two votes for each claim
            assert first == 8
            same = await assay(home, model, "results", "rescore", "--task", "bridge", "--url", url, "--leaves")
            assert len(model.calls) == first, same
            assert "reused" in same and " 0 leaves flipped, 0 calls" in same

            used = await assay_json(home, model, "results", "show", "--usage", "--url", url)
            assert sum(row["calls"] for row in used["items"]) == first
            for wrong in ((), ("--task", "unknown")):
                await assay(home, model, "results", "rescore", *wrong, "--url", url, code=2)
        judge.write_text(judge.read_text().replace("stands in Vellmar", "is in Vellmar"))
        async with serving(home, model) as url:
            again = await assay(home, model, "results", "rescore", "--task", "bridge", "--url", url, "--leaves")
            [rescore_id] = re.findall(r"^(rescore_\w+): 2 leaves flipped, 4 calls", again, re.MULTILINE)
            shown = await assay_json(home, model, "results", "rescore", rescore_id, "--url", url)
    # The script rewords one claim; the votes on the other claim remain valid.
    assert len(model.calls) == first + 4, again
    assert re.search(r"town .*the rubric changed", again), again
    assert re.search(r"year .*reused", again), again
    assert re.search(r"otter bridge answer_1 town: passed -> failed \(judge: ", again), again
    [row] = shown["agents"]
    assert (row["before"]["value"], row["after"]["value"], row["rank_after"]) == (1.0, 0.5, 1)
    assert [(flip["leaf"], flip["before"], flip["after"]) for flip in shown["flips"]] == [
        ("town", "passed", "failed")
    ] * 2
