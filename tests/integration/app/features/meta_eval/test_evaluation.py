"""Meta-evaluation of a judge with judged answers and labels on them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from app.demo.expected import examples_dir, page_texts
from app.engine.pipeline import JudgingCase, evaluate
from app.engine.runtime import Runtime, open_runtime
from app.engine.text_judging import TextCapturer, runtime_with_pages
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from cache.blobs import BlobStore
from cache.capture_index import CaptureIndex, FolderIndex
from cache.pages import PageCache
from judges.analysis.labels import HumanDecision, label_from_leaf, label_line
from judges.analysis.overrides import judged_leaves
from tests.fakes.settings import settings_for_tests
from tests.fakes.warm_start import warm_assay

TEXTS = page_texts()
TASK = "pellard_gauges"


def label_lines(result: dict[str, Any], answer: str) -> str:
    """Return labels of a person who agrees with the judge on all but one leaf."""
    return "".join(
        label_line(
            label_from_leaf(
                result,
                node.data,
                key=key,
                human=HumanDecision.FAILED if key == "gauges/heron_2/price" else HumanDecision(node.outcome.value),
                reviewer="Ada",
                reason="I looked.",
                at=datetime(2026, 3, 1, tzinfo=UTC),
                answer=answer,
            )
        )
        for key, node in judged_leaves(result).items()
    )


async def judge_demo(runtime: Runtime, agent: str = "demo") -> tuple[dict[str, Any], str]:
    text = (examples_dir() / agent / TASK / "answer_1.md").read_text("utf-8")
    answer = Answer(name="answer_1.md", text=text)
    case = JudgingCase(judge=runtime.judge(TASK), agent=agent, answer=answer, result_id="res_1")
    return await evaluate(runtime, case), text


async def capture_demo_pages(data_dir: Path, index: CaptureIndex) -> dict[str, tuple[str, str]]:
    """Capture the demo's pages into a data folder, and return (page id, digest of the text) by URL."""
    pages = PageCache(TextCapturer(TEXTS), BlobStore.open((data_dir / "blobs").as_uri()), index)
    found = {url: (await pages.get(url)).id for url in TEXTS}
    await pages.aclose()
    return {url: (page_id, hashlib.sha256(TEXTS[url].encode()).hexdigest()) for url, page_id in found.items()}


def with_stored_page_ids(result: dict[str, Any], stored: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the result with the page ids of a store."""
    pages = [page | {"page_id": stored[page["url"]][0]} for page in result["pages"] if page["url"] in stored]
    return result | {"pages": pages}


def meta_eval(folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    call = [
        warm_assay(),
        "meta-eval",
        "measure",
        "labels.jsonl",
        "--model",
        "lexical",
        "--json",
        *arguments,
    ]
    environment = {"PATH": "/usr/bin:/bin", "ASSAY_DATA_DIR": str(folder / "data"), **environment}
    ended = subprocess.run(call, cwd=folder, capture_output=True, text=True, env=environment, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


async def test_judge_is_asked_about_labelled_leaves_with_their_stored_pages(tmp_path: Path) -> None:
    settings = settings_for_tests(data_dir=tmp_path / "data", reply_cache_bytes=0)
    async with open_runtime(settings) as runtime, runtime_with_pages(runtime, TEXTS) as offline:
        result, text = await judge_demo(offline)
        stored = await capture_demo_pages(settings.data_dir, await FolderIndex.open(settings.data_dir / "captures"))
        (tmp_path / "labels.jsonl").write_text(label_lines(with_stored_page_ids(result, stored), text))
        asked = meta_eval(tmp_path)["judges"][0]

    # Eleven claims with pages and one on the answer alone. Five leaves are decided by code.
    assert (asked["n"], asked["not_judged"]) == (11, [])
    assert asked["confusion"] == {"true_positive": 10, "false_positive": 1, "false_negative": 0, "true_negative": 0}
    assert [disagreement["leaf"] for disagreement in asked["disagreements"]] == ["gauges/heron_2/price"]
    assert set(asked["prompts"]) == {"verify_answer@1", "verify_page@1"}


@pytest.mark.postgres
async def test_pages_are_found_in_the_service_database(tmp_path: Path, database: Database, database_url: str) -> None:
    settings = settings_for_tests(data_dir=tmp_path / "data", reply_cache_bytes=0)
    async with open_runtime(settings) as runtime, runtime_with_pages(runtime, TEXTS) as offline:
        result, text = await judge_demo(offline)
    stored = await capture_demo_pages(settings.data_dir, PostgresCaptureIndex(database))
    (tmp_path / "labels.jsonl").write_text(label_lines(with_stored_page_ids(result, stored), text))

    asked = meta_eval(tmp_path, ASSAY_DATABASE_URL=database_url)["judges"][0]

    assert (asked["n"], asked["not_judged"]) == (11, [])
