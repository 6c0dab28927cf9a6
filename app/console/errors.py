"""Errors of commands, with their exit codes, and checks of their arguments.

CliError                1
├── WrongUsage          2   invalid arguments: unknown task, missing folder
├── Incomplete          3   finished, but some answers could not be judged
├── Interrupted       130   stopped by the user
└── ToolFailed          1   the command, or something it needs, failed
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


class Exit(IntEnum):
    """Exit codes of all commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INCOMPLETE = 3
    GATE_FAILED = 100
    INTERRUPTED = 130


class CliError(Exception):
    """Error that ends the command. ``hint`` tells the user what to do, in one or more lines."""

    exit_code = Exit.FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class WrongUsage(CliError):
    """An argument is invalid or names something that does not exist."""

    exit_code = Exit.USAGE


def require_folder(option: str, folder: Path) -> None:
    """Raise WrongUsage unless ``folder``, the value of ``option``, exists."""
    if not folder.is_dir():
        raise WrongUsage(f"{option} {folder}: no such folder")


def check_output(option: str, file: Path | None) -> None:
    """Raise WrongUsage if ``file``, the value of ``option``, cannot be written. Commands check it before their work."""
    if file is None:
        return
    if file.is_dir():
        raise WrongUsage(f"{option} {file}: is a folder: give the name of a file")
    if not file.parent.is_dir():
        raise WrongUsage(f"{option} {file}: no such folder {file.parent}: create it first")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise WrongUsage(f"{option} {file}: permission denied")


_UNITS_S = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def duration(text: str, *, option: str) -> timedelta:
    """Parse the value of ``option``.

    Raises:
        WrongUsage: The value is not a duration.
    """
    match = re.fullmatch(r"([0-9]{1,6})([mhdw])", text.strip().lower())
    if match is None:
        raise WrongUsage(f"{option} {text!r}: use a number followed by m, h, d or w, for example 30d")
    return timedelta(seconds=int(match[1]) * _UNITS_S[match[2]])


def reject_given(context: typer.Context, problem: str, *options: str) -> None:
    """Raise WrongUsage if one of ``options`` is given on the command line. ``problem`` follows its name."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.opts[0] in options and source is not None and source.name == "COMMANDLINE":
            raise WrongUsage(f"{parameter.opts[0]} {problem}")


class Incomplete(CliError):
    """The command finished, but some answers have an open score or no result."""

    exit_code = Exit.INCOMPLETE


class Interrupted(CliError):
    """The command was stopped by Ctrl-C (exit code 130) or SIGTERM (143). ``saved`` says what a user should know."""

    exit_code = Exit.INTERRUPTED

    def __init__(self, saved: str = "") -> None:
        super().__init__(f"Interrupted. {saved}".removesuffix(". "))


class ToolFailed(CliError):
    """A required server, browser, database or model does not work."""
