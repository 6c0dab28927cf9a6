from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from app.cli.program import program
from app.console.groups import SECTIONS
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

COMMANDS = tuple(name for name, command in get_group(program()).commands.items() if not command.hidden)


def test_core_commands_are_registered() -> None:
    assert {"demo", "evaluate", "submit", "check", "results", "tasks", "pages", "serve", "admin"} <= set(COMMANDS)


def test_there_are_at_most_12_commands_and_40_with_subcommands() -> None:
    def invocable(command: Any) -> int:
        below = getattr(command, "commands", {})
        return sum(map(invocable, below.values())) + (not below or command.invoke_without_command)

    assert len(COMMANDS) <= 12
    assert invocable(get_group(program())) <= 40


def test_help_lists_every_command_with_a_description(assay: RunCommand) -> None:
    ended = assay("--help")

    assert ended.code == 0
    for command in COMMANDS:
        (line,) = [line for line in ended.out.splitlines() if line.startswith(f"  {command} ")]
        assert len(line.split()) > 4


def test_no_description_in_help_is_cut_off_at_80_columns() -> None:
    def cut_off(commands: Mapping[str, Any], path: str) -> Iterator[str]:
        for name, command in commands.items():
            if command.get_short_help_str(78 - 6 - max(map(len, commands))).endswith("..."):
                yield f"{path} {name}"
            yield from cut_off(getattr(command, "commands", {}), f"{path} {name}")

    assert list(cut_off(get_group(program()).commands, "assay")) == []


def test_help_loads_no_library_but_typer() -> None:
    heavy = {
        "alembic",
        "asyncio",
        "fastapi",
        "httpx",
        "numpy",
        "openai",
        "pydantic",
        "pymupdf",
        "rich",
        "sqlalchemy",
        "w3lib",
    }
    code = f"""
import sys
from app.cli.program import run
try:
    run(["--help"])
except SystemExit:
    print("loaded:", sorted({heavy!r} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)

    assert done.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_describes_its_options(assay: RunCommand, command: str) -> None:
    ended = assay(command, "--help")

    assert ended.code == 0
    assert f"assay {command}" in ended.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("evaluate",),
        ("serve", "--port", "many"),
        ("serve", "--port", "70000"),
        ("submit", "a.md"),
        ("admin", "keys", "create", "--owner", "../x"),
        ("admin", "keys", "create", "--owner", "a", "--scope", "root"),
        ("admin", "keys", "create", "--owner", "a", "--expires", "soon"),
    ],
    ids=" ".join,
)
def test_usage_error_exits_with_2(assay: RunCommand, arguments: tuple[str, ...]) -> None:
    ended = assay(*arguments)

    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_help_has_sections(assay: RunCommand) -> None:
    lines = assay("--help").out.splitlines()
    headings = [line.removesuffix(":") for line in lines if re.fullmatch(r"[A-Z]\w+:", line)]

    assert headings == ["Options", *SECTIONS]
    assert {section_of(lines, command) for command in ("evaluate", "submit", "check")} == {"Evaluate"}
    assert section_of(lines, "admin") == "Operate"


def section_of(lines: list[str], command: str) -> str:
    """Return the heading above the line of a command."""
    above = lines[: next(place for place, line in enumerate(lines) if line.startswith(f"  {command} "))]
    return next(line.removesuffix(":") for line in reversed(above) if line and not line.startswith(" "))


@pytest.mark.parametrize(
    "arguments",
    [
        ("results", "show"),
        ("results", "show", "res_1"),
        ("results", "show", "--usage", "--by", "model"),
        ("admin", "jobs"),
        ("admin", "jobs", "job_1"),
        ("admin", "jobs", "job_1", "job_2", "--wait"),
        ("admin", "jobs", "job_1", "--retry"),
        ("admin", "providers", "--pause", "azure", "--reason", "outage"),
    ],
    ids=" ".join,
)
def test_commands_of_a_server_ask_it(assay: RunCommand, arguments: tuple[str, ...]) -> None:
    assert "no server answers at http://127.0.0.1:9" in assay(*arguments, "--url", "http://127.0.0.1:9").err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("results", "show", "res_1", "--limit", "3"), "--limit cannot be used with the ID of a result"),
        (("results", "show", "res_1", "--usage"), "--usage cannot be used with the ID of a result"),
        (("results", "show", "--by", "model"), "--by requires --usage"),
        (("results", "show", "--usage", "--limit", "3"), "--limit cannot be used with --usage"),
        (("tasks", "show", "sky", "--schema"), "--schema cannot be used with a task"),
        (("admin", "jobs", "--retry"), "--retry requires the ID of a job"),
        (("admin", "jobs", "job_1", "--agent", "otter"), "--agent cannot be used with the ID of a job"),
        (("admin", "jobs", "job_1", "--wait", "--cancel"), "use only one of --wait, --retry and --cancel"),
        (("admin", "jobs", "job_1", "--timeout", "3"), "--timeout requires --wait"),
        (("admin", "jobs", "job_1", "job_2"), "several jobs require --wait, --retry or --cancel"),
        (("admin", "providers", "--pause", "azure"), "--pause requires --reason"),
        (("admin", "providers", "--reason", "outage"), "--reason requires --pause"),
        (("admin", "providers", "--pause", "a", "--reason", "b", "--resume", "c"), "--pause cannot be used with"),
        (("admin", "cache", "--model", "small"), "--model requires --clear"),
        (("admin", "keys", "create"), "--owner is missing"),
        (("admin", "keys", "create", "--replaces", "k", "--scope", "read"), "--scope cannot be used with --replaces"),
        (("admin", "keys", "create", "--owner", "a", "--overlap", "2h"), "--overlap requires --replaces"),
        (("admin", "restore"), "DIR is missing"),
        (("admin", "restore", "backup", "--check"), "--check requires --index-only"),
        (("serve", "--jobs", "2"), "--jobs requires --worker-only"),
        (("serve", "--worker-only", "--port", "0"), "--port cannot be used with --worker-only"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_do_not_belong_together_are_named(
    assay: RunCommand, arguments: tuple[str, ...], problem: str
) -> None:
    ended = assay(*arguments)

    assert ended.code == 2
    assert problem in ended.err


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("assay evalu", ["evaluate"]), ("assay evaluate --mod", ["--model"]), ("assay admin pr", ["providers", "prune"])],
)
def test_shell_completes_commands_and_options(typed: str, completed: list[str]) -> None:
    request = {"_ASSAY_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    assay = Path(sys.executable).with_name("assay")

    done = subprocess.run(
        [assay], env={**os.environ, **request}, capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.split() == completed


def test_version_is_printed_with_the_commit_of_the_checkout(assay: RunCommand) -> None:
    printed = assay("--version").out

    assert re.fullmatch(r"assay 0\.\S+( \(commit [0-9a-f]{12}\))?\n", printed)
    assert ("commit" in printed) == (Path(__file__).parents[4] / ".git").exists()


def test_invalid_setting_is_reported_in_one_line(assay: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_MAX_LLM", "none")

    ended = assay("admin", "doctor")

    assert ended.code == 1
    assert "ASSAY_MAX_LLM" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("file/out", "cannot write {}: Not a directory"),
        ("loop/out", "cannot use {}: Too many levels of symbolic links"),
        ("x" * 300, "cannot use {}: File name too long"),
        ("/proc/nothing/out", "cannot create the folder /proc/nothing: No such file or directory"),
    ],
)
def test_folder_that_cannot_be_written_is_named_without_a_traceback(
    assay: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, problem: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")

    def fail(*_: object, **__: object) -> None:
        error = error_of(lambda: (tmp_path / folder).mkdir(parents=True))
        raise ExceptionGroup("", [ExceptionGroup("", [error])])

    monkeypatch.setattr("app.maintenance.doctor.run_checks", fail)
    ended = assay("admin", "doctor")

    assert (ended.code, "Traceback" in ended.err) == (1, False)
    assert problem.format(tmp_path / folder) in " ".join(ended.err.split())
    assert "--out" in ended.err and "ASSAY_DATA_DIR" in ended.err


def test_missing_file_is_a_bug_with_a_traceback(
    assay: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.maintenance.doctor.run_checks", lambda *_, **__: (tmp_path / "missing").read_text())

    with pytest.raises(FileNotFoundError):
        assay("admin", "doctor")


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        (("evaluat",), "'evaluate'"),
        (("admin", "kyes"), "'keys'"),
        (("results", "sumary"), "'summary'"),
        (("meta-eval", "bnch"), "'bench'"),
        (("evaluate", "--agnt", "otter"), "--agent"),
        (("evaluate", "--agent", "oter"), "otter"),
        (("evaluate", "--agent", "otter", "--answers", "answer"), "answers"),
        (("evaluate", "--agent", "otter", "--task", "karow_visit"), "karrow_visit"),
        (("tasks", "show", "karow_visit"), "karrow_visit"),
        (("results", "summary", "--agent", "oter", "--results", "answers"), "otter"),
        (("submit", "reprot.md", "--agent", "a", "--task", "b"), "report.md"),
        (("check", "reprot.md"), "report.md"),
        (("meta-eval", "measure", "lables.jsonl"), "labels.jsonl"),
        (("suites", "mind2web", "--data-root", "answer"), "answers"),
        (("evaluate", "--agent", "otter", "--model", "opnai/gpt-6-luna"), "'openai/gpt-6-luna'"),
        (("evaluate", "--agent", "otter", "--model", "lexcal"), "'lexical'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistyped_name_is_answered_with_the_similar_one(
    assay: RunCommand, tmp_path: Path, arguments: tuple[str, ...], suggested: str
) -> None:
    (tmp_path / "answers" / "otter" / "karrow_visit").mkdir(parents=True)
    (tmp_path / "answers" / "otter" / "karrow_visit" / "answer_1.md").write_text("An answer.")
    for name in ("report.md", "labels.jsonl"):
        (tmp_path / name).touch()

    ended = assay(*arguments)

    assert ended.code in (1, 2)
    assert re.search(rf"(?i)(did you mean|possible options)[^\n]*{re.escape(suggested)}", ended.err), ended.err


def error_of(action: Callable[[], object]) -> Exception:
    try:
        action()
    except OSError as error:
        return error
    raise AssertionError
