"""`assay judges succession` with the results and the stored pages of a service."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.fakes.web_server import served
from tests.integration.app.features.comparison.judged_runs import (
    PAGE,
    RIGHT,
    TASKS,
    URL,
    WRONG,
    judge_run,
    model,
    write_judges,
)
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.postgres


async def test_newest_results_of_the_old_judge_are_replayed_with_stored_pages(
    assay: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str
) -> None:
    judges, data = tmp_path / "judges", tmp_path / "data"
    judges.mkdir()
    write_judges(judges)
    async with model() as stand_in:
        settings = settings_for_tests(
            data_dir=data, database_url=database_url, model="openai/gpt-6-luna",
            openai_api_key="a key of the tests", openai_base_url=stand_in.base_url,
        )  # fmt: skip
        app = create_app(settings, workers=1, runtime=scripted_runtime(judges, {URL: PAGE}, data_folder=data))
        with served(app) as url:
            for run in ("monday", "tuesday"):
                results = await judge_run(url, "walker", run, dict.fromkeys(TASKS, (RIGHT, WRONG)))
            asked = len(stand_in.calls)
            monkeypatch.setenv("ASSAY_DATA_DIR", str(data))
            monkeypatch.setenv("ASSAY_DATABASE_URL", database_url)
            arguments = ("judges", "succession", "openai/gpt-6-luna", "lexical", "--url", url, "--json")
            ended = await asyncio.to_thread(assay, *arguments)
            other = await asyncio.to_thread(assay, "judges", "succession", "gpt-4", "lexical", "--url", url)
        assert len(stand_in.calls) == asked
    assert ended.code == 100, ended.err
    found = json.loads(ended.out[ended.out.index("{\n") :])
    (group,) = found["groups"]
    assert (group["name"], group["tasks"], group["answers"], group["leaves"]) == ("walker", 3, 3, 6)
    assert (group["old"]["low"], found["not_judged"]) == (0.5, [])
    assert {flip["result_id"] for flip in found["flips"]} <= set(results.values())
    assert found["verdicts"]["both_passed"] + found["verdicts"]["only_old_passed"] == 3
    assert other.code == 2 and "gpt-6-luna (12)" in other.err
