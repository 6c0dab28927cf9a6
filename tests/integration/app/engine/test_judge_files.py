"""Judge files that change while the service runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.engine.runtime import Runtime, open_runtime
from judges.errors import JudgeNotLoadable
from tests.fakes.settings import settings_for_tests

PYTHON = """
from judges.registry import judge

@judge(task="{task}", description="Name the capital.", version="{version}")
async def native(ctx):
    ctx.check("paris", "Paris" in ctx.answer.text)
"""
YAML = """format: 1
version: "{version}"
description: Name the capital.
fields: {{capital: }}
rubric:
  parallel:
    given: {{check: given(capital)}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "judges"
    folder.mkdir()
    return folder


@pytest.fixture(params=[True, False], ids=["in this process", "isolated"])
async def runtime(request: pytest.FixtureRequest, tmp_path: Path, folder: Path) -> AsyncIterator[Runtime]:
    (folder / "python.py").write_text(PYTHON.format(task="python", version="1"))
    (folder / "data.yaml").write_text(YAML.format(version="1"))
    (folder / "other.yaml").write_text(YAML.format(version="1"))
    settings = settings_for_tests(data_dir=tmp_path / "data", judges=(folder,))
    async with open_runtime(settings, in_process=request.param) as runtime:
        yield runtime


async def test_changed_file_is_loaded_again(runtime: Runtime, folder: Path):
    other = runtime.judge("other")
    before = {task: runtime.judge(task).sha256 for task in ("python", "data")}
    (folder / "python.py").write_text(PYTHON.format(task="python", version="2.1"))
    (folder / "data.yaml").write_text(YAML.format(version="2.1"))
    await runtime.reload_judges(["python"])
    assert [runtime.judge(task).version for task in ("python", "data")] == ["2.1", "1"]
    await runtime.reload_judges()
    for task in ("python", "data"):
        assert runtime.judge(task).version == "2.1"
        assert runtime.judge(task).sha256 != before[task]
    assert runtime.judge("other") is other


async def test_broken_file_is_reported_until_it_is_repaired(runtime: Runtime, folder: Path):
    (folder / "python.py").write_text("def f(:\n")
    (folder / "data.yaml").write_text(YAML.format(version="2").replace("capital)", "town)"))
    await runtime.reload_judges(["python", "data"])
    with pytest.raises(JudgeNotLoadable, match="cannot be parsed"):
        runtime.judge("python")
    with pytest.raises(JudgeNotLoadable, match=r"data\.yaml:7:26: .*town"):
        runtime.judge("data")
    (folder / "data.yaml").write_text(YAML.format(version="3"))
    await runtime.reload_judges(["data"])
    assert runtime.judge("data").version == "3"
