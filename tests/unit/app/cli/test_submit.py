from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.console.answer_files import read_answers
from app.console.connection import URL
from app.console.errors import WrongUsage
from assay_client import DEFAULT_URL
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


REPLIES = Path(__file__).parents[2] / "answers/replies"


def reply_file(folder: Path, name: str) -> Path:
    case = json.loads((REPLIES / f"{name}.json").read_text(encoding="utf-8"))
    path = folder / "answer_1.json"
    path.write_text(json.dumps(case["reply"]), encoding="utf-8-sig")
    return path


def test_json_file_is_the_reply_of_a_provider(tmp_path: Path) -> None:
    ((name, text),) = read_answers(reply_file(tmp_path, "perplexity_chat"))

    assert name == "answer_1"
    assert "です。[[1]](https://ja.example.org/wiki/東京都)" in text


def test_cited_files_of_a_reply_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_answers(reply_file(tmp_path, "anthropic_messages"))

    assert "cited sources that are no web pages get no link: bridges.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b"[]", "invalid reply"),
        (b'{"output": []}', "invalid reply"),
        (b'{"content": [{"type": "text", "text": 1}]}', "invalid reply"),
    ],
)
def test_json_file_that_is_no_reply_is_a_usage_error(
    assay: RunCommand, tmp_path: Path, content: bytes, error: str
) -> None:
    (tmp_path / "answer_1.json").write_bytes(content)

    ended = assay("submit", "answer_1.json", *FOR_BRIDGE, "--url", UNUSED_URL)

    assert (ended.code, ended.out) == (2, "")
    assert error in ended.err


def test_folder_without_answers_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"no answer_<k>\.md"):
        read_answers(tmp_path)


def test_missing_path_is_reported(assay: RunCommand) -> None:
    ended = assay("submit", "missing.md", *FOR_BRIDGE)

    assert (ended.code, ended.out) == (2, "")
    assert "missing.md" in ended.err


@pytest.mark.parametrize(("option", "other"), [("--agent", "--task"), ("--task", "--agent"), ("--run", None)])
def test_invalid_name_is_reported_without_a_server(
    assay: RunCommand, tmp_path: Path, option: str, other: str | None
) -> None:
    (tmp_path / "answer_1.md").write_text("text")
    valid = FOR_BRIDGE if other is None else (other, "otter")

    ended = assay("submit", "answer_1.md", *valid, option, "a b", "--url", UNUSED_URL)

    assert (ended.code, ended.out) == (2, "")
    assert f"{option} 'a b' must be 1 to 100 letters" in ended.err


def test_unreachable_server_error_says_how_to_start_one(assay: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "answer_1.md").write_text("text")

    ended = assay("submit", "answer_1.md", *FOR_BRIDGE, "--url", UNUSED_URL)

    assert (ended.code, ended.out) == (1, "")
    assert UNUSED_URL in ended.err
    assert "assay serve" in ended.err


@pytest.mark.parametrize(
    "command", [("admin", "jobs"), ("results", "show"), ("results", "summary", "--agent", "otter")]
)
def test_every_client_command_reports_an_unreachable_server(assay: RunCommand, command: tuple[str, ...]) -> None:
    ended = assay(*command, "--url", UNUSED_URL)

    assert ended.code == 1
    assert "assay serve" in ended.err


def test_default_url_is_that_of_the_client() -> None:
    assert URL == DEFAULT_URL


def test_url_without_a_scheme_is_a_usage_error(assay: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "answer_1.md").write_text("text")

    assert assay("submit", "answer_1.md", *FOR_BRIDGE, "--url", "localhost:8000").code == 2
