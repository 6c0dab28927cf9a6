"""Fixture that runs `assay` commands in this process."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

from app.cli.program import run


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str


RunCommand = Callable[..., CommandResult]


@pytest.fixture(autouse=True, scope="session")
def command_tree_built_once() -> Iterator[None]:
    """Build the tree of all commands once, because that takes longer than most of the commands under test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Run a command in an empty folder, without settings from the environment."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("ASSAY_", "OPENAI_", "AZURE_", "AWS_")):
            monkeypatch.delenv(name)

    def call(*arguments: str) -> CommandResult:
        with pytest.raises(SystemExit) as exit_info:
            run(list(arguments))
        captured = capsys.readouterr()
        return CommandResult(int(exit_info.value.code or 0), captured.out, captured.err)

    return call
