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
