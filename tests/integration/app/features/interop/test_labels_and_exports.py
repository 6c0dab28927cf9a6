"""Import, export and meta-evaluation commands against a real server."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.program import clean_environment, run_command
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.fakes.web_server import served
from tests.integration.app.api.api_calls import wait_for_job

pytestmark = pytest.mark.postgres

PAGE = {"https://example.org/france": "Paris is the capital of France."}
ANSWERS = [
    {"agent": "otter", "task_id": "capital", "text": "It is Paris.", "run": "monday"},
    {"agent": "otter", "task_id": "capital", "text": "It is Lyon.", "run": "tuesday"},
]


@pytest.fixture
async def url(database_url: str, judges: Path, tmp_path: Path) -> AsyncIterator[str]:
    data = tmp_path / "data"
    settings = settings_for_tests(data_dir=data, database_url=database_url)
    with served(create_app(settings, workers=1, runtime=scripted_runtime(judges, PAGE, data_folder=data))) as address:
        yield address


async def assay(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(run_command, folder, clean_environment(**more), *arguments)


async def submit_answers(url: str, folder: Path) -> None:
    """Submit both answers with the command, and wait until they are judged."""
    (folder / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ANSWERS))
    done = await assay(folder, "results", "import", "answers.jsonl", "--submit", "--url", url, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["submitted"] == 2
    async with httpx.AsyncClient(base_url=url) as client:
        for submission in report["submissions"]:
            for job in submission["jobs"]:
                assert (await wait_for_job(client, job["id"]))["status"] == "succeeded"


async def test_exported_labels_evaluate_a_judge(url: str, tmp_path: Path, database_url: str) -> None:
    await submit_answers(url, tmp_path)
    async with httpx.AsyncClient(base_url=url) as client:
        for number, result in enumerate((await client.get("/v1/results")).json()["items"]):
            label = {"leaf": "source", "outcome": ("passed", "failed")[number], "reason": "I looked.", "by": "Ada"}
            assert (await client.post(f"/v1/results/{result['id']}/overrides", json=label)).status_code == 201
            by_code = {**label, "leaf": "paris"}
            assert (await client.post(f"/v1/results/{result['id']}/overrides", json=by_code)).status_code == 201
        (tmp_path / "labels.jsonl").write_bytes((await client.get("/v1/reviews/export")).content)

    stored = {"ASSAY_DATA_DIR": str(tmp_path / "data"), "ASSAY_DATABASE_URL": database_url}
    call = ("meta-eval", "measure", "labels.jsonl", "--model", "lexical", "--json")
    done = await assay(tmp_path, *call, **stored)

    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["labels"]["left_out"]["decided_by_code"] == 2
    asked, recorded = report["judges"]
    for judge in (asked, recorded):
        assert judge["confusion"] == {"true_positive": 1, "false_positive": 1, "false_negative": 0, "true_negative": 0}
        assert [disagreement["people"][0]["reviewer"] for disagreement in judge["disagreements"]] == ["Ada"]
    assert (asked["verdicts"], recorded["verdicts"]) == ("asked", "recorded")
