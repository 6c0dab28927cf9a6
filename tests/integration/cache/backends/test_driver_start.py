"""Cancelled browser starts. The driver is a program that never responds."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cache.backends.patchright import BrowserCapturer
from cache.egress.proxy import EgressProxy
from tests.fakes.processes import command_line, descendants, is_running


@pytest.fixture
def silent_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replace the driver with a program that neither reads nor writes."""
    folder = Path(tempfile.mkdtemp(prefix="assay-silent-driver-"))
    program = folder / "silent"
    program.write_text("#!/bin/sh\nwhile :; do sleep 1; done\n")
    program.chmod(0o755)
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(program))
    yield program
    shutil.rmtree(folder)


def _drivers(program: Path) -> list[psutil.Process]:
    return [process for process in descendants() if str(program) in command_line(process)]


async def test_cancelled_start_leaves_no_driver_and_no_task(silent_driver: Path) -> None:
    """A library task that waits for a driver response would prevent ``asyncio.run`` from returning."""
    async with EgressProxy() as proxy:
        before = asyncio.all_tasks()
        capturer = BrowserCapturer(Path("/bin/true"), proxy, semaphore=asyncio.Semaphore(1), allow_unsandboxed=True)
        starting = asyncio.create_task(capturer.start())
        async with asyncio.timeout(240):
            while not (drivers := _drivers(silent_driver)):  # noqa: ASYNC110 - processes have no event to wait for
                await asyncio.sleep(0.01)
            for _ in range(2):
                starting.cancel()
                await asyncio.sleep(0)
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            await capturer.aclose()
            while left := asyncio.all_tasks() - before - {starting}:
                await asyncio.wait(left)
        assert starting.cancelled()
        assert not any(map(is_running, drivers))
