from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.main import get_group

from app.cli.program import program
from app.console import connection
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow


def test_there_are_at_most_13_commands_and_40_with_subcommands() -> None:
    def invocable(command: Any) -> int:
        below = getattr(command, "commands", {})
        return sum(map(invocable, below.values())) + (not below or command.invoke_without_command)

    top = get_group(program())
    assert len([command for command in top.commands.values() if not command.hidden]) <= 13
    assert invocable(top) <= 40


def test_no_description_in_help_is_cut_off_at_80_columns() -> None:
    def cut_off(commands: Mapping[str, Any], path: str) -> Iterator[str]:
        for name, command in commands.items():
            if command.get_short_help_str(78 - 6 - max(map(len, commands))).endswith("..."):
                yield f"{path} {name}"
            yield from cut_off(getattr(command, "commands", {}), f"{path} {name}")

    assert list(cut_off(get_group(program()).commands, "assay")) == []


def test_help_loads_no_large_library() -> None:
    code = "import sys, app.cli.program as p\ntry:\n    p.run(['--help'])\nfinally:\n    print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240)
    assert not {"asyncio", "httpx", "numpy", "pydantic", "rich"} & set(ast.literal_eval(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate",),
        ("serve", "--port", "70000"),
        ("admin", "keys", "create", "--owner", "../x"),
    ],
    ids=" ".join,
)
def test_usage_error_exits_with_2(assay: RunCommand, arguments: tuple[str, ...]) -> None:
    ended = assay(*arguments)

    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("results", "show", "res_1"),
        ("admin", "jobs", "job_1", "job_2", "--wait"),
        ("admin", "providers", "--pause", "azure", "--reason", "outage"),
    ],
    ids=" ".join,
)
def test_commands_of_a_server_ask_it(
    assay: RunCommand, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(connection, "START_S", 0.0)
    assert "no server answers at http://127.0.0.1:9" in assay(*arguments, "--url", "http://127.0.0.1:9").err


def test_command_waits_for_a_server_that_is_starting(assay: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler, bind_and_activate=False) as server:
        server.server_bind()
        answering = Thread(target=server.serve_forever)

        def start(_: float) -> None:
            server.server_activate()
            answering.start()

        monkeypatch.setattr(time, "sleep", start)
        ended = assay("results", "show", "res_1", "--url", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        answering.join()
    assert "waiting up to 20 s" in ended.err
    assert "is not an assay server" in ended.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("results", "show", "res_1", "--limit", "3"), "--limit cannot be used with the ID of a result"),
        (("admin", "jobs", "job_1", "--wait", "--cancel"), "use only one of --wait, --retry and --cancel"),
        (("admin", "restore", "backup", "--check"), "--check requires --index-only"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_do_not_belong_together_are_named(
    assay: RunCommand, arguments: tuple[str, ...], problem: str
) -> None:
    ended = assay(*arguments)

    assert ended.code == 2
    assert problem in ended.err


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
    ("arguments", "suggested"),
    [
        (("evaluat",), "'evaluate'"),
        (("evaluate", "--agent", "oter"), "otter"),
        (("evaluate", "--agent", "otter", "--task", "karow_visit"), "karrow_visit"),
        (("check", "reprot.md"), "report.md"),
        (("evaluate", "--agent", "otter", "--model", "opnai/gpt-6-luna"), "'openai/gpt-6-luna'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistyped_name_is_answered_with_the_similar_one(
    assay: RunCommand, tmp_path: Path, arguments: tuple[str, ...], suggested: str
) -> None:
    (tmp_path / "answers" / "otter" / "karrow_visit").mkdir(parents=True)
    (tmp_path / "answers" / "otter" / "karrow_visit" / "answer_1.md").write_text("An answer.")
    (tmp_path / "report.md").touch()

    ended = assay(*arguments)

    assert ended.code in (1, 2)
    assert re.search(rf"(?i)(did you mean|possible options)[^\n]*{re.escape(suggested)}", ended.err), ended.err
