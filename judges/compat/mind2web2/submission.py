"""Answers of an agent in the public folder layout, their metadata, and task lists.

An answer is a file ``<agent>/<task_id>/answer_<k>.md``, with k from 1 and without leading zeros. Its metadata is in
``answer_<k>.meta.json`` beside it. Other files are reported by ``validate_submission`` and never judged.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

from answers.submission import answer_number
from mind2web2.utils.url_tools import regex_find_urls

__all__ = [
    "AnswerFile",
    "MetadataError",
    "SubmissionIssue",
    "TaskInfo",
    "count_words",
    "list_answer_files",
    "load_metadata",
    "load_task_list",
    "validate_submission",
]

META_SUFFIX = ".meta.json"
TASK_COLUMN = "task_id"
_METADATA_FIX = 'write an object such as {"time_seconds": 12.5}, or remove the file'
_SHOWN = 5
"""Names listed in one message."""


def count_words(text: str) -> int:
    return len(text.split())


class MetadataError(ValueError):
    """Invalid metadata of an answer. ``path`` is the file, ``reason`` the problem and its solution."""

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = Path(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """File of one answer. ``run`` is the k of ``answer_<k>.md``, from 1."""

    task_id: str
    run: int
    path: Path

    @property
    def name(self) -> str:
        """File name, ``answer_<k>.md``."""
        return self.path.name

    @property
    def meta_path(self) -> Path:
        """Path of the metadata, whether or not it exists."""
        return self.path.with_suffix(META_SUFFIX)

    def read_bytes(self) -> bytes:
        """Return the text in UTF-8, without a byte order mark. Blocks."""
        return self.path.read_bytes().removeprefix(BOM_UTF8)


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Task of a task list. Only CSV lists have domains."""

    task_id: str
    domain: str | None = None
    subdomain: str | None = None


@dataclass(frozen=True, slots=True)
class SubmissionIssue:
    """Problem of a submission. ``path`` is relative to the folder of the agent, which is ``"."``."""

    level: Literal["error", "warning"]
    path: str
    message: str


def list_answer_files(directory: str | Path) -> list[AnswerFile]:
    """Return the answers in the folder of a task, by run. A missing folder has none."""
    folder = Path(directory)
    if not folder.is_dir():
        return []
    numbered = ((answer_number(path.name), path) for path in folder.iterdir())
    found = [AnswerFile(folder.name, run, path) for run, path in numbered if run is not None and _is_own_file(path)]
    return sorted(found, key=lambda answer: answer.run)


def load_metadata(answer: AnswerFile) -> dict[str, Any] | None:
    """Return the metadata of an answer; None if it has none.

    Raises:
        MetadataError: The file is not a JSON object, or its ``time_seconds`` is not a number >= 0.
    """
    path = answer.meta_path
    if not path.exists():
        return None
    try:
        metadata = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_reject_constant)
    except OSError as error:
        raise MetadataError(path, f"cannot be read ({error.strerror}): replace or remove it") from error
    except UnicodeDecodeError as error:
        raise MetadataError(path, f"is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise MetadataError(path, f"is not valid JSON ({error}): {_METADATA_FIX}") from error
    if not isinstance(metadata, dict):
        raise MetadataError(path, f"is not a JSON object: {_METADATA_FIX}")
    if "time_seconds" in metadata and not _is_duration(metadata["time_seconds"]):
        shown = json.dumps(metadata["time_seconds"])[:40]
        raise MetadataError(path, f"time_seconds is {shown}: use a number >= 0, or leave it out")
    return metadata


def load_task_list(path: str | Path) -> list[TaskInfo]:
    """Return the tasks of a list in the order of the list, each once.

    A list is a CSV file with the column ``task_id`` and optionally ``domain`` and ``subdomain``, a text file with one
    task per line (blank lines and lines that start with ``#`` are skipped), or a folder of ``<task_id>.py`` files.

    Raises:
        OSError: The list does not exist or cannot be read.
        ValueError: A CSV file has no column ``task_id`` or is damaged, or a task id is not the name of a folder.
    """
    path = Path(path)
    if path.is_dir():
        tasks = [TaskInfo(file.stem) for file in sorted(path.glob("*.py")) if not file.name.startswith(("_", "."))]
    else:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: is not UTF-8 (byte {error.start}): save the task list as UTF-8") from error
        tasks = list(_csv_tasks(text, path) if path.suffix.lower() == ".csv" else _text_tasks(text))
    for task in tasks:
        if task.task_id in (".", "..") or re.search(r"[/\\\0]", task.task_id):
            raise ValueError(f"{path}: task id {task.task_id!r} cannot be the name of a folder")
    by_id: dict[str, TaskInfo] = {}
    for task in tasks:
        by_id.setdefault(task.task_id, task)
    return list(by_id.values())


def validate_submission(
    agent_dir: str | Path, task_ids: Collection[str] | None = None, num_runs: int | None = None
) -> list[SubmissionIssue]:
    """Return all errors and warnings of an agent's folder, by task and file.

    Errors keep the submission from being evaluated: no answers at all, an answer that is not UTF-8, broken metadata.

    Args:
        task_ids: Tasks that should have answers. None accepts any task.
        num_runs: Runs that each task should have. None means the highest run found.
    """
    return list(_issues(Path(agent_dir), None if task_ids is None else list(task_ids), num_runs))


def _issues(agent: Path, listed: Sequence[str] | None, num_runs: int | None) -> Iterator[SubmissionIssue]:
    if not agent.is_dir():
        yield _error(".", f"the folder {agent} does not exist: create it with <task_id>/answer_<k>.md files")
        return
    folders = {path.name: path for path in _visible(agent) if path.is_dir()}
    if not folders and not listed:  # with a task list, each task gets its own warning
        yield _error(".", f"the folder {agent} has no task folders: add <task_id>/answer_<k>.md files")
    for path in _visible(agent):
        if path.name not in folders:
            yield _warning(path.name, "is not in a task folder: it is ignored; move it to <task_id>/answer_<k>.md")
    expected = sorted(folders) if listed is None else listed
    found = {task: list_answer_files(folders[task]) for task in expected if task in folders}
    runs = num_runs or max((answer.run for answers in found.values() for answer in answers), default=1)
    for task in sorted({*expected, *folders}):
        if task not in folders:
            yield _warning(task, "has no folder: the task counts as 0 in every run")
        elif task not in found:
            yield _warning(task, "is not in the task list: it is ignored")
        else:
            yield from _task_issues(folders[task], found[task], runs)


def _task_issues(folder: Path, answers: Sequence[AnswerFile], num_runs: int) -> Iterator[SubmissionIssue]:
    present = {answer.run for answer in answers}
    num_missing = num_runs - sum(run <= num_runs for run in present)
    if num_missing:
        first = islice((run for run in count(1) if run not in present), min(num_missing, _SHOWN))
        names = _shortened([f"answer_{run}.md" for run in first], num_missing)
        yield _warning(folder.name, f"lacks {names}: a missing answer counts as 0")
    for answer in answers:
        yield from _answer_issues(answer, num_runs)
    known = {answer.name for answer in answers} | {answer.meta_path.name for answer in answers}
    for path in _visible(folder):
        if path.name not in known:
            yield _warning(f"{folder.name}/{path.name}", _reason_ignored(path))


def _reason_ignored(path: Path) -> str:
    answer_name = path.name.replace(META_SUFFIX, ".md")
    if answer_name != path.name and answer_number(answer_name) is not None:
        return f"is ignored: it describes {answer_name}, which does not exist"
    if answer_number(path.name) is not None:
        return "is ignored: it is not a file in the folder of the agent; replace it with a copy"
    return "is ignored: it is not an answer; answers are named answer_<k>.md, with k from 1 without leading zeros"


def _answer_issues(answer: AnswerFile, num_runs: int) -> Iterator[SubmissionIssue]:
    path = f"{answer.task_id}/{answer.name}"
    try:
        text = answer.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        yield _error(path, f"is not UTF-8 (byte {error.start}): save it as UTF-8")
    except OSError as error:
        yield _error(path, f"cannot be read: {error.strerror}")
    else:
        if not text.strip():
            yield _warning(path, "is empty")
        elif not regex_find_urls(text):
            yield _warning(path, "has no http(s) URL: claims about sources cannot be supported")
    if answer.run > num_runs:
        yield _warning(path, f"is above the number of runs ({num_runs}): it is ignored")
    try:
        load_metadata(answer)
    except MetadataError as error:
        yield _error(f"{answer.task_id}/{error.path.name}", error.reason)


def _csv_tasks(text: str, path: Path) -> Iterator[TaskInfo]:
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    try:
        columns = [column.strip() for column in rows.fieldnames or ()]
        if TASK_COLUMN not in columns:
            shown = _shortened(columns, len(columns)) or "none"
            raise ValueError(f"{path}: has no column {TASK_COLUMN} (columns: {shown}): add it to the first line")
        rows.fieldnames = columns
        for row in rows:
            task_id, domain, subdomain = (
                (row.get(name) or "").strip() for name in (TASK_COLUMN, "domain", "subdomain")
            )
            if task_id:
                yield TaskInfo(task_id, domain or None, subdomain or None)
    except csv.Error as error:
        raise ValueError(f"{path}: is not valid CSV ({error}): correct the quotes in line {rows.line_num}") from error


def _text_tasks(text: str) -> Iterator[TaskInfo]:
    for line in text.splitlines():
        task_id = line.strip()
        if task_id and not task_id.startswith("#"):
            yield TaskInfo(task_id)


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_own_file(path: Path) -> bool:
    """Return whether this is a file, and no link to a file outside the folder of the agent."""
    if path.is_symlink() and not path.resolve().is_relative_to(path.parent.parent.resolve()):
        return False
    return path.is_file()


def _shortened(names: Sequence[str], total: int) -> str:
    """Return the first names and how many follow."""
    more = f" and {total - _SHOWN} more" if total > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _is_duration(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value) and value >= 0
    except OverflowError:  # an integer beyond the range of float
        return False


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _error(path: str, message: str) -> SubmissionIssue:
    return SubmissionIssue("error", path, message)


def _warning(path: str, message: str) -> SubmissionIssue:
    return SubmissionIssue("warning", path, message)
