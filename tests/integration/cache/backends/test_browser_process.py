"""The browser start script, run with a harmless program as the browser."""

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
from tests.fakes.processes import is_running

STAND_IN = """#!/bin/sh
sleep 10000 &
while :; do sleep 1; done
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """World-readable folder, because the browser runs as a different user than the tests."""
    made = Path(tempfile.mkdtemp(prefix="assay-launching-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@asynccontextmanager
async def _started_browser(folder: Path) -> AsyncIterator[tuple[Launch, asyncio.subprocess.Process]]:
    (folder / "profile").mkdir()
    stand_in = folder / "stand-in"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    launch = await asyncio.to_thread(prepare_launch, stand_in, allow_unsandboxed=True)
    # A separate session as from the browser driver, so that the session id is also the group id.
    process = await asyncio.create_subprocess_exec(
        launch.script, f"--user-data-dir={folder / 'profile'}", env=launch.environment, start_new_session=True
    )
    try:
        # The first two arguments are interpreter and program once the script has dropped its privileges.
        # Before that, the program appears further back.
        await _wait_until(lambda: str(stand_in) in psutil.Process(process.pid).cmdline()[:2])
        await _wait_until(lambda: bool(psutil.Process(process.pid).children()))
        yield launch, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_browser_runs_without_privileges_and_with_minimal_environment(folder: Path) -> None:
    async with _started_browser(folder) as (launch, process):
        assert launch.browser_pid() == process.pid
        assert psutil.Process(process.pid).uids().real != 0
        status = await asyncio.to_thread(Path(f"/proc/{process.pid}/status").read_text)
        assert "CapEff:\t0000000000000000" in status
        assert "NoNewPrivs:\t1" in status
        assert set(psutil.Process(process.pid).environ()) <= {*launch.environment, "PWD", "OLDPWD", "_"}
        offspring = psutil.Process(process.pid).children()
        assert offspring
        launch.kill()
        assert await asyncio.wait_for(process.wait(), 240) == -9
        await _wait_until(lambda: not any(map(is_running, offspring)))
        await _wait_until(lambda: not (folder / "profile").exists() and not launch.folder.exists())


async def _wait_until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - processes have no event to wait for
            await asyncio.sleep(0.02)
