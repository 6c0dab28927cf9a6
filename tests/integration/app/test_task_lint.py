"""Lint findings of native judges, in a real child process: in `assay tasks show` and `assay admin doctor`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.app.conftest import RunCommand

JUDGE = """
from pydantic import BaseModel

from judges.registry import judge


class Bridge(BaseModel):
    name: str = ""
    built: str = ""
    sources: list[str] = []


class Bridges(BaseModel):
    bridges: list[Bridge] = []


@judge(task="bridges", description="Name three bridges.")
async def bridges(ctx):
    found = await ctx.extract(Bridges, "The bridges.")
    for number, bridge in enumerate(found.bridges, start=1):
        group = ctx.parallel(f"b{number}", f"Bridge {number}")
        group.check("given", bool(bridge.name), critical=True)
        group.verify("built", CLAIM, sources=bridge.sources)
"""
REPEATED = JUDGE.replace("CLAIM", '"The bridge is old"').replace(
    "sources=bridge.sources", 'sources=["https://a.example/"]'
)
SOUND = JUDGE.replace("CLAIM", 'f"{bridge.name} was built in {bridge.built}"')
FAILING = JUDGE.replace("CLAIM", 'f"{bridge.name.split()[7]} is old"')


def judges_in(folder: Path, **sources: str) -> Path:
    folder.mkdir()
    for task, source in sources.items():
        (folder / f"{task}.py").write_text(source.replace('task="bridges"', f'task="{task}"'))
    return folder


def test_task_list_shows_lint_findings(assay: RunCommand, tmp_path: Path) -> None:
    judges_in(tmp_path / "mine", repeated=REPEATED, sound=SOUND, failing=FAILING)

    listed = json.loads(assay("tasks", "show", "--judges", "mine", "--json").out)["tasks"]
    by_id = {task["id"]: task for task in listed}
    assert [each["code"] for each in by_id["repeated"]["lint"]] == ["duplicate_text", "duplicate_text"]
    assert (by_id["sound"]["lint"], by_id["sound"]["lint_error"]) == ([], None)
    assert by_id["failing"]["lint"] is None and "made-up values" in by_id["failing"]["lint_error"]


def test_shipped_tasks_have_no_findings(assay: RunCommand) -> None:
    listed = json.loads(assay("tasks", "show", "--json").out)

    assert [task["id"] for task in listed["tasks"]] == ["karrow_visit", "pellard_gauges", "velm_directors"]
    assert [task["lint"] for task in listed["tasks"]] == [[], [], []]
    assert all(len(task["sha256"]) == 64 for task in listed["tasks"])
    assert listed["broken"] == {}
