"""The command ``mind2web2``: usage, exit codes and messages of its subcommands."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from mind2web2.cli import main
from tests.compat.test_submission import write


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty project folder, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def usage_error(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_wrong_usage_exits_with_2(project: Path, capsys):
    assert usage_error() == 2
    assert usage_error("publish") == 2
    assert usage_error("validate") == 2
    assert usage_error("validate", "../me") == 2
    assert usage_error("evaluate", "me", "--task", "../t") == 2
    assert usage_error("validate", "me", "--num-runs", "0") == 2


def test_unexpected_error_is_one_line_and_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys):
    def run(arguments: object) -> int:
        raise RuntimeError("disk\nbroken \x1b[2J")

    module = types.SimpleNamespace(add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr("importlib.import_module", lambda name: module)
    assert main(["validate"]) == 1
    assert capsys.readouterr().err == "mind2web2: error: unexpected error: RuntimeError: disk broken [2J\n"


def test_validate_prints_issues_and_fails_only_on_errors(project: Path, capsys):
    write(project / "answers" / "me" / "t" / "answer_2.md")
    assert main(["validate", "me"]) == 0
    shown = capsys.readouterr().out
    assert "warning: answers/me/t: lacks answer_1.md" in shown
    assert "me: 0 errors, 1 warning" in shown
    write(project / "answers" / "me" / "t" / "answer_2.meta.json", "{")
    assert main(["validate", "me"]) == 1
    assert "error: answers/me/t/answer_2.meta.json: is not valid JSON" in capsys.readouterr().out
    assert main(["validate", "you"]) == 1
    assert "error: answers/you: the folder answers/you does not exist: create it" in capsys.readouterr().out
