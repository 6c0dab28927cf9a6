"""``assay evaluate`` and ``mind2web2 evaluate`` on the same answers: the same files with the same results."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mind2web2.utils.cache_filesys import CacheFileSys
from tests.compat.scripted import nodes
from tests.compat.test_eval_runner import SCRIPT
from tests.compat.test_tools import make_pdf
from tests.fakes.pages import jpeg
from tests.fakes.program import environment_for
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import warm_assay, warm_mind2web2
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule

pytestmark = pytest.mark.browser
STAMP = re.compile(r"\d{8}_\d{6}_")
OWN = {"otter/summary.json", "otter/bridge/summary.json"}
"""Our statistics, which only ``assay evaluate`` writes."""


async def run(home: Path, model: StandInLLM, *command: str | Path) -> None:
    environment = environment_for(
        home,
        ASSAY_MODEL="openai/gpt-6-luna",
        ASSAY_JUDGES=str(home / "eval_scripts"),
        OPENAI_API_KEY="sk-test",
        OPENAI_BASE_URL=model.base_url,
        MIND2WEB2_EVAL_DATE="2026-10-31",
        **sandbox_variables(),
    )
    ended = await asyncio.to_thread(
        subprocess.run, command, cwd=home, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def files(folder: Path) -> set[str]:
    """Return the written files, without stamps."""
    return {STAMP.sub("", path.relative_to(folder).as_posix()) for path in folder.rglob("*") if path.is_file()}


def only_result(folder: Path, k: int) -> dict[str, Any]:
    (path,) = (folder / "otter" / "bridge" / f"answer_{k}" / "results").glob("*.json")
    result: dict[str, Any] = json.loads(path.read_text())
    return result


async def test_both_commands_write_the_same_files(tmp_path: Path):
    (tmp_path / "eval_scripts").mkdir()
    (tmp_path / "eval_scripts" / "bridge.py").write_text(SCRIPT)
    answers = tmp_path / "answers" / "otter" / "bridge"
    answers.mkdir(parents=True)
    (answers / "answer_1.md").write_text("It is right, says [the page](https://a.com/page).")
    (answers / "answer_1.meta.json").write_text('{"time_seconds": 60}')
    (answers / "answer_2.md").write_text("It is not.")
    cache = CacheFileSys(tmp_path / "cache" / "otter" / "bridge")
    cache.put_web("https://a.com/page", "It is right, as everybody in Vellmar knows since 1764.", None)
    async with StandInLLM(rule=keyword_rule({"it is wrong": False})) as model:
        await run(tmp_path, model, warm_mind2web2(), "evaluate", "otter", "--results-dir", "theirs")
        await run(
            tmp_path, model, warm_assay(), "evaluate", "--agent", "otter", "--cache", "cache", "--out", "ours",
            "--no-cache",
        )  # fmt: skip
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    assert files(ours) == files(theirs) | OWN
    for k, score in ((1, 1.0), (2, 0.5)):
        one, two = only_result(theirs, k), only_result(ours, k)
        assert one["final_score"] == score
        assert set(one) <= set(two)
        for name in (
            "agent_name", "answer_name", "final_score", "judge_model", "extract_model", "judge", "answer_sha256",
            "eval_script_sha256", "evaluator_config", "scoring_version", "eval_date", "tree_statistics",
        ):  # fmt: skip
            assert one[name] == two[name], name
        assert one["eval_date"] == "2026-10-31"
        assert set(one["judge_usage"]) == set(two["judge_usage"])
        assert one["judge_usage"]["requests"] == two["judge_usage"]["requests"] > 0
        evidence = [{id: node["evidence"] for id, node in nodes(result).items()} for result in (one, two)]
        assert evidence[0] == evidence[1] and evidence[0]["a"] is not None
    metrics = [json.loads((folder / "otter" / "metrics.json").read_text()) for folder in (theirs, ours)]
    assert metrics[0] == metrics[1]


READER = """
from mind2web2 import Evaluator

HOST = "https://a.com"
SEEN = ("/page", "/Rules/", "/old-rules", "/report.pdf", "/gone", "/nowhere")


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize("bridge", agent_name=agent_name, answer_name=answer_name, client=client,
        task_description="Which year?", answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger)
    seen = {path: (cache.has(HOST + path), cache.lookup(HOST + path)) for path in SEEN}
    text, picture = cache.get_web(HOST + "/old-rules")
    pdf = cache.get_pdf(HOST + "/report.pdf")
    failure = cache.failure(HOST + "/gone")
    evaluator.add_custom_info({"seen": seen, "text": text, "picture": len(picture), "pdf": len(pdf),
        "strict": cache.lookup(HOST + "/RULES", ignore_case=False), "failure": failure["reason"]})
    if answer_name == "answer_2.md":
        listed = {"urls": cache.get_all_urls(), "summary": cache.summary(), "redirects": cache.redirects()}
        evaluator.add_custom_info(listed | {"failures": list(cache.failures())}, info_name="listed")
    await evaluator.verify("It is right", evaluator.add_leaf("a", "It is right"), HOST + "/OLD-RULES")
    return evaluator.get_summary()
"""


def folder_with_pages(home: Path) -> CacheFileSys:
    """Write a page cache with a cited page, and others that only a script looks for."""
    cache = CacheFileSys(home / "cache" / "otter" / "bridge")
    cache.put_pdf("https://a.com/report.pdf", make_pdf())
    cache.put_web("https://www.a.com/page", "It is right, as everybody in Vellmar knows since 1764.", None)
    cache.put_web("https://a.com/Rules", "It is right by the rules of 1764.", jpeg(), "https://a.com/old-rules")
    cache.put_web("https://a.com/unread", "It is wrong.", None)
    cache.record_failure("https://a.com/gone", "HTTP 404", gone=True)
    return cache


async def test_script_reads_the_whole_page_cache_of_its_task_in_both_commands(tmp_path: Path):
    (tmp_path / "eval_scripts").mkdir()
    (tmp_path / "eval_scripts" / "bridge.py").write_text(READER)
    answers = tmp_path / "answers" / "otter" / "bridge"
    answers.mkdir(parents=True)
    for k in (1, 2):
        (answers / f"answer_{k}.md").write_text("It is right, says [the page](https://a.com/page).")
    folder_with_pages(tmp_path)
    async with StandInLLM(rule=keyword_rule({"it is wrong": False})) as model:
        await run(tmp_path, model, warm_mind2web2(), "evaluate", "otter", "--results-dir", "theirs")
        await run(tmp_path, model, warm_assay(), "evaluate", "--agent", "otter", "--cache", "cache", "--out", "ours")
        for k in (1, 2):
            theirs, result = (only_result(tmp_path / out, k) for out in ("theirs", "ours"))
            assert result["eval_breakdown"][0]["info"] == theirs["eval_breakdown"][0]["info"]
            assert result["final_score"] == theirs["final_score"] == 1.0
            read = {"https://a.com/page", "https://a.com/Rules", "https://a.com/report.pdf"}
            assert {page["url"] for page in result["pages"]} == read | ({"https://a.com/unread"} if k == 2 else set())
        bundle = ("export", "--agent", "otter", "--results", "ours", "--cache", "cache", "--out", "otter.zip")
        await run(tmp_path, model, warm_assay(), "bundle", *bundle)
    await run(tmp_path, model, warm_assay(), "bundle", "replay", "otter.zip")
