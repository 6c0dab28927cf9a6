"""Queries about other processes that tolerate a process that ends meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

_PATIENCE_S = 120.0


def is_running(process: psutil.Process) -> bool:
    """Return whether the process is running; a zombie is not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def command_line(process: psutil.Process) -> str:
    """Return the command line, empty if the process has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """Return all running processes below this one, or below the process with that id."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the running processes that work in this folder or name it on their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "status"]):
        places = [process.info["cwd"] or "", *(process.info["cmdline"] or [])]
        if any(str(folder) in place for place in places) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def kill_processes_of(folder: Path) -> None:
    """Kill the running processes of a folder."""
    for process in processes_of(folder):
        with suppress(psutil.Error):
            process.kill()


def left_after_a_while(find: Callable[[], Sequence[psutil.Process]]) -> Sequence[psutil.Process]:
    """Wait until ``find`` returns no processes. Return those that do not end."""
    deadline = time.monotonic() + _PATIENCE_S
    while (left := find()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
