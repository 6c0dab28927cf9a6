"""Judging a folder of answers: files written, results reused, and summaries."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from mind2web2 import CacheFileSys, EvaluatorConfig
from mind2web2.eval_runner import (
    ScriptsNotFound,
    evaluate_task,
    generate_result_summary,
    merge_all_results,
    resolve_scripts_dir,
)
from mind2web2.results import SCORING_VERSION
from mind2web2.utils.cache_filesys import CacheIndexError
from tests.compat.scripted import ScriptedClient

SCRIPT = """
import asyncio
from mind2web2 import Evaluator

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="gpt-6-luna"):
    if "crash" in answer:
        raise RuntimeError("the script broke")
    if "cancel" in answer:
        task = asyncio.create_task(asyncio.sleep(0))
        task.cancel()
        await task
    e = Evaluator()
    e.initialize("t", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer, global_cache=cache,
                 global_semaphore=semaphore, logger=logger, default_model=model, task_description="Find it")
    logger.info("judging %s", answer_name)
    await e.verify("it is right" if "right" in answer else "it is wrong", e.add_leaf("a", "a"))
    if "page" in answer:
        await e.verify("it is right", e.add_leaf("p", "p"), "https://a.com/page")
    e.add_custom_node(True, "t", "t", critical=False)
    return e.get_summary()
"""
STAMPED = re.compile(r"\d{8}_\d{6}_answer_1\.md\.json")


class Layout:
    """A project folder in the public layout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.out = root / "eval_results"
        self.script = root / "t.py"
        self.script.write_text(SCRIPT, "utf-8")

    def answer(self, text: str, k: int = 1, task: str = "t", agent: str = "me") -> Path:
        path = self.root / "answers" / agent / task / f"answer_{k}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def folder(self, k: int = 1, task: str = "t", agent: str = "me") -> Path:
        return self.out / agent / task / f"answer_{k}"

    async def run(self, client: Any, task: str = "t", agent: str = "me", **keywords: Any) -> list[dict[str, Any]]:
        return await evaluate_task(
            client, task, agent, self.root / "answers", self.root / "cache", self.out, self.script, **keywords
        )


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def client() -> ScriptedClient:
    return ScriptedClient({"it is wrong": False})


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def results(folder: Path) -> list[Path]:
    return sorted((folder / "results").iterdir())


async def test_result_answer_and_logs_are_written(layout: Layout):
    layout.answer("right ü")
    [result] = await layout.run(client())
    folder = layout.folder()
    [file] = results(folder)
    assert STAMPED.fullmatch(file.name)
    assert read(file) == result
    assert (result["agent_name"], result["answer_name"], result["final_score"]) == ("me", "answer_1.md", 1.0)
    assert (folder / "answer_1.md").read_text("utf-8") == "right ü"
    logs = [path.suffix for path in sorted((folder / "logs").iterdir())]
    assert logs == [".jsonl", ".log"]
    assert "judging answer_1.md" in next((folder / "logs").glob("*.log")).read_text("utf-8")
    assert list((layout.out / "me" / "t" / "main_logs").glob("*.log"))
    assert not list(layout.out.rglob("summary.json"))


async def test_overwrite_judges_again_and_supersedes_the_old_result(layout: Layout):
    layout.answer("right")
    await layout.run(client())
    [old] = results(layout.folder())
    asked = client()
    await layout.run(asked, overwrite=True)
    assert asked.calls
    new, superseded = sorted((layout.folder() / "results").iterdir())
    assert new.is_file() and superseded.name == "superseded"
    assert [path.name for path in superseded.iterdir()] == [old.name]


@pytest.mark.parametrize(
    "changed",
    [
        "answer",
        "script",
        "damaged",
        {"scoring_version": 2},
        {"evaluator_config": {"max_text_tokens": 7}},
        {"judge": {"model": "gpt-6-luna", "reasoning_effort": "max", "temperature": None}},
        {"eval_date": "2026-10-01"},
        {"model": "gpt-4.1"},
        {"status": "incomplete"},
    ],
    ids=str,
)
async def test_result_is_judged_again_when_an_input_changed(changed: str | dict[str, Any], layout: Layout):
    cache = CacheFileSys(layout.root / "cache" / "me" / "t")
    cache.put_web("https://a.com/page", "text", None)
    cache.save()
    layout.answer("right, by the page")
    await layout.run(client())
    asked = client()
    await layout.run(asked)
    assert asked.calls == []
    [path] = results(layout.folder())
    if changed == "answer":
        layout.answer("right, but otherwise")
    elif changed == "script":
        layout.script.write_text(SCRIPT + "\n# mended\n", "utf-8")
    else:
        path.write_text("{" if isinstance(changed, str) else json.dumps(read(path) | changed), "utf-8")
    await layout.run(asked)
    assert asked.calls


@pytest.mark.parametrize("text", ["crash", "cancel"])
async def test_script_without_a_result_is_recorded_and_other_answers_are_judged(text: str, layout: Layout):
    layout.answer(text, 1)
    layout.answer("right", 2)
    found = await layout.run(client())
    assert [result["answer_name"] for result in found] == ["answer_2.md"]
    note = read(layout.folder(1) / "failed.json")
    assert note["answer_name"] == "answer_1.md"
    assert ("RuntimeError: the script broke" in note["error"]) == (text == "crash")
    summary = generate_result_summary(layout.out, "me")
    assert summary is not None
    assert (summary["num_without_result"], summary["without_result"][0]["answer_name"]) == (1, "answer_1.md")
    layout.answer("right", 1)
    await layout.run(client())
    assert not (layout.folder(1) / "failed.json").exists()


async def test_broken_page_cache_raises(layout: Layout):
    layout.answer("right")
    (layout.root / "cache" / "me" / "t").mkdir(parents=True)
    (layout.root / "cache" / "me" / "t" / "index.json").write_text("[]", "utf-8")
    with pytest.raises(CacheIndexError, match=r"index\.json"):
        await layout.run(client())


async def test_result_contains_what_it_depends_on(layout: Layout):
    layout.answer("right")
    [result] = await layout.run(client())
    script = hashlib.sha256(SCRIPT.encode()).hexdigest()
    assert result["answer_sha256"] == hashlib.sha256(b"right").hexdigest()
    assert result["eval_script_sha256"] == script
    assert result["script"] == {"name": "evaluate_answer", "version": "1", "kind": "mind2web2", "sha256": script}
    assert (result["judge"], result["model"], result["eval_date"]) == (None, "gpt-6-luna", None)
    assert result["evaluator_config"] == EvaluatorConfig().as_dict()
    assert result["scoring_version"] == SCORING_VERSION
    assert set(result["judge_usage"]) == {
        "requests", "failed_requests", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens",
        "served_models", "rejections", "harness_failures",
    }  # fmt: skip


def folders(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "task.py").write_text("", "utf-8")


def test_the_newest_dated_version_of_the_scripts_is_used(tmp_path: Path):
    folders(tmp_path, "2025_07_14", "2026_10_01", "zz_drafts", ".")
    (tmp_path / "2027_01_01").mkdir()  # without scripts
    assert resolve_scripts_dir(tmp_path) == tmp_path / "2026_10_01"
    assert resolve_scripts_dir(str(tmp_path), "zz_drafts") == tmp_path / "zz_drafts"
    folders(tmp_path / "flat", "a", "b", ".")
    assert resolve_scripts_dir(tmp_path / "flat") == tmp_path / "flat"
    for version in ("c", ".."):
        with pytest.raises(ScriptsNotFound, match=str(tmp_path)):
            resolve_scripts_dir(tmp_path, version)


def scored(layout: Layout, agent: str, task: str, entries: dict[int, tuple[float, str]]) -> None:
    """Write a task folder as judging leaves it: results and copied answers by k."""
    for k, (score, text) in entries.items():
        folder = layout.folder(k, task, agent)
        (folder / "results").mkdir(parents=True)
        (folder / f"answer_{k}.md").write_text(text, "utf-8")
        (folder / "results" / f"20261001_080000_answer_{k}.md.json").write_text(json.dumps({"final_score": score}))


def test_summary_of_february_is_read_where_there_are_no_results(layout: Layout):
    entries = [{"answer_name": "answer_1.md", "score": 0.5, "status": "success", "success": False}]
    folder = layout.out / "me" / "old"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(entries), "utf-8")
    scored(layout, "me", "new", {1: (1.0, "x")})
    (layout.out / "me" / "new" / "summary.json").write_text(json.dumps(entries), "utf-8")
    merged = merge_all_results(layout.out)
    assert merged["old"]["me"] == entries
    assert [entry["score"] for entry in merged["new"]["me"]] == [1.0]


def test_results_of_all_agents_are_merged_by_task(layout: Layout):
    scored(layout, "me", "t1", {1: (1.0, "x")})
    scored(layout, "you", "t1", {1: (0.0, "x")})
    scored(layout, "you", "t2", {1: (0.5, "x")})
    merged = merge_all_results(layout.out)
    assert {task: sorted(agents) for task, agents in merged.items()} == {"t1": ["me", "you"], "t2": ["you"]}
    assert [entry["score"] for agent in ("me", "you") for entry in merged["t1"][agent]] == [1.0, 0.0]
    assert read(layout.out / "all_results.json") == merged
