"""Check the step suites against golden files: ``python scripts/conformance.py mind2web FILE ...``.

Prints the failures. The last line is ``N passed, M failed``; the exit code is 0 only without failures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from golden.golden_files import check_file

from judges.suites.errors import SuiteError

MAX_SHOWN_CHARS = 2_000
"""Maximum characters per printed value. Long texts are cut to the part around the first difference."""
_LEAD_CHARS = 40


def main() -> int:
    """Check the files of the command line and return the exit code."""
    parser = argparse.ArgumentParser(description="Check the step suites against golden files.")
    parser.add_argument("suite", choices=["mind2web"], help="suite to check; mind2web: both step suites")
    parser.add_argument("files", nargs="+", type=Path, help="golden files; their keys determine their kind")
    passed = failed = 0
    for path in parser.parse_args().files:
        try:
            report = check_file(path)
        except SuiteError as error:
            failed += 1
            print(f"FAILED {path}: {error}")
            continue
        passed, failed = passed + report.passed, failed + report.failed
        for failure in report.failures:
            expected, actual = _cut_to_difference(failure.expected, failure.got)
            print(f"FAILED {failure.file}: {failure.case}: {failure.field}")
            print(f"  expected  {expected}\n  got       {actual}")
        for case, key in report.not_checked:
            print(f"not checked: {report.file}: {case}: {key}", file=sys.stderr)
        print(f"{report.file}: {report.kind}, {report.passed} passed, {report.failed} failed", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _cut_to_difference(expected: Any, actual: Any) -> tuple[str, str]:
    """Return both values as JSON. Long texts start shortly before the first difference."""
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in (expected, actual)]
    if max(map(len, texts)) <= MAX_SHOWN_CHARS:
        return texts[0], texts[1]
    difference = next((n for n, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(0, difference - _LEAD_CHARS)
    cut = [("..." if start else "") + text[start : start + MAX_SHOWN_CHARS] for text in texts]
    return cut[0], cut[1]


if __name__ == "__main__":
    sys.exit(main())
