"""Whether judge files can be imported, and what they declare: found out in a child process, which has no key, before
anybody hands in an answer.

The child imports them one after the other. One that takes too long or takes the process down is named, and a new
child goes on behind it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any, TypeAlias

import structlog

from judges.isolation.fork_server_pool import clean_environment
from judges.registry import Judge
from rubrics.node import Strategy

_PROGRAM = "mind2web2.script_check"
START_S = 60.0
SCRIPT_S = 10.0
TOTAL_S = 180.0
_log = structlog.get_logger(__name__)


Report: TypeAlias = "str | dict[str, Any] | None"
"""What is wrong with a file; or what a native one declares; None for a public script that can be used."""


def described(judge: Judge, report: Mapping[str, Any]) -> Judge:
    """A native judge with what the child says its file declares."""
    if not report:
        return judge
    return replace(
        judge,
        description=str(report["description"]),
        version=str(report["version"]),
        strategy=Strategy(report["strategy"]),
        function=str(report["function"]),
    )


def import_reports(
    scripts: Sequence[Path], *, script_s: float = SCRIPT_S, total_s: float = TOTAL_S
) -> dict[Path, Report]:
    """What a child says of each judge file once it has imported it. Blocks.

    ``script_s`` bounds one import; what could not be looked at within ``total_s`` is taken to be sound.
    """
    found: dict[Path, Report] = {}
    left, give_up_at = list(scripts), time.monotonic() + total_s
    while left:
        report = _in_child(left, script_s, give_up_at) if time.monotonic() < give_up_at else None
        if report is None:
            _log.warning("judge scripts not checked", scripts=[path.stem for path in left])
            break
        reports, ending = report
        found |= dict(zip(left, reports, strict=False))
        left = left[len(reports) :]
        if ending is not None and left:
            found[left.pop(0)] = ending
    return found


def _in_child(scripts: Sequence[Path], script_s: float, give_up_at: float) -> tuple[list[Report], str | None] | None:
    """The child's reports on the first scripts, and what the next one did to it (None: it reported on all).

    None when the child itself did not start, which is no script's fault.
    """
    command = [sys.executable, "-P", "-m", _PROGRAM, *map(str, scripts)]
    with subprocess.Popen(  # noqa: S603 - our own program, and paths of the operator
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
        start_new_session=True,
    ) as child:
        try:
            if not _line(child, START_S):
                return None
            reports: list[Report] = []
            for _ in scripts:
                allowed_s = max(0.1, min(script_s, give_up_at - time.monotonic()))
                began = time.monotonic()
                line = _line(child, allowed_s)
                if not line.endswith(b"\n"):
                    late = time.monotonic() - began >= allowed_s
                    ending = f"takes longer than {script_s:g} s" if late else "ends the process"
                    return reports, f"importing it {ending}"
                reports.append(json.loads(line))
            return reports, None
        finally:
            _kill(child)


def _line(child: subprocess.Popen[bytes], allowed_s: float) -> bytes:
    """The next line; what there is of it when the child ended or was killed for taking too long."""
    if child.stdout is None:
        return b""
    timer = Timer(allowed_s, _kill, [child])
    timer.start()
    try:
        return child.stdout.readline()
    finally:
        timer.cancel()


def _kill(child: subprocess.Popen[bytes]) -> None:
    """The child with everything it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
