"""``assay conformance``: check the suites against golden cases."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.errors import Exit
from app.console.streams import stderr_console, stdout_console

MAX_SHOWN_CHARS = 2_000
"""Maximum characters per printed value. Long texts are cut to the part around the first difference."""
_LEAD_CHARS = 40


class Suite(StrEnum):
    """Suites with golden cases."""

    MIND2WEB = "mind2web"


def conformance(
    suite: Annotated[Suite, typer.Argument(help="Suite to check. mind2web: both step suites.")],
    files: Annotated[list[Path], typer.Argument(help="Golden files. Their keys determine their kind.")],
) -> None:
    """Check golden cases and print the failures. The last line is `N passed, M failed`."""
    from judges.suites.conformance.golden_files import check_file
    from judges.suites.errors import SuiteError

    console, notes = stdout_console(), stderr_console()
    passed = failed = 0
    for path in files:
        try:
            report = check_file(path)
        except SuiteError as error:
            failed += 1
            console.print_line(f"FAILED {path}: {error}")
            continue
        passed, failed = passed + report.passed, failed + report.failed
        for failure in report.failures:
            expected, actual = _cut_to_difference(failure.expected, failure.got)
            console.print_line(f"FAILED {failure.file}: {failure.case}: {failure.field}")
            console.print_line(f"  expected  {expected}\n  got       {actual}")
        for case, key in report.not_checked:
            notes.print_line(f"not checked: {report.file}: {case}: {key}")
        line = f"{report.file}: {report.kind}, {report.passed} passed, {report.failed} failed"
        notes.print_line(line)
    console.print(f"{passed} passed, {failed} failed", markup=False)
    if failed:
        raise typer.Exit(Exit.FAILED)


def _cut_to_difference(expected: Any, actual: Any) -> tuple[str, str]:
    """Return both values as JSON. Long texts start shortly before the first difference."""
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in (expected, actual)]
    if max(map(len, texts)) <= MAX_SHOWN_CHARS:
        return texts[0], texts[1]
    difference = next((n for n, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(0, difference - _LEAD_CHARS)
    cut = [("..." if start else "") + text[start : start + MAX_SHOWN_CHARS] for text in texts]
    return cut[0], cut[1]
