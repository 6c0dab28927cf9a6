"""``assay check FILE --bind``: JSON, table and invalid files."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from app.cli.program import run
from tests.fakes.report_documents import FIRST, SECOND, docx, html

REPORT = """# Water

Water is wet 💧 [1]. Ice is cold [2]. Fire is hot [7].

References:
[1] https://a.example/x - Title A
[2] Title B
[3] https://c.example/z - Title C
"""


def check(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(["check", *map(str, arguments)])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.md"
    path.write_text(REPORT, "utf-8")
    return path


def test_json_has_marks_and_sources(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(report, "--bind", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(mark["mark"], mark["url"], mark["title"], mark["statement"]) for mark in document["marks"]] == [
        ("[1]", "https://a.example/x", "Title A", "Water is wet 💧 [1]."),
        ("[2]", None, "Title B", "Ice is cold [2]."),
        ("[7]", None, "", "Fire is hot [7]."),
    ]
    assert [mark["source"] for mark in document["marks"]] == [0, 1, None]
    assert all(REPORT[mark["start"] : mark["end"]] == mark["mark"] for mark in document["marks"])
    assert document["sources"] == [
        {"url": "https://a.example/x", "title": "Title A", "marks": ["[1]"]},
        {"url": None, "title": "Title B", "marks": ["[2]"]},
        {"url": "https://c.example/z", "title": "Title C", "marks": []},
    ]


def test_documents_and_standard_input_are_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.docx").write_bytes(docx())
    assert check(tmp_path / "report.docx", "--bind", "--json") == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(docx())))
    written = capsys.readouterr().out
    assert check("-", "--bind", "--json") == 0
    assert capsys.readouterr().out == written
    assert [mark["url"] for mark in json.loads(written)["marks"]] == [FIRST, SECOND]
    (tmp_path / "report.md").write_bytes(html())
    assert check(tmp_path / "report.md", "--bind") == 0
    assert "is HTML but is read as Markdown" in capsys.readouterr().err


def test_missing_or_empty_file_folder_and_contradicting_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path / "none.md", "--bind") == 2
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "report.md").write_text("\n")
    assert check(tmp_path / "report.md") == 2
    assert "report.md is empty" in capsys.readouterr().err
