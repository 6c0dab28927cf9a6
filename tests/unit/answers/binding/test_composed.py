"""Composed reports in the forms that agents use, with their bindings: see ``composed/``.

Each file has several reports. ``%% NAME`` begins a report and ``%% truth`` its bindings: ``STATEMENT => URL ...``,
with ``~`` before a truncated URL, and ``? URL`` for a URL that is not bound. ``…`` stands for the rest of a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from answers.binding import bind

Reports = dict[str, tuple[str, list[str]]]


def _reports() -> Iterator[tuple[str, str, list[str]]]:
    for file in sorted((Path(__file__).parent / "composed").glob("*.txt")):
        parts = re.split(r"^%% (.+)\n", file.read_text("utf-8"), flags=re.MULTILINE)[1:]
        for name, report, truth in zip(parts[::4], parts[1::4], parts[3::4], strict=True):
            yield f"{file.stem}: {name}", report, truth.splitlines()


REPORTS = list(_reports())


def test_there_are_six_reports_of_each_form() -> None:
    assert len(REPORTS) == 60


@pytest.mark.parametrize(("report", "truth"), [each[1:] for each in REPORTS], ids=[each[0] for each in REPORTS])
def test_statements_are_bound_to_the_nearest_source_and_every_url_is_listed(report: str, truth: list[str]) -> None:
    binding = bind(report)
    shown = [("~" if source.truncated else "") + (source.url or "") for source in binding.sources]
    found: dict[str, set[str]] = {}
    for mark in binding.marks:
        if mark.source is not None:
            statement = " ".join(report[mark.statement_start : mark.statement_end].split())
            found.setdefault(statement, set()).add(shown[mark.source])
    expected: dict[str, set[str]] = {}
    for line in truth:
        if " => " in line:
            written, _, urls = line.rpartition(" => ")
            beginning = written.removesuffix("…")
            matching = [
                each for each in found if each == written or (beginning != written and each.startswith(beginning))
            ]
            expected[matching[0] if len(matching) == 1 else written] = set(urls.split())
    assert found == expected
    unbound = {line.removeprefix("? ") for line in truth if line.startswith("? ")}
    assert {shown[index] for index in range(len(shown)) if binding.sources[index] in binding.unused()} == unbound
