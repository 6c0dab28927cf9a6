from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.console.answer_files import read_answers
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

FOR_BRIDGE = ("--agent", "otter", "--task", "bridge")
UNUSED_URL = "http://127.0.0.1:9"


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


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe{}", "is not UTF-8"),
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


def test_unreachable_server_error_says_how_to_start_one(assay: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "answer_1.md").write_text("text")

    ended = assay("submit", "answer_1.md", *FOR_BRIDGE, "--url", UNUSED_URL)

    assert (ended.code, ended.out) == (1, "")
    assert UNUSED_URL in ended.err
    assert "assay serve" in ended.err
