"""Import check of task files at startup: whether they can be imported, and what they declare.

A child of the fork server imports the files one after the other. If a file takes too long or ends the process, it is
reported, and a new child continues with the next file.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import structlog

from judges.errors import IsolationFailed
from judges.isolation.fork_server_pool import ForkServerPool
from judges.registry import Judge
from rubrics.node import Strategy

_ENTRY: Final = "mind2web2.script_check:check_files"
START_S = 60.0
SCRIPT_S = 10.0
TOTAL_S = 180.0
FILES_OF_CHILD: Final = 50
MAX_REPORT_BYTES: Final = 1024 * 1024
_log = structlog.get_logger(__name__)


ImportReport: TypeAlias = "str | dict[str, Any] | None"
"""The error of a file; or the declarations of a native judge; None for a valid public script."""


def with_description(judge: Judge, report: Mapping[str, Any]) -> Judge:
    """Return a native judge with the declarations that the child reported."""
    if not report:
        return judge
    return replace(
        judge,
        description=str(report["description"]),
        version=str(report["version"]),
        strategy=Strategy(report["strategy"]),
        function=str(report["function"]),
    )


async def import_reports(
    process_pool: ForkServerPool, scripts: Sequence[Path], *, script_s: float | None = None
) -> dict[Path, ImportReport]:
    """Import the task files in a child process and return its reports.

    Files that are not checked within ``TOTAL_S``, or because no child starts, count as valid and have no report.

    Args:
        process_pool: Pool whose fork server starts the child.
        scripts: The task files.
        script_s: Time limit of one import (default: SCRIPT_S).
    """
    by_path: dict[Path, ImportReport] = {}
    remaining, give_up_at = list(scripts), time.monotonic() + TOTAL_S
    try:
        while remaining and time.monotonic() < give_up_at:
            batch = remaining[:FILES_OF_CHILD]
            reports, ending = await _run_child(process_pool, batch, script_s or SCRIPT_S, give_up_at)
            by_path |= dict(zip(batch, reports, strict=False))
            remaining = remaining[len(reports) :]
            if ending is not None:
                by_path[remaining.pop(0)] = ending
    except IsolationFailed as error:
        _log.warning("no process for task scripts", detail=str(error))
    if remaining:
        _log.warning("task scripts not checked", scripts=[path.stem for path in remaining])
    return by_path


async def _run_child(
    process_pool: ForkServerPool, scripts: Sequence[Path], script_s: float, give_up_at: float
) -> tuple[list[ImportReport], str | None]:
    """Return the child's reports on the first files, and how the next file ended it (None: all were reported).

    Raises:
        IsolationFailed: The child did not start, which is not the fault of a file.
    """
    limits = replace(process_pool.limits, cpu_s=int(TOTAL_S), processes=0)
    async with process_pool.spawn(_ENTRY, judge_files=scripts, limits=limits) as child:
        reader, writer = await asyncio.open_unix_connection(sock=child.main_socket, limit=MAX_REPORT_BYTES)
        try:
            writer.write(json.dumps([str(path) for path in scripts]).encode("ascii") + b"\n")
            if not await _line(reader, START_S):
                raise IsolationFailed("the process that imports task files does not start")
            reports: list[ImportReport] = []
            for _ in scripts:
                allowed_s = max(0.1, min(script_s, give_up_at - time.monotonic()))
                line = await _line(reader, allowed_s)
                if line is None:
                    return reports, f"importing it takes longer than {script_s:g} s"
                if not line.endswith(b"\n"):
                    return reports, "importing it ends the process"
                try:
                    reports.append(_report(line))
                except ValueError:
                    return reports, "importing it ends the process"
            return reports, None
        finally:
            writer.close()


def _report(line: bytes) -> ImportReport:
    """Parse a report. A task file can write to the connection, too.

    Raises:
        ValueError: It is not a report.
    """
    match json.loads(line):
        case str() | None as report:
            return report
        case {"description": str(), "version": str(), "strategy": strategy, "function": str()} as declared:
            Strategy(strategy)
            return dict(declared)
    raise ValueError("not a report")


async def _line(reader: asyncio.StreamReader, allowed_s: float) -> bytes | None:
    """Return the next line: incomplete if the child exited or wrote too much, None if it took too long."""
    try:
        async with asyncio.timeout(allowed_s):
            return await reader.readline()
    except TimeoutError:
        return None
    except (OSError, ValueError):  # reset by the killed child; longer than MAX_REPORT_BYTES
        return b""
