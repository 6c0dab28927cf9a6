"""Questions about other processes, answered also in the moment in which the process ends."""

from __future__ import annotations

import psutil


def lives(process: psutil.Process) -> bool:
    """Whether it still runs; one that has ended and waits to be collected does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def command(process: psutil.Process) -> str:
    """Its command line; that of one which has ended is empty."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def below(pid: int | None = None) -> list[psutil.Process]:
    """Every process that this one, or the one of that number, has started and that has not ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
