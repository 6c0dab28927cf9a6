from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from conformance import main

RIGHT = {"cases": [{"id": "a", "pred": "CLICK", "gold": "CLICK", "f1_multichoice": 1.0}]}
WRONG = {"cases": [{"id": "b", "pred": "CLICK", "gold": "CLICK", "f1_multichoice": 0.5, "more": 1}]}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Run: TypeAlias = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def ran(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["conformance.py", *arguments])
        code = main()
        return Ended(code, *capsys.readouterr())

    return ran


def test_last_line_counts_cases_and_exit_code_shows_success(run: Run, tmp_path: Path) -> None:
    (tmp_path / "right.json").write_text(json.dumps(RIGHT))
    ended = run("mind2web", "right.json")
    assert (ended.code, ended.out) == (0, "1 passed, 0 failed\n")


def test_failures_name_file_case_field_and_both_values(run: Run, tmp_path: Path) -> None:
    for name, golden in (("right.json", RIGHT), ("wrong.json", WRONG)):
        (tmp_path / name).write_text(json.dumps(golden))
    ended = run("mind2web", "wrong.json", "right.json")
    assert ended.code == 1
    assert ended.out.splitlines() == [
        "FAILED wrong.json: b: f1_multichoice",
        "  expected  0.5",
        "  got       1.0",
        "1 passed, 1 failed",
    ]
    assert "not checked: wrong.json: b: more" in ended.err


def test_files_that_cannot_be_checked_are_failures(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('{"x": 1}')
    (tmp_path / "broken.json").write_text("{")
    ended = run("mind2web", "odd.json", "broken.json", "nowhere.json")
    assert (ended.code, ended.out.splitlines()[-1]) == (1, "0 passed, 3 failed")
    assert "keys x" in ended.out
    assert "nowhere.json does not exist" in ended.out


def test_long_texts_are_shown_from_their_first_difference(run: Run, tmp_path: Path) -> None:
    raw = "Answer: B.\nAction: TYPE\nValue: " + "x" * 9000
    golden = {"cases": [{"raw": raw, "llm": {"letter": "B", "op_string": f"TYPE {'x' * 8999}y"}}]}
    (tmp_path / "long.json").write_text(json.dumps(golden))
    shown = run("mind2web", "long.json").out
    assert len(shown) < 1000
    assert "xxy" in shown


def test_unknown_suite_is_a_usage_error(run: Run) -> None:
    with pytest.raises(SystemExit) as ended:
        run("mind3web", "x.json")
    assert ended.value.code == 2
