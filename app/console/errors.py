"""How a command ends when it does not end well, and with which exit code.

CliError                1
├── WrongUsage          2   the call cannot mean anything: unknown task, folder that is not there
├── Incomplete          3   done, but some answers could not be judged
├── Interrupted       130   the user asked it to stop
└── ToolFailed          1   the tool, or something it needs, does not work
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INCOMPLETE = 3
    GATE_FAILED = 100
    INTERRUPTED = 130


class CliError(Exception):
    """Ends the command. ``hint`` is the remedy, one or more whole lines; None where there is nothing to say."""

    exit_code = Exit.FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class WrongUsage(CliError):
    """Something the caller typed does not exist or does not fit."""

    exit_code = Exit.USAGE


class Incomplete(CliError):
    """Everything was done that could be, and some answers have no certain score."""

    exit_code = Exit.INCOMPLETE


class Interrupted(CliError):
    """Stopped by Ctrl-C or SIGTERM before it was done."""

    exit_code = Exit.INTERRUPTED


class ToolFailed(CliError):
    """A server, a browser, a database or a model that is needed does not work."""
