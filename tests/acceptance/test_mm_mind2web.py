"""``assay suites mm-mind2web``: build a snapshot, run a model, resume, and score predictions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.console.errors import Exit
from tests.fakes.multimodal import EXPECTED, STEPS, multimodal_reply, write_rows
from tests.fakes.program import environment_for
from tests.fakes.warm_start import warm_assay
from tests.standin.llm import StandInLLM


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(fault_for=multimodal_reply) as server:
        yield server


RUN = "mm-mind2web"


async def assay(home: Path, *arguments: str | Path, model: StandInLLM | None = None) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command of ``assay suites``."""
    environment = environment_for(home, ASSAY_MODEL="openai/gpt-4o", COLUMNS="120")
    if model is not None:
        environment |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "key-of-the-tests"}
    process = await asyncio.create_subprocess_exec(
        *(warm_assay(), "suites", *map(str, arguments)),
        env=environment,
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.fixture
async def snapshot(tmp_path: Path) -> Path:
    source = write_rows(tmp_path / "test_website.parquet", STEPS)
    out, raw = tmp_path / "snapshot.parquet", tmp_path / "dump.json"
    raw.write_text('[{"annotation_id": "t1", "actions": [{"action_uid": "t1-0", "raw_html": "<html>"}]}]')
    code, stdout, _ = await assay(
        tmp_path, "build", "--from", source, "--distractors", "3", "--seed", "42", "--raw", raw, "--out", out
    )
    assert code == Exit.DONE
    assert "7 rows of 4 tasks, 5 valid" in stdout
    assert "; 6 are not in --raw and keep their raw_html" in stdout
    return out


def metrics(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "mind2web_metrics.json").read_text())
    return read


def figures(read: dict[str, Any]) -> dict[str, Any]:
    return {name: read[name] for name in EXPECTED}


async def test_run_has_the_expected_figures(tmp_path: Path, snapshot: Path, model: StandInLLM):
    out = tmp_path / "run"
    code, stdout, stderr = await assay(tmp_path, RUN, "--data", snapshot, "--output-dir", out, model=model)
    assert code == Exit.DONE, stderr
    assert "60.0" in stdout and "gemini-1.5-flash" in stdout
    assert "5/5 steps  ele 0.600  f1 0.971  step 0.400" in stderr
    read = metrics(out)
    assert figures(read) == pytest.approx(EXPECTED)
    assert read["usage"]["calls"] == len(model.calls) == 10
    steps = json.loads((out / "mind2web_predictions.json").read_text())
    assert [step["id"] for step in steps] == ["t1:0", "t1:1", "t2:0", "t2:1", "t4:0"]
    assert all(step["prompt"] and step["raw_output"] and step["gold"] for step in steps)

    # The same command sends no request. Its output is also a valid predictions file.
    code, _, stderr = await assay(tmp_path, RUN, "--data", snapshot, "--output-dir", out, model=model)
    assert (code, len(model.calls)) == (Exit.DONE, 10)
    assert "5 reused" in stderr
    given = out / "mind2web_predictions.json"
    code, stdout, _ = await assay(tmp_path, RUN, "--data", snapshot, "--predictions", given, "--json")
    assert code == Exit.DONE
    assert figures(json.loads(stdout)) == pytest.approx(EXPECTED)
