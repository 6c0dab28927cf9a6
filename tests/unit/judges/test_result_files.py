from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judges.result import AnswerFolder, judged_answers, judged_tasks, write_json

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def folder(out: Path, name: str = "answer_2.md") -> AnswerFolder:
    return AnswerFolder(out=out, agent="otter", task_id="bridge", answer_name=name)


def test_result_file_path_follows_the_public_layout(tmp_path: Path) -> None:
    base = tmp_path / "otter" / "bridge" / "answer_2"

    assert folder(tmp_path).result_path(AT) == base / "results" / "20260304_050607_answer_2.md.json"
    assert folder(tmp_path).result_path(AT, debug=True) == base / "results" / "20260304_050607_answer_2.md_debug.json"
    assert folder(tmp_path).answer_copy == base / "answer_2.md"
    assert folder(tmp_path).logs == base / "logs"


def test_newest_result_is_the_last_by_name_and_not_a_debug_file(tmp_path: Path) -> None:
    results = folder(tmp_path).results
    results.mkdir(parents=True)
    for name in (
        "20260304_050607_answer_2.md.json",
        "20251231_235959_answer_2.md.json",
        "20270101_000000_answer_2.md_debug.json",
        "20280101_000000_answer_3.md.json",
    ):
        (results / name).write_text("{}")

    newest = folder(tmp_path).newest_result()

    assert newest is not None
    assert newest.name == "20260304_050607_answer_2.md.json"


def test_answer_without_result_is_not_listed(tmp_path: Path) -> None:
    for name in ("answer_1.md", "answer_2.md"):
        folder(tmp_path, name).results.mkdir(parents=True)
    folder(tmp_path).result_path(AT).write_text("{}")
    (tmp_path / "otter" / "summary.json").write_text("{}")

    assert judged_tasks(tmp_path, "otter") == ["bridge"]
    assert [one.answer_name for one in judged_answers(tmp_path, "otter", "bridge")] == ["answer_2.md"]


def test_json_file_is_indented_at_any_depth(tmp_path: Path) -> None:
    document: dict[str, Any] = {"text": "\ud800 é", "at": AT, "share": 0.1, "empty": []}
    for _ in range(400):
        document = {"inner": document}

    write_json(tmp_path / "result.json", document)

    text = (tmp_path / "result.json").read_text("utf-8")
    assert text == json.dumps(document, ensure_ascii=False, indent=2, default=str).replace("\ud800", "?") + "\n"
