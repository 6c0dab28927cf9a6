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
