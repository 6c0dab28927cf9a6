"""`assay meta-eval correct` with results of a service and with result files."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from judges.analysis.labels import HumanDecision, label_from_leaf, label_line
from judges.analysis.overrides import judged_leaves
from tests.fakes.program import clean_environment, run_command
from tests.integration.app.features.comparison.judged_runs import RIGHT, TASKS, WRONG, comparison_service, judge_run

pytestmark = pytest.mark.postgres

AGENT = "walker"


@pytest_asyncio.fixture
async def results(tmp_path: Path, database_url: str) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the URL of a service and its results: in each, the judge passed the first claim and failed the second."""
    judges = tmp_path / "judges"
    judges.mkdir()
    async with comparison_service(database_url, judges, tmp_path / "data") as url:
        await judge_run(url, AGENT, None, dict.fromkeys(TASKS, (RIGHT, WRONG)))
        async with httpx.AsyncClient(base_url=url) as client:
            found = (await client.get("/v1/results", params={"agent": AGENT})).json()["items"]
        yield url, found


def write_labels(folder: Path, results: list[dict[str, Any]]) -> None:
    """Label all leaves of two answers: people say that every claim holds."""
    lines = [
        label_line(
            label_from_leaf(
                result,
                leaf.data,
                key=key,
                human=HumanDecision.PASSED,
                reviewer="Ada",
                reason="",
                at=datetime(2026, 11, 1, tzinfo=UTC),
                answer="",
            )
        )
        for result in results[:2]
        for key, leaf in judged_leaves(result).items()
    ]
    elsewhere = json.loads(lines[0]) | {"result_id": "res_elsewhere", "answer_sha256": "0" * 64}
    (folder / "labels.jsonl").write_text("".join(lines) + json.dumps(elsewhere) + "\n")


def write_result_files(folder: Path, results: list[dict[str, Any]]) -> None:
    for result in results:
        target = folder / "out" / AGENT / result["task_id"] / "answer_1" / "results"
        target.mkdir(parents=True)
        (target / "20261101_000000_answer_1.md.json").write_text(json.dumps(result))


async def correct(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await command(folder, "correct", "labels.jsonl", *arguments)


async def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(run_command, folder, clean_environment(), "meta-eval", *arguments, "--agent", AGENT)


async def test_corrected_score_stands_beside_the_raw_one(results: Any, tmp_path: Path) -> None:
    url, found = results
    await asyncio.to_thread(write_labels, tmp_path, found)
    await asyncio.to_thread(write_result_files, tmp_path, found)

    ended = await correct(tmp_path, "--url", url, "--json")

    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["score"]["raw"]["low"] == 0.5
    assert document["score"]["corrected"]["low"] > 0.8
    assert document["score"]["corrected"]["interval"]["high"] == 1.0
    assert document["judge_errors"] == {"passed": 2, "wrongly_passed": 0, "failed": 2, "wrongly_failed": 2}
    assert (document["leaves"]["judged"], document["leaves"]["labelled"]) == (6, 4)
    assert (document["unmatched_labels"], document["rule"]) == (1, "partial=failed")
    assert any("fewer than 10" in warning for warning in document["warnings"])
    from_files = await correct(tmp_path, "--results", "out", "--json")
    assert json.loads(from_files.stdout) == document
    text = await correct(tmp_path, "--results", "out")
    assert "score, corrected" in text.stdout and "random sample" in text.stdout


async def test_labels_of_other_results_are_an_error(results: Any, tmp_path: Path) -> None:
    url, found = results
    await asyncio.to_thread(write_labels, tmp_path, [dict(one, id="res_x", answer_sha256="1" * 64) for one in found])
    ended = await correct(tmp_path, "--url", url)
    assert ended.returncode == 2
    assert "none of" in ended.stderr and "result_id" in ended.stderr


def set_labels(path: Path, human: str) -> list[dict[str, Any]]:
    """Give every line of a label file this label, and return the lines."""
    lines = [json.loads(line) | {"human": human} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


async def test_random_leaves_are_drawn_for_labelling_and_used_for_the_correction(results: Any, tmp_path: Path) -> None:
    url, _ = results
    draw = partial(command, tmp_path, "sample", "labels.jsonl", "-n", "4", "--url", url)
    drawn = await draw()
    assert drawn.returncode == 0, drawn.stderr
    assert "4 of 6 judged leaves" in drawn.stderr
    lines = await asyncio.to_thread(set_labels, tmp_path / "labels.jsonl", "unclear")
    assert len({(line["result_id"], line["leaf"]) for line in lines}) == 4
    assert all(RIGHT in line["answer"] and line["pages"] for line in lines)
    unlabelled = await correct(tmp_path, "--url", url)
    assert unlabelled.returncode == 2
    await asyncio.to_thread(set_labels, tmp_path / "labels.jsonl", "passed")
    corrected = await correct(tmp_path, "--url", url, "--json")
    assert json.loads(corrected.stdout)["leaves"]["labelled"] == 4
    again = await draw()
    assert again.returncode == 2 and "Cannot write labels.jsonl" in again.stderr


async def test_summary_and_page_show_the_score_corrected_with_overrides(results: Any, tmp_path: Path) -> None:
    """The overrides are the labels of ``write_labels``, so the command gives the same figures."""
    url, found = results
    async with httpx.AsyncClient(base_url=url, timeout=240) as client:
        before = (await client.get(f"/v1/agents/{AGENT}/summary")).json()
        assert before["corrected"] is None
        assert "Corrected by" not in (await client.get(f"/agents/{AGENT}")).text
        for result in found[:2]:
            for key in judged_leaves(result):
                body = {"leaf": key, "outcome": "passed", "reason": "the page says so", "by": "Ada"}
                response = await client.post(f"/v1/results/{result['id']}/overrides", json=body)
                assert response.status_code == 201, response.text
        summary = (await client.get(f"/v1/agents/{AGENT}/summary")).json()
        page = (await client.get(f"/agents/{AGENT}/statistics")).text
    await asyncio.to_thread(write_labels, tmp_path, found)
    ended = await correct(tmp_path, "--url", url, "--json")
    assert ended.returncode == 0, ended.stderr
    document, corrected = json.loads(ended.stdout), summary["corrected"]
    assert {name: corrected[name] for name in ("score", "leaves", "judge_errors")} == {
        name: document[name] for name in ("score", "leaves", "judge_errors")
    }
    assert corrected["score"]["raw"]["low"] == pytest.approx(summary["avg_score"], abs=1e-3)
    assert corrected["warnings"][1:] == document["warnings"] and "drawn at random" in corrected["warnings"][0]
    assert corrected["score"]["corrected"]["low"] > summary["avg_score"], "people passed what the judge failed"
    assert "Corrected by 4 labels" in page
