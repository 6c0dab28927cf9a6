"""Import of task files one after the other, with a report of their problems. Runs in a child of the fork server.

The child receives a JSON line with the paths. It sends a JSON line when it is ready and one per file: the problem as
text, the declaration of a native judge, or null for a valid public script.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from judges.errors import JudgeNotLoadable
from judges.loader import load_judge
from judges.registry import JudgeKind
from judges.source_code import judge_import
from mind2web2.utils.load_eval_script import load_eval_script


def check_files(main_socket: socket.socket, side_socket: socket.socket) -> None:
    """Report on files in order. Entry point of ``fork_server.run_script_process``."""
    side_socket.close()
    with main_socket.makefile("rw", encoding="utf-8") as service:
        for report in (True, *json.loads(service.readline())):
            service.write(json.dumps(report if report is True else report_on(str(report))) + "\n")
            service.flush()


def report_on(path: str) -> str | dict[str, Any] | None:
    """Return a task file's problem with its traceback, a native judge's declaration, or None for a valid script."""
    try:
        judge = load_judge(Path(path))
        if judge.kind is JudgeKind.NATIVE:
            return {
                "description": judge.description,
                "version": judge.version,
                "strategy": judge.strategy.value,
                "function": judge.name,
                "forbidden_sources": [each.model_dump() for each in judge.forbidden_sources],
                "supplied_evidence": judge.supplied_evidence,
            }
        with judge_import("import failed"):
            load_eval_script(path)
    except JudgeNotLoadable as error:
        return f"{error}\n{error.traceback}"
    return None
