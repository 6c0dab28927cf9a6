"""Child process that runs ``assay serve`` for the demo."""

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
"""Longer than the drain timeout of a worker."""
_POLL_S = 0.1
_LOG_TAIL_LINES = 15


class ServiceDidNotStart(AppError):
    """The service exited or was not ready in time. The message contains the end of its log."""


@asynccontextmanager
async def running_service(environment: Mapping[str, str], log: Path, *, api_key: str | None) -> AsyncIterator[str]:
    """Start the service on a free loopback port, yield its URL when it is ready, and stop it at the end of the block.

    ``environment`` is added to the environment of this process. The log of the service goes to the file ``log``.

    Raises:
        ServiceDidNotStart: The service exited or was not ready in time.
    """
    port = _free_port()
    # The command ``env`` sets the variables, because only app/settings.py may access the environment.
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
        raise ServiceDidNotStart(f"the service is not ready after {START_S:g} s; end of {log}:\n{_tail(log)}") from None
    raise ServiceDidNotStart(f"the service exited with code {process.returncode}; end of {log}:\n{_tail(log)}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Terminate the service. Kill its process group if it does not exit within STOP_S."""
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
