from __future__ import annotations

from pathlib import Path

import pytest

from app.client import DEFAULT_URL
from app.console.answer_files import read_answers
from app.console.connection import URL
from app.console.errors import WrongUsage
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

FOR_BRIDGE = ("--agent", "otter", "--task", "bridge")
UNUSED_URL = "http://127.0.0.1:9"


def test_folder_gives_its_markdown_files_by_name(tmp_path: Path) -> None:
    for name in ("answer_2.md", "answer_1.md", "notes.txt"):
        (tmp_path / name).write_text(name)

    assert read_answers(tmp_path) == [("answer_1.md", "answer_1.md"), ("answer_2.md", "answer_2.md")]


def test_file_is_one_answer_with_any_suffix(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("text")

    assert read_answers(tmp_path / "mine.txt") == [("mine.txt", "text")]


def test_file_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(WrongUsage, match="not UTF-8"):
        read_answers(tmp_path / "a.md")


def test_folder_without_answers_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"no \*\.md"):
        read_answers(tmp_path)


def test_missing_path_is_reported(assay: RunCommand) -> None:
    ended = assay("submit", "missing.md", *FOR_BRIDGE)

    assert (ended.code, ended.out) == (2, "")
    assert "missing.md" in ended.err


def test_unreachable_server_error_says_how_to_start_one(assay: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "answer_1.md").write_text("text")

    ended = assay("submit", "answer_1.md", *FOR_BRIDGE, "--url", UNUSED_URL)

    assert (ended.code, ended.out) == (1, "")
    assert UNUSED_URL in ended.err
    assert "assay serve" in ended.err


@pytest.mark.parametrize("command", [("jobs",), ("results",), ("summary", "--agent", "otter")])
def test_every_client_command_reports_an_unreachable_server(assay: RunCommand, command: tuple[str, ...]) -> None:
    ended = assay(*command, "--url", UNUSED_URL)

    assert ended.code == 1
    assert "assay serve" in ended.err


def test_default_url_is_that_of_the_client() -> None:
    assert URL == DEFAULT_URL


def test_url_without_a_scheme_is_a_usage_error(assay: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "answer_1.md").write_text("text")

    assert assay("submit", "answer_1.md", *FOR_BRIDGE, "--url", "localhost:8000").code == 2
