"""``assay conformance``: run golden cases against the suites."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.errors import Exit
from app.console.streams import output, remarks

MAX_SHOWN_CHARS = 2_000
"""Of one value; what differs in a long text is shown from a little before the difference."""
_LEAD_CHARS = 40


class Suite(StrEnum):
    """What has golden cases."""

    MIND2WEB = "mind2web"


def conformance(
    suite: Annotated[Suite, typer.Argument(help="mind2web: the step suites.")],
    files: Annotated[list[Path], typer.Argument(help="Golden files; their kind is told by their keys.")],
) -> None:
    """Run golden cases and say which fail; the last line is `N passed, M failed`."""
    from judges.suites.conformance.kinds import check_file
    from judges.suites.errors import SuiteError

    console, notes = output(), remarks()
    passed = failed = 0
    for path in files:
        try:
            report = check_file(path)
        except SuiteError as error:
            failed += 1
            console.print(f"FAILED {path}: {error}", markup=False, soft_wrap=True)
            continue
        passed, failed = passed + report.passed, failed + report.failed
        for failure in report.failures:
            expected, got = _around(failure.expected, failure.got)
            console.print(f"FAILED {failure.file}: {failure.case}: {failure.field}", markup=False, soft_wrap=True)
            console.print(f"  expected  {expected}\n  got       {got}", markup=False, soft_wrap=True)
        for case, key in report.not_checked:
            notes.print(f"not checked: {report.file}: {case}: {key}", markup=False, soft_wrap=True)
        what = f"{report.file}: {report.kind}, {report.passed} passed, {report.failed} failed"
        notes.print(what, markup=False, soft_wrap=True)
    console.print(f"{passed} passed, {failed} failed", markup=False)
    if failed:
        raise typer.Exit(Exit.FAILED)


def _around(expected: Any, got: Any) -> tuple[str, str]:
    """Both as JSON; long texts from shortly before they part."""
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in (expected, got)]
    if max(map(len, texts)) <= MAX_SHOWN_CHARS:
        return texts[0], texts[1]
    parting = next((n for n, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(0, parting - _LEAD_CHARS)
    cut = [("..." if start else "") + text[start : start + MAX_SHOWN_CHARS] for text in texts]
    return cut[0], cut[1]
