"""The start script, run for real with a harmless program in the browser's place."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from cache.backends.browser_process import Launch, prepare_launch
from cache.errors import BrowserUnavailable
from tests.fakes.processes import lives

STAND_IN = """#!/bin/sh
while :; do sleep 1; done
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may read: who runs the browser is not who runs the tests."""
    made = Path(tempfile.mkdtemp(prefix="assay-launching-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@asynccontextmanager
async def _started(folder: Path) -> AsyncIterator[tuple[Launch, asyncio.subprocess.Process]]:
    (folder / "profile").mkdir()
    stand_in = folder / "stand-in"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    launch = await asyncio.to_thread(prepare_launch, stand_in, allow_unsandboxed=True)
    # A session of its own, as the browser's driver gives it: its number is then its group's.
    process = await asyncio.create_subprocess_exec(
        launch.script, f"--user-data-dir={folder / 'profile'}", env=launch.environment, start_new_session=True
    )
    try:
        # Behind its interpreter: further back it is named by what gives up the privileges, before it has.
        await _until(lambda: str(stand_in) in psutil.Process(process.pid).cmdline()[:2])
        yield launch, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_script_becomes_the_browser_with_no_privileges_and_little_environment(folder: Path) -> None:
    async with _started(folder) as (launch, process):
        assert launch.browser_pid() == process.pid
        assert psutil.Process(process.pid).uids().real != 0
        status = await asyncio.to_thread(Path(f"/proc/{process.pid}/status").read_text)
        assert "CapEff:\t0000000000000000" in status
        assert "NoNewPrivs:\t1" in status
        assert set(psutil.Process(process.pid).environ()) <= {*launch.environment, "PWD", "OLDPWD", "_"}
        launch.cut()


async def test_cutting_the_lifeline_ends_the_whole_group_and_tidies_up(folder: Path) -> None:
    async with _started(folder) as (launch, process):
        offspring = psutil.Process(process.pid).children()
        assert offspring
        launch.cut()
        assert await asyncio.wait_for(process.wait(), 120) == -9
        await _until(lambda: not any(map(lives, offspring)))
        await _until(lambda: not (folder / "profile").exists() and not launch.folder.exists())


async def test_a_group_that_has_become_somebody_elses_is_left_alone(folder: Path) -> None:
    async with _started(folder) as (launch, process):
        process.kill()
        await process.wait()
        launch.cut()
        await _until(lambda: not (folder / "profile").exists())


def test_a_browser_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(BrowserUnavailable, match="browser not found"):
        prepare_launch(folder / "chromium", allow_unsandboxed=False)


async def _until(holds: Callable[[], bool], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - processes have no event to wait for
            await asyncio.sleep(0.02)
