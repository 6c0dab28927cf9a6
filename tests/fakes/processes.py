"""Queries about other processes that tolerate a process that ends meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

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


def left_after_a_while(find: Callable[[], Sequence[psutil.Process]]) -> Sequence[psutil.Process]:
    """Wait until ``find`` returns no processes. Return those that do not end."""
    deadline = time.monotonic() + _PATIENCE_S
    while (left := find()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
