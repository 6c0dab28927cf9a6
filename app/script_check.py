"""Whether public judge scripts can be imported, found out in a child process before anybody hands in an answer.

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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer

import structlog

_PROGRAM = "mind2web2.script_check"
START_S = 60.0
SCRIPT_S = 10.0
TOTAL_S = 180.0
_log = structlog.get_logger(__name__)


def import_problems(
    scripts: Sequence[Path], *, script_s: float = SCRIPT_S, total_s: float = TOTAL_S
) -> dict[Path, str]:
    """What is wrong with each of ``scripts`` that cannot be used. Blocks.

    ``script_s`` bounds one import; what could not be looked at within ``total_s`` is taken to be sound.
    """
    problems: dict[Path, str] = {}
    left, give_up_at = list(scripts), time.monotonic() + total_s
    while left:
        report = _in_child(left, script_s, give_up_at) if time.monotonic() < give_up_at else None
        if report is None:
            _log.warning("judge scripts not checked", scripts=[path.stem for path in left])
            break
        reports, ending = report
        problems |= {path: report for path, report in zip(left, reports, strict=False) if report is not None}
        left = left[len(reports) :]
        if ending is not None and left:
            problems[left.pop(0)] = ending
    return problems


def _in_child(
    scripts: Sequence[Path], script_s: float, give_up_at: float
) -> tuple[list[str | None], str | None] | None:
    """The child's reports on the first scripts, and what the next one did to it (None: it reported on all).

    None when the child itself did not start, which is no script's fault.
    """
    command = [sys.executable, "-P", "-m", _PROGRAM, *map(str, scripts)]
    with subprocess.Popen(  # noqa: S603 - our own program, and paths of the operator
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        try:
            if not _line(child, START_S):
                return None
            reports: list[str | None] = []
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
