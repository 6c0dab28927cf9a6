"""Judge files in child processes, through the whole evaluation and with the command line's settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent

import pytest

from answers.submission import Answer
from app.engine.judge_files import load_catalogue
from app.engine.pipeline import JudgingCase, evaluate
from app.engine.runtime import open_runtime
from judges.errors import JudgeBug, ScriptStopped
from judges.registry import JudgeKind
from rubrics.tree import Strategy
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")
NATIVE = """
    import os
    from judges.registry import judge
    from rubrics.tree import Strategy

    @judge(task="{task}", description="What is asked", version="7", strategy=Strategy.SEQUENTIAL)
    async def mine(ctx):
        ctx.check("said", "lamp" in ctx.answer.text)
        {body}
"""
ANSWER = Answer(name="answer_1.md", text="a lamp, says nobody")


def native(folder: Path, task: str, body: str = "ctx.check('alone', os.getpid())", above: str = "") -> Path:
    path = folder / f"{task}.py"
    path.write_text(dedent(NATIVE).format(task=task, body=body) + dedent(above), "utf-8")
    return path


async def test_hanging_script_ends_in_time_and_others_are_judged(tmp_path: Path):
    native(tmp_path, "hangs", "__import__('time').sleep(600)")
    native(tmp_path, "dies", "os._exit(3)")
    native(tmp_path, "well")
    settings = settings_for_tests(judges=(tmp_path,), data_dir=tmp_path / "data", job_deadline_s=8.0)
    async with open_runtime(settings) as runtime:
        assert runtime.process_pool is not None
        await runtime.process_pool.wait_until_running()
        hung, died, well = await asyncio.gather(
            *(
                evaluate(runtime, JudgingCase(judge=runtime.judge(task), agent="me", answer=ANSWER))
                for task in ("hangs", "dies", "well")
            ),
            return_exceptions=True,
        )
    assert isinstance(hung, ScriptStopped) and hung.limit == "time"
    assert isinstance(died, JudgeBug) and "exited (status 3)" in str(died)
    assert isinstance(well, dict) and well["final_score"] == 1.0


async def test_catalogue_loads_judge_files_in_a_child_process(tmp_path: Path):
    native(tmp_path, "sound")
    native(tmp_path, "raises", above="raise ValueError('boom')\n")
    native(tmp_path, "leaves", above="os._exit(0)\n")
    catalogue = await load_catalogue(settings_for_tests(judges=(tmp_path,)))
    sound = catalogue.judges["sound"]
    assert (sound.kind, sound.version, sound.name, sound.strategy) == (
        JudgeKind.NATIVE,
        "7",
        "mine",
        Strategy.SEQUENTIAL,
    )
    assert sound.description == "What is asked"
    assert sound.coroutine is None
    assert {"raises", "leaves"} <= catalogue.broken.keys()
    assert "boom" in catalogue.broken["raises"]
    assert "ends the process" in catalogue.broken["leaves"]
