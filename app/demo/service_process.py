"""``assay serve`` as a process of its own, for as long as a block lasts: the demo talks to the real service."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from app.client import AsyncClient, ClientError
from app.errors import AppError

HOST = "127.0.0.1"
START_S = 120.0
STOP_S = 40.0
"""Longer than a worker drains."""
_POLL_S = 0.1
_LOG_TAIL_LINES = 15


class ServiceDidNotStart(AppError):
    """The service ended, or does not answer in time; the message has the end of its log."""


@asynccontextmanager
async def running_service(environment: Mapping[str, str], log: Path, *, api_key: str | None) -> AsyncIterator[str]:
    """Start the service on a free port of loopback and yield its URL once it can take work; stop it afterwards.

    ``environment`` is set on top of this process's. What the service logs goes to the file ``log``.

    Raises:
        ServiceDidNotStart: see there.
    """
    port = _free_port()
    # ``env`` sets variables for the child alone: this program's own environment is read in one module only.
    settings = [f"{name}={value}" for name, value in environment.items()]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            "env", *settings, sys.executable, "-m", "app.cli", "serve", "--host", HOST, "--port", str(port),
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    url = f"http://{HOST}:{port}"
    try:
        await _until_ready(url, process, log, api_key)
        yield url
    finally:
        await _stop(process)


async def _until_ready(url: str, process: asyncio.subprocess.Process, log: Path, api_key: str | None) -> None:
    try:
        async with asyncio.timeout(START_S), AsyncClient(url, api_key=api_key) as client:
            while process.returncode is None:
                with contextlib.suppress(ClientError):
                    if await client.healthy():
                        return
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise ServiceDidNotStart(
            f"the service is not ready after {START_S:g} s; the end of {log}:\n{_tail(log)}"
        ) from None
    raise ServiceDidNotStart(f"the service ended with code {process.returncode}; the end of {log}:\n{_tail(log)}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Ask the service to stop; what is left of its process group after STOP_S is killed."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_LOG_TAIL_LINES:])
