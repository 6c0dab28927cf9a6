"""The wheels, and the client's wheel in an environment of its own against a real service."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.sources import ROOT
from tests.fakes.environments import build_wheel, environment_with
from tests.fakes.folders import service_folder
from tests.fakes.program import environment_for, running_service
from tests.fakes.sandbox import sandbox_variables

JUDGE = """
from judges.registry import judge

@judge(task="sky", description="Say what colour the sky is.", version="1")
async def sky(ctx):
    ctx.check("blue", "blue" in ctx.answer.text)
"""
SCRIPT = """
import asyncio, importlib.util, sys
from assay_client import ApiError, AsyncClient, Client

url, key = sys.argv[1:]
for name in ("app", "cache", "judges", "answers", "rubrics", "fastapi"):
    assert importlib.util.find_spec(name) is None, name

with Client(url, api_key=key) as client:
    assert client.healthy()
    receipt = client.submit("me", "sky", [("a", "It is blue."), ("b", "It is green.")], run="first")
    jobs = client.wait(receipt.job_ids, timeout_s=240)
    scores = [client.get_result(job.result_id)["final_score"] for job in jobs]
    assert scores == [1.0, 0.0], scores
    assert [job["agent"] for job in client.list_jobs(agent="me", limit=1)] == ["me", "me"]
    assert client.get_result_answer(jobs[0].result_id) == "It is blue."
    assert client.get_agent_summary("me", run="first")["num_answers"] == 2
    try:
        client.get_job("job_00000000000000000000000000")
    except ApiError as error:
        assert error.status == 404
    else:
        raise AssertionError("no error")


async def follow():
    async with AsyncClient(url, api_key=key) as client:
        events = [event async for event in client.follow_job(receipt.job_ids[0])]
        assert events[-1].data["status"] == "succeeded", events
        assert [task["task_id"] async for task in client.list_tasks() if task["task_id"] == "sky"] == ["sky"]

asyncio.run(follow())
print("done")
"""


def top_level(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[0] for name in archive.namelist() if ".dist-info" not in name}


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT / "client", tmp_path_factory.mktemp("client"))


def test_client_wheel_contains_one_package_and_needs_httpx(client_wheel: Path):
    assert top_level(client_wheel) == {"assay_client"}
    with zipfile.ZipFile(client_wheel) as archive:
        assert "assay_client/py.typed" in archive.namelist()
        [document] = [name for name in archive.namelist() if name.endswith("METADATA")]
        needs = metadata.PathDistribution(zipfile.Path(archive, document.removesuffix("METADATA"))).requires or []
    assert [Requirement(one).name for one in needs] == ["httpx"]


@pytest.fixture(scope="module")
def python(client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of an environment with the client and the packages that it declares, and nothing else."""
    environment = environment_with(tmp_path_factory.mktemp("environment"), ["httpx"])
    with zipfile.ZipFile(client_wheel) as archive:
        archive.extractall(environment.site_packages)
    return environment.python


@pytest.mark.postgres
@pytest.mark.browser
def test_client_alone_works_with_a_real_service(python: Path):
    home = service_folder("assay-client-")
    try:
        (home / "judges").mkdir()
        (home / "judges" / "sky.py").write_text(JUDGE)
        key = "0123456789-0123456789"
        environment = environment_for(
            home, ASSAY_JUDGES=str(home / "judges"), ASSAY_API_KEYS=f"me:admin:{key}", **sandbox_variables()
        )
        with running_service(home, environment) as service:
            command = [str(python), "-I", "-c", SCRIPT, service.url, key]
            done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    finally:
        shutil.rmtree(home, ignore_errors=True)
