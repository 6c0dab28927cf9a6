from __future__ import annotations

import shutil
import webbrowser
from pathlib import Path

import pytest

from tests.compat.reported import write_project
from tests.unit.app.conftest import RunCommand
from tests.unit.app.features.check.checked import checked_report


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that the command opens instead of a browser."""
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", found.append)
    return found


def test_report_of_results_is_written_and_opened(assay: RunCommand, tmp_path: Path, opened: list[str]) -> None:
    write_project(tmp_path, 1)
    agent = tmp_path / "eval_results" / "me"
    [result] = agent.glob("*/answer_1/results/*.json")
    for path in (tmp_path / "eval_results", agent, result):
        assert assay("view", str(path)).code == 0
    assert opened == [(agent / "report.html").as_uri()] * 3
    assert "<html" in (agent / "report.html").read_text()


def test_check_is_shown_from_its_json(assay: RunCommand, tmp_path: Path, opened: list[str]) -> None:
    document, _ = checked_report()
    written = tmp_path / "check.json"
    written.write_text(document.model_dump_json())
    assert assay("view", str(written)).code == 0
    page = Path(opened[0].removeprefix("file://"))
    assert 'data-statement="0"' in page.read_text()
    shutil.rmtree(page.parent)
    written.write_text('{"statements": []}')
    refused = assay("view", str(written))
    assert (refused.code, len(opened)) == (2, 1)
    assert "check.json: status: Field required" in refused.err


def test_file_is_opened_and_anything_else_is_refused(assay: RunCommand, tmp_path: Path, opened: list[str]) -> None:
    page = tmp_path / "check.html"
    page.write_text("<html></html>")
    assert assay("view", str(page)).code == 0
    assert assay("view", str(tmp_path)).code == 2
    assert "no such file" in assay("view", "nowhere").err
    assert opened == [page.as_uri()]
