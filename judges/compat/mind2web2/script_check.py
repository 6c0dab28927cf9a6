"""Program that imports judge files one after the other and reports problems. Run it in a separate process.

It writes a JSON line when it is ready and one per file: the problem as text, the declaration of a native judge, or null
for a valid public script.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judges.errors import JudgeNotLoadable
from judges.isolation.process_limits import confine
from judges.loader import load_judge
from judges.registry import JudgeKind
from judges.source_code import judge_import
from mind2web2.utils.load_eval_script import load_eval_script

MEMORY_BYTES = 1024**3
"""Limit of address space, which is larger than resident memory."""


def main(arguments: Sequence[str]) -> None:
    """Report on files in order. ``TMPDIR`` is a folder for this process only.

    ``arguments`` are the user to change to (empty: none) and the paths of the files.
    """
    uid, *paths = arguments
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    confine(
        uid=int(uid) if uid else None,
        parent=os.getppid(),
        judge_files=[Path(path) for path in paths],
        writable=tempfile.gettempdir(),
        processes=False,
        network=False,
    )
    # Redirect the output of scripts, so that it cannot mix with the reports.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as reports:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for report in (True, *paths):
            outcome = report if report is True else report_on(str(report))
            reports.write(json.dumps(outcome) + "\n")
            reports.flush()


def report_on(path: str) -> str | dict[str, Any] | None:
    """Return a judge file's problem with its traceback, a native judge's declaration, or None for a valid script."""
    try:
        judge = load_judge(Path(path))
        if judge.kind is JudgeKind.NATIVE:
            return {
                "description": judge.description,
                "version": judge.version,
                "strategy": judge.strategy.value,
                "function": judge.name,
            }
        with judge_import("import failed"):
            load_eval_script(path)
    except JudgeNotLoadable as error:
        return f"{error}\n{error.traceback}"
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
