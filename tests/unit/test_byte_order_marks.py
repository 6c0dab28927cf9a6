"""Files of data, tasks, labels and answers that begin with a UTF-8 byte order mark, as some editors write them."""

from __future__ import annotations

import io
import json
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answers.jsonl import read_jsonl
from answers.public_layout import read_folder
from app.console.answer_files import read_answers, read_pages, read_report_file
from judges.analysis.label_formats import read_rows as read_label_rows
from judges.analysis.labels import label_lines, parse_labels
from judges.loader import load_judge
from judges.suites.mind2web import tournament as mind2web_predictions
from judges.suites.mind2web.data import find_split
from judges.suites.multimodal import dialogue as tilde_predictions
from judges.suites.multimodal.row_files import read_row, read_rows
from mind2web2.submission import AnswerFile, load_metadata, load_task_list
from tests.fakes.mind2web import nine_steps

TASKS = json.dumps(nine_steps())
ROWS = '{"task_id": "a", "step": 1}\n\n{"task_id": "b", "step": 2}\n'
LABEL = json.dumps({"claim": "c", "label": "supported", "source_text": "s"})
TASK_YAML = "format: 1\ndescription: Which year?\nfields: {y: the year}\nrubric: {parallel: {in: {claim: 'In {y}'}}}\n"
ANSWER = "https://a.example says so\n"


def answer_file(path: Path) -> AnswerFile:
    return AnswerFile("task", 1, path.with_name("answer_1.md"))


CASES: list[tuple[str, str, Callable[[Path], Any]]] = [
    ("test_task_0.json", TASKS, lambda path: list(find_split(path, "test_task").steps())),
    ("mark_alone.jsonl", "\n" + ROWS, lambda path: (list(read_rows(path)), read_row([path], 1))),
    ("mind2web.json", '[["a_b", "1", "CLICK "]]', mind2web_predictions.read_predictions),
    ("tilde.jsonl", '\n{"task_id": "t", "step": 0, "element": "A"}\n', tilde_predictions.read_predictions),
    ("labels.jsonl", '{"human": "unclear", "claim": "It rains"}', lambda path: parse_labels(label_lines(path))),
    ("rows_of_labels.jsonl", LABEL + "\n", lambda path: list(read_label_rows(path))),
    ("task.yaml", TASK_YAML, lambda path: load_judge(path).description),
    ("tasks.csv", "task_id,domain\na,b\n", load_task_list),
    ("answer_1.md", ANSWER, read_answers),
    ("agent/task/answer_1.md", ANSWER, lambda path: read_folder(path.parents[2], "agent")),
    ("answer_1.meta.json", '{"time_seconds": 2}', lambda path: load_metadata(answer_file(path))),
    (
        "answers.jsonl",
        json.dumps({"agent": "a", "task_id": "t", "text": "x"}),
        lambda path: read_jsonl(io.BytesIO(path.read_bytes())),
    ),
    ("reply.json", '{"choices": [{"message": {"content": "x"}}]}', read_report_file),
    ("pages.json", '{"https://a.example": "text"}', read_pages),
]


@pytest.mark.parametrize(("name", "text", "read"), CASES, ids=[name for name, _, _ in CASES])
def test_byte_order_mark_is_read_over(tmp_path: Path, name: str, text: str, read: Callable[[Path], Any]):
    values = []
    for folder, start in (("plain", b""), ("marked", BOM_UTF8)):
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True)
        path.write_bytes(start + text.encode())
        values.append(read(path))
    assert values[0] == values[1]
