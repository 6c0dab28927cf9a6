"""Reading answers by path, and the report of other files."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from app.console.answer_files import STDIN, input_file, read_answers
from app.console.errors import WrongUsage
from app.console.judging_options import find_answers
from tests.fakes.report_documents import docx, html, pdf


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


def test_documents_in_a_folder_are_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files = {"answer_10.md": b"Ten.", "answer_2.docx": docx(), "answer_3.PDF": pdf(), "answer_4.html": html()}
    for name, data in {**files, "answer_5.doc": b"x", "answer_06.docx": b"x", "notes.docx": b"x"}.items():
        (tmp_path / name).write_bytes(data)
    answers = read_answers(tmp_path)
    assert [name for name, _ in answers] == ["answer_2.md", "answer_3.md", "answer_4.md", "answer_10.md"]
    assert all("https://" in text for _, text in answers[:3])
    assert sorted(line.split()[1].rpartition("/")[2] for line in capsys.readouterr().err.splitlines() if line) == [
        "answer_06.docx", "answer_5.doc", "notes.docx",
    ]  # fmt: skip
    (tmp_path / "answer_2.html").write_bytes(html())
    with pytest.raises(WrongUsage, match=r"are the same answer"):
        read_answers(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("answer_1.docx", pdf(), "answer_1.docx is not a Word document"),
        ("answer_1.pdf", b"%PDF-", "answer_1.pdf is damaged"),
        ("answer_1.md", b"", "answer_1.md is empty"),
        ("answer_1.json", b"{}", "answer_1.json: invalid reply"),
    ],
)
def test_bad_answer_is_named(tmp_path: Path, name: str, data: bytes, message: str):
    (tmp_path / name).write_bytes(data)
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(WrongUsage) as caught:
            read_answers(path)
        assert message in str(caught.value)


def test_missing_file_is_named(tmp_path: Path):
    with pytest.raises(WrongUsage, match=r"cannot read .*none\.md: No such file"):
        read_answers(tmp_path / "none.md")


@pytest.mark.parametrize("data", [b"See https://a.example", docx(), html(), pdf()])
def test_standard_input_is_an_answer_or_a_file_that_is_read_twice(data: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    [(name, text)] = read_answers(STDIN)
    assert name == "answer_1" and "https://" in text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with input_file(STDIN) as path:
        assert path.read_bytes() == path.read_bytes() == data
    assert not path.exists()
