"""Reading answers by path, and the report of other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.console.answer_files import read_answers
from app.console.judging_options import find_answers


def test_folder_gives_numbered_answers_and_reports_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    task = tmp_path / "me" / "t"
    task.mkdir(parents=True)
    for name in ("answer_1.md", "answer_1.meta.json", "draft.md", ".hidden.md"):
        (task / name).write_text("An answer.")
    assert read_answers(task) == [("answer_1.md", "An answer.")]
    reported = capsys.readouterr().err
    assert [line for line in reported.splitlines() if line] == [
        f"warning: {task / 'draft.md'} is ignored: it is not an answer_<k>.md"
    ]
    [submission] = find_answers(tmp_path, "me", [])
    assert [answer.name for answer in submission.answers] == ["answer_1.md"]
    assert capsys.readouterr().err == reported
    assert read_answers(task / "draft.md") == [("draft.md", "An answer.")]
