from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from answers.submission import Answer
from app.engine.pipeline import evaluate
from app.engine.runtime import open_runtime
from app.errors import InvalidSettings
from app.progress import Progress, Stage
from tests.fakes.settings import settings_for_tests

JUDGE = """
from judges.registry import judge

@judge(task="{task}", description="{description}")
async def native(ctx):
    ctx.check("paris", "Paris" in ctx.answer.text)
"""

SCRIPT = """
from mind2web2 import Evaluator

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="gpt-6-luna"):
    evaluator = Evaluator()
    evaluator.initialize(task_id="script", agent_name=agent_name, answer_name=answer_name, client=client,
                         task_description="Name the capital of France", answer=answer, global_cache=cache,
                         global_semaphore=semaphore, logger=logger, default_model=model)
    leaf = evaluator.add_leaf(id="named", desc="The answer names Paris")
    await evaluator.verify("The capital of France is Paris", leaf)
    evaluator.add_custom_node(answer_name.endswith(".md"), id="suffix", desc="The name has its suffix", critical=False)
    return evaluator.get_summary()
"""


@pytest.fixture
def judges(tmp_path: Path) -> Path:
    folder = tmp_path / "judges"
    folder.mkdir()
    (folder / "capital.py").write_text(JUDGE.format(task="capital", description="ours"))
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "script.py").write_text(SCRIPT)
    return folder


def settings(tmp_path: Path, **overrides):
    return settings_for_tests(data_dir=tmp_path / "data", judges=(tmp_path / "judges",), **overrides)


async def test_answer_is_judged_without_a_database(tmp_path: Path, judges: Path):
    reported: list[Progress] = []
    async with open_runtime(settings(tmp_path)) as runtime:
        answer = Answer(name="answer_1.md", text="It is Paris.")
        judge = runtime.judge("capital")
        result = await evaluate(
            runtime, judge=judge, agent="demo", answer=answer, result_id="res_1", progress=reported.append
        )
    assert (result["id"], result["final_score"], result["status"]) == ("res_1", 1.0, "complete")
    assert result["script"]["sha256"] == judge.sha256
    assert result["answer_sha256"] == answer.sha256
    assert [progress.stage for progress in reported] == sorted(
        {progress.stage for progress in reported}, key=list(Stage).index
    )
    assert (reported[-1].stage, reported[-1].leaves_done, reported[-1].leaves_total) == (Stage.STORING, 1, 1)


def temporary_secrets(folder: Path) -> list[Path]:
    return list(folder.glob(".secret*"))


async def test_installation_secret_is_created_once_and_private(tmp_path: Path):
    async def open_and_read_secret() -> bytes:
        async with open_runtime(settings_for_tests(data_dir=tmp_path)):
            return (tmp_path / "secret").read_bytes()

    secrets = await asyncio.gather(*(open_and_read_secret() for _ in range(3)))
    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert not temporary_secrets(tmp_path)


@pytest.mark.parametrize("blobs", ["ftp://host/folder", "file:///proc/nothing/here"])
async def test_unusable_blob_store_is_rejected_with_setting_name(tmp_path: Path, blobs: str):
    with pytest.raises(InvalidSettings, match="ASSAY_BLOBS"):
        async with open_runtime(settings_for_tests(data_dir=tmp_path, blobs=blobs)):
            pass


async def test_data_folder_that_is_a_file_is_rejected(tmp_path: Path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(InvalidSettings, match="cannot be used"):
        async with open_runtime(settings_for_tests(data_dir=tmp_path / "data")):
            pass
