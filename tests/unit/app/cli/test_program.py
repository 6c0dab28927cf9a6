from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_group

from app.cli.program import program
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

COMMANDS = tuple(name for name, command in get_group(program()).commands.items() if not command.hidden)


def test_core_commands_are_registered() -> None:
    expected = {"demo", "serve", "worker", "submit", "evaluate", "capture", "tasks", "jobs", "results", "summary"}
    assert expected | {"keys", "prune", "backup", "restore", "doctor"} <= set(COMMANDS)


def test_help_lists_every_command_with_a_description(assay: RunCommand) -> None:
    ended = assay("--help")

    assert ended.code == 0
    for command in COMMANDS:
        (line,) = [line for line in ended.out.splitlines() if line.startswith(f"  {command} ")]
        assert len(line.split()) > 4


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
        ("keys", "create", "--owner", "../x"),
        ("keys", "create", "--owner", "a", "--scope", "root"),
        ("keys", "create", "--owner", "a", "--expires", "soon"),
    ],
    ids=" ".join,
)
def test_usage_error_exits_with_2(assay: RunCommand, arguments: tuple[str, ...]) -> None:
    ended = assay(*arguments)

    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_version_is_printed(assay: RunCommand) -> None:
    assert assay("--version").out.startswith("assay 0.")


def test_invalid_setting_is_reported_in_one_line(assay: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_MAX_LLM", "none")

    ended = assay("doctor")

    assert ended.code == 1
    assert "ASSAY_MAX_LLM" in ended.err
    assert "Traceback" not in ended.err
