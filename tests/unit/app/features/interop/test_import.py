from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def json_lines(*answers: dict[str, object]) -> str:
    return "".join(
        json.dumps({"agent": "otter", "task_id": "bridge", "text": "Old.", **answer}) + "\n" for answer in answers
    )


def test_json_lines_become_a_folder_for_evaluate(assay: RunCommand, tmp_path: Path) -> None:
    Path("a.jsonl").write_text(json_lines({}, {"text": "New."}, {"task_id": "tower", "name": "mine"}))

    ended = assay("results", "import", "a.jsonl", "--out", "in")
    assert (ended.code, ended.out) == (0, "3 written, 0 unchanged: in\n")
    assert ended.err.startswith("warning: in/otter/tower/mine.md will not be judged")
    assert (tmp_path / "in/otter/bridge/answer_2.md").read_text() == "New."
    assert (tmp_path / "in/otter/tower/mine.md").is_file()
    assert assay("results", "import", "a.jsonl", "--out", "in").out == "0 written, 3 unchanged: in\n"


def test_existing_answer_that_differs_is_replaced_only_with_overwrite(assay: RunCommand, tmp_path: Path) -> None:
    Path("a.jsonl").write_text(json_lines({}))
    assay("results", "import", "a.jsonl")
    Path("a.jsonl").write_text(json_lines({"text": "Other."}, {"task_id": "tower"}))

    refused = assay("results", "import", "a.jsonl")
    assert refused.code == 2
    assert "answers/otter/bridge/answer_1.md" in refused.err
    assert not Path("answers/otter/tower").exists()  # all or nothing
    assert assay("results", "import", "a.jsonl", "--overwrite").code == 0
    assert Path("answers/otter/bridge/answer_1.md").read_text() == "Other."


def test_names_that_are_paths_are_rejected_by_line(assay: RunCommand, tmp_path: Path) -> None:
    Path("a.jsonl").write_text(json_lines({"agent": "../../x"}, {}, {"task_id": "/etc"}, {"name": "..", "text": "x"}))

    ended = assay("results", "import", "a.jsonl")

    assert ended.code == 2
    assert "line 1.agent" in ended.err and "line 3.task_id" in ended.err and "line 4.name" in ended.err
    assert not Path("answers").exists()


def test_supplied_pages_of_a_folder_are_imported_and_replaced_with_their_files(assay: RunCommand) -> None:
    task, pages = Path("from/otter/bridge"), Path("answers/otter/bridge/answer_1.evidence")
    (task / "answer_1.evidence").mkdir(parents=True)
    (task / "answer_1.md").write_text("Old.")
    url = "https://towns.example/caf\u00e9"
    (task / "answer_1.evidence/index.json").write_text(json.dumps([{"url": url, "file": "a.html"}]))
    (task / "answer_1.evidence/a.html").write_bytes('<meta charset="latin-1"><p>Caf\u00e9'.encode("latin-1"))

    assert assay("results", "import", "from").out == "1 written, 0 unchanged: answers\n"
    assert json.loads((pages / "index.json").read_text()) == [
        {"url": url, "html": '<meta charset="latin-1"><p>Caf\u00e9'}
    ]
    assert assay("results", "import", "from").out == "0 written, 1 unchanged: answers\n"
    assert assay("results", "import", "from", "--out", "from").code == 0

    (pages / "index.json").write_text(json.dumps([{"url": url, "file": "b.txt"}]))
    (pages / "b.txt").write_text("Another page.")
    refused = assay("results", "import", "from")
    assert (refused.code, "answer_1.evidence/index.json" in refused.err) == (2, True)
    assert assay("results", "import", "from", "--overwrite").code == 0
    assert [file.name for file in pages.iterdir()] == ["index.json"]

    (task / "answer_1.evidence/index.json").write_text(json.dumps([{"url": url, "file": "a.txt"}]))
    (task / "answer_1.evidence/a.html").rename(task / "answer_1.evidence/a.txt")
    invalid = assay("results", "import", "from", "--out", "other")
    assert (invalid.code, "answer_1.evidence.0.text: is not UTF-8" in invalid.err) == (2, True)
    assert not Path("other").exists()
