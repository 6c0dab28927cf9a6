"""Imports judge files, one after the other, and says what came of it. Run as a program, in a process that may die.

Writes a JSON line when it is ready and one for each file: what is wrong with it, what a native one declares, or null
for a public script that can be used.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judges.errors import JudgeNotLoadable
from judges.judge_code import judge_import
from judges.loader import load_judge
from judges.registry import JudgeKind
from mind2web2.utils.load_eval_script import load_eval_script

MEMORY_BYTES = 1024**3
"""Of address space, which is more than what is used of it."""


def main(paths: Sequence[str]) -> None:
    """Report on ``paths`` in their order."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    # What scripts print must not stand between the reports.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as reports:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for report in (True, *paths):
            said = report if report is True else report_on(str(report))
            reports.write(json.dumps(said) + "\n")
            reports.flush()


def report_on(path: str) -> str | dict[str, Any] | None:
    """What is wrong with a judge file, with its traceback; or what a native one declares; None for a sound script."""
    try:
        judge = load_judge(Path(path))
        if judge.kind is JudgeKind.NATIVE:
            return {
                "description": judge.description,
                "version": judge.version,
                "strategy": judge.strategy.value,
                "function": judge.name,
            }
        with judge_import("importing it failed"):
            load_eval_script(path)
    except JudgeNotLoadable as error:
        return f"{error}\n{error.traceback}"
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
