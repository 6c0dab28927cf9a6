"""Options, errors and output that the subcommands of ``mind2web2`` share."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cache.terminal_text import strip_controls
from mind2web2.submission import TaskInfo, load_task_list

FAILED = 1
WRONG_USAGE = 2


class CommandError(Exception):
    """Error that ends a command: a message that names the file and the fix, and the exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", type=_folder_name, help="name of the agent")


def add_answers_dir(parser: argparse.ArgumentParser) -> None:
    _add_folder(parser, "--answers-dir", "answers", "folder of AGENT/TASK/answer_<k>.md files")


def add_results_dir(parser: argparse.ArgumentParser) -> None:
    _add_folder(parser, "--results-dir", "eval_results", "folder for results")


def add_cache_dir(parser: argparse.ArgumentParser) -> None:
    _add_folder(parser, "--cache-dir", "cache", "folder of page caches")


def add_task_list(parser: argparse.ArgumentParser, *, or_task: bool = False) -> None:
    """Add ``--task-list`` and, if ``or_task``, the exclusive ``--task``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--task-list",
        type=Path,
        metavar="PATH",
        help="tasks to use: CSV with a column task_id, text file with one task per line, or folder of <task>.py files "
        "(default: tasks with answers)",
    )
    if or_task:
        add_task(group)


def add_task(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--task", action="append", type=_folder_name, metavar="TASK", help="only this task; repeat it for several tasks"
    )


def add_num_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--num-runs", type=positive_int, metavar="K", help="number of runs per task (default: highest run found)"
    )


def positive_int(text: str) -> int:
    """Parse a count. argparse exits with code 2 if it is below 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def positive_number(text: str) -> float:
    """Parse a duration or another number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def read_task_list(path: Path | None) -> list[TaskInfo] | None:
    """Return the tasks of a list; None without a list.

    Raises:
        CommandError: The list cannot be read, or contains no task.
    """
    if path is None:
        return None
    try:
        tasks = load_task_list(path)
    except OSError as error:
        raise CommandError(f"cannot read the task list {path}: {error.strerror or error}; check --task-list") from error
    except ValueError as error:
        raise CommandError(f"invalid task list: {error}") from error
    if not tasks:
        what = "a <task_id>.py file" if path.is_dir() else "a line with a task id"
        raise CommandError(f"the task list {path} contains no task; add {what}")
    return tasks


@contextmanager
def library_events_on_stderr() -> Iterator[None]:
    """Write events of the capture code to stderr, and only warnings and errors, because stdout is for results."""
    import structlog  # here, because most commands have no such events

    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)


def print_line(text: str) -> None:
    """Print to stdout, without control characters of file names and answers."""
    _write(sys.stdout.write, text)


def print_note(text: str) -> None:
    """Print to stderr, which keeps stdout for the result of the command."""
    _write(sys.stderr.write, text)


def print_error(text: str) -> None:
    """Print one line to stderr, starting with ``mind2web2: error:``."""
    print_note("mind2web2: error: " + " ".join(text.split()))


def _write(write: Callable[[str], object], text: str) -> None:
    # A file name that is not UTF-8 contains lone surrogates, which cannot be printed.
    write(strip_controls(text).encode("utf-8", errors="replace").decode("utf-8") + "\n")


def _folder_name(text: str) -> str:
    if text in ("", ".", "..") or "/" in text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a folder")
    return text


def _add_folder(parser: argparse.ArgumentParser, flag: str, default: str, summary: str) -> None:
    parser.add_argument(flag, type=Path, default=Path(default), metavar="DIR", help=f"{summary} (default: {default})")
