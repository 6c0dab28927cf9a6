from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.import_check import ImportCheck
from app.engine.runtime import load_catalogue
from app.maintenance.doctor import State, check_judges
from tests.fakes.settings import settings_for_tests

SOUND = """
print("hello from a script")
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="gpt-6-luna"):
    return {}
"""
FAULTS = {
    "raises": ("import no_such_toolkit\n" + SOUND, "No module named 'no_such_toolkit'"),
    "not_async": (SOUND.replace("async def", "def") + "\nevaluate_answer = evaluate_answer\n", "async def"),
    "lacks": (SOUND.replace("cache, semaphore, ", ""), "cache, semaphore"),
    "becomes_nothing": (SOUND + "\ndel evaluate_answer\n", "does not define evaluate_answer"),
    "exits": ("import os\nos._exit(0)\n" + SOUND, "ends the process"),
    "leaves": ("raise SystemExit(3)\n" + SOUND, "SystemExit: 3"),
    "grows": ("x = bytearray(2**40)\n" + SOUND, "MemoryError"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (source, _) in FAULTS.items():
        (tmp_path / f"{name}.py").write_text(source)
    for name in ("a_sound", "n_sound", "z_sound"):
        (tmp_path / f"{name}.py").write_text(SOUND)
    return tmp_path


def test_scripts_that_fail_to_import_are_broken_tasks(folder: Path):
    settings = settings_for_tests(judges=(folder,))
    catalogue = load_catalogue(settings)
    assert {name for name in catalogue.broken} == FAULTS.keys()
    for name, (_, why) in FAULTS.items():
        assert why in catalogue.broken[name]
        assert str(folder / f"{name}.py") in catalogue.broken[name]
    assert {"a_sound", "n_sound", "z_sound"} <= catalogue.judges.keys()
    check = check_judges(settings)
    assert check.state is State.FAILED
    assert all(name in check.detail and why in check.remedy for name, (_, why) in FAULTS.items())


def test_traceback_names_the_line(folder: Path):
    reports = ImportCheck().reports([folder / "raises.py"])
    assert 'raises.py", line 1' in str(reports[folder / "raises.py"])


def test_hanging_script_is_reported_and_others_are_checked(folder: Path):
    hangs = folder / "hangs.py"
    hangs.write_text("import time\ntime.sleep(600)\n" + SOUND)
    reports = ImportCheck(script_s=15.0).reports([folder / "a_sound.py", hangs, folder / "raises.py"])
    assert {path for path, report in reports.items() if report} == {hangs, folder / "raises.py"}
    assert "longer than 15 s" in str(reports[hangs])


def test_no_scripts_give_no_reports():
    assert ImportCheck().reports([]) == {}
