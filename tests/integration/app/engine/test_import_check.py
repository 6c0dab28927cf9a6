from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.engine.judge_files import import_reports, load_catalogue
from app.maintenance.doctor import State, check_judges
from judges.isolation.fork_server_pool import ForkServerPool
from tests.fakes.judge_processes import open_process_pool
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
WRITES_TO_ALL_SOCKETS = """
import os, stat
for descriptor in range(3, 100):
    try:
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            os.write(descriptor, b"no report\\n")
    except OSError:
        pass
"""


@pytest.fixture
async def process_pool() -> AsyncIterator[ForkServerPool]:
    async with open_process_pool() as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (source, _) in FAULTS.items():
        (tmp_path / f"{name}.py").write_text(source)
    for name in ("a_sound", "n_sound", "z_sound"):
        (tmp_path / f"{name}.py").write_text(SOUND)
    return tmp_path


async def test_scripts_that_fail_to_import_are_broken_tasks(folder: Path):
    settings = settings_for_tests(judges=(folder,))
    catalogue = await load_catalogue(settings)
    assert {name for name in catalogue.broken} == FAULTS.keys()
    for name, (_, why) in FAULTS.items():
        assert why in catalogue.broken[name]
        assert str(folder / f"{name}.py") in catalogue.broken[name]
    assert {"a_sound", "n_sound", "z_sound"} <= catalogue.judges.keys()
    check = await check_judges(settings)
    assert check.state is State.FAILED
    assert all(name in check.detail and why in check.remedy for name, (_, why) in FAULTS.items())


async def test_hanging_script_is_reported_and_others_are_checked(folder: Path, process_pool: ForkServerPool):
    hangs = folder / "hangs.py"
    hangs.write_text("import time\ntime.sleep(600)\n" + SOUND)
    reports = await import_reports(process_pool, [folder / "a_sound.py", hangs, folder / "raises.py"], script_s=5.0)
    assert {path for path, report in reports.items() if report} == {hangs, folder / "raises.py"}
    assert "longer than 5 s" in str(reports[hangs])


async def test_file_that_writes_to_the_connection_of_the_reports_cannot_stop_the_check(
    folder: Path, process_pool: ForkServerPool
):
    writes = folder / "a_writes.py"
    writes.write_text(WRITES_TO_ALL_SOCKETS + SOUND)
    reports = await import_reports(process_pool, [writes, folder / "raises.py"])
    assert "ends the process" in str(reports[writes])
    assert "no_such_toolkit" in str(reports[folder / "raises.py"])
