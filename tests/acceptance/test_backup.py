"""Backup and restore by the command line."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.fakes.patient_http import PatientTransport
from tests.fakes.program import environment_for, private_database, run_command, running_service
from tests.fakes.sandbox import sandbox_variables

pytestmark = [pytest.mark.postgres, pytest.mark.browser]

JUDGE = """
from judges.registry import judge

@judge(task="sky", description="Say what colour the sky is.", version="1")
async def sky(ctx):
    ctx.check("blue", "blue" in ctx.answer.text)
"""


@pytest.fixture
def home(service_home: Path) -> Path:
    (service_home / "judges").mkdir()
    (service_home / "judges" / "sky.py").write_text(JUDGE)
    return service_home


def judged(api: httpx.Client, text: str) -> dict[str, Any]:
    body = {"agent": "walker", "task_id": "sky", "answers": [{"name": "answer_1", "text": text}]}
    url = api.post("/v1/submissions", json=body).json()["jobs"][0]["url"]
    deadline = time.monotonic() + 240
    while (job := api.get(url).json())["finished_at"] is None:
        assert time.monotonic() < deadline, job
        time.sleep(0.1)
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = api.get(f"/v1/results/{job['result_id']}").json()
    return result


def test_restore_brings_back_results_pages_and_keys(home: Path, sky: str):
    environment = environment_for(
        home,
        ASSAY_JUDGES=str(home / "judges"),
        ASSAY_EGRESS_ALLOW=sky.removeprefix("http://"),
        **sandbox_variables(),
    )
    backup = home / "yesterday"
    with running_service(home, environment, "--workers", "1") as service:
        with httpx.Client(base_url=service.url, trust_env=False, transport=PatientTransport(), timeout=240) as api:
            result = judged(api, f"It is blue ([source]({sky}/sky)).")
            [page] = result["pages"]
            text = api.get(f"/v1/pages/{page['page_id']}/text").text
        created = run_command(
            home, environment, "admin", "keys", "create", "--owner", "a", "--scope", "admin", "--json"
        )
        key = {"Authorization": f"Bearer {json.loads(created.stdout)['key']}"}
        made = run_command(home, environment, "admin", "backup", str(backup))
        assert made.returncode == 0, made.stderr
        assert (
            run_command(home, environment, "admin", "backup", str(backup)).returncode == 1
        )  # an existing backup is not overwritten

    shutil.rmtree(home / "data")
    restored = run_command(home, environment, "admin", "restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    assert (
        run_command(home, environment, "admin", "restore", str(backup)).returncode == 1
    )  # restore requires an empty target
    with (
        running_service(home, environment, "--workers", "1") as service,
        httpx.Client(
            base_url=service.url, trust_env=False, transport=PatientTransport(), timeout=240, headers=key
        ) as api,
    ):
        assert httpx.get(f"{service.url}/v1/results", trust_env=False).status_code == 401
        assert api.get(f"/v1/results/{result['id']}").json() == result
        assert api.get(f"/v1/pages/{page['page_id']}/text").text == text
        # A missing body is reported as not found; no other content is served.
        with psycopg.connect(private_database(home)) as database:
            [(record,)] = database.execute("SELECT record FROM captures WHERE id = %s", [page["page_id"]]).fetchall()
        sha256 = json.loads(record)["blobs"]["text"]["sha256"]
        (home / "data/blobs/sha256" / sha256[:2] / sha256).unlink()
        missing = api.get(f"/v1/pages/{page['page_id']}/text")
        assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")
    counted = run_command(home, environment, "admin", "prune", "--older-than", "30d", "--json")
    assert json.loads(counted.stdout)["removed"] is False
    assert json.loads(counted.stdout)["jobs"] == 0
