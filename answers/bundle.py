"""Answers in the public layout, ``<agent>/<task_id>/answer_<k>.md``, from a folder or an archive.

Nothing is written: an archive's members are read into memory, each within the limits of
``answers.archive``, and their names are data that never become a path.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from answers.archive import read_members
from answers.errors import AnswersNotFound, ArchiveRefused, InvalidSubmission, Problem, ProblemCode
from answers.submission import (
    MAX_ANSWER_BYTES,
    Answer,
    Submission,
    answer_name_problems,
    decode_text,
    name_problems,
    text_problems,
)

SUFFIX = ".md"
LAYOUT = f"<agent>/<task_id>/<answer>{SUFFIX}"


def read_folder(root: Path, agent: str, task_ids: Collection[str] = ()) -> tuple[Submission, ...]:
    """The answers of one agent below ``root``, one submission per task, sorted; all tasks unless some are named.

    Hidden entries and files that do not end in ``.md`` are passed over. Blocks on the disk.

    Raises:
        AnswersNotFound: the agent, or a named task, has no answers there.
        InvalidSubmission: a name or a text breaks a rule; every file that does is listed.
    """
    problems = [*name_problems(agent, "agent")]
    for task_id in task_ids:
        problems += name_problems(task_id, "task_id")
    if problems:
        raise InvalidSubmission(problems)
    folder = root / agent
    if not folder.is_dir():
        raise AnswersNotFound(f"no folder {folder} with answers of agent {agent!r}")
    tasks = [folder / task_id for task_id in task_ids] or [each for each in _visible(folder) if each.is_dir()]
    files: dict[str, bytes] = {}
    for task in tasks:
        found = dict(_answers_in(root, task)) if task.is_dir() else {}
        if not found and task_ids:
            raise AnswersNotFound(f"no {SUFFIX} files in {task}")
        files |= found
    if not files:
        raise AnswersNotFound(f"no answers of agent {agent!r} in {folder}")
    return _submissions(files)


def _answers_in(root: Path, task: Path) -> Iterator[tuple[str, bytes]]:
    inside = root.resolve()
    for path in _visible(task):
        if path.suffix == SUFFIX and path.is_file():
            name = path.relative_to(root).as_posix()
            if not path.resolve().is_relative_to(inside):
                message = "is a link to a file outside of the folder"
                raise InvalidSubmission([Problem(path=name, message=message, code=ProblemCode.BAD_NAME)])
            with path.open("rb") as file:
                yield name, file.read(MAX_ANSWER_BYTES + 1)  # one byte too many is enough to refuse it


def _visible(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.iterdir()) if not each.name.startswith("."))


def read_archive(file: BinaryIO) -> tuple[Submission, ...]:
    """The answers in a zip, tar or tar.gz archive, one submission per agent and task, sorted.

    ``file`` is seekable. What a desktop adds by itself (``__MACOSX``, hidden files) is passed over; any
    other member must have its place in the layout. Takes seconds for large archives: not for an event loop.

    Raises:
        ArchiveRefused: the archive is damaged, breaks a limit, or holds a member that has no place in the layout.
        InvalidSubmission: a name or a text breaks a rule; every member that does is listed.
    """
    files: dict[str, bytes] = {}
    folded: dict[str, str] = {}
    for name, content in read_members(file):
        parts = name.split("/")
        if parts[0] == "__MACOSX" or parts[-1].startswith("."):
            continue
        if len(parts) != 3 or not name.endswith(SUFFIX):
            message = f"has no place in the layout {LAYOUT}"
            raise ArchiveRefused([Problem(path=name, message=message, code=ProblemCode.BAD_ARCHIVE)])
        twin = folded.setdefault(name.casefold(), name)
        if name in files or twin != name:
            message = "stands twice in the archive, upper and lower case being the same"
            raise ArchiveRefused([Problem(path=name, message=message, code=ProblemCode.DUPLICATE)])
        files[name] = content
    if not files:
        raise ArchiveRefused([Problem(path="", message=f"holds no {LAYOUT}", code=ProblemCode.EMPTY)])
    return _submissions(files)


def _submissions(files: Mapping[str, bytes]) -> tuple[Submission, ...]:
    """Submissions from contents by ``agent/task_id/answer.md``."""
    answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    problems: list[Problem] = []
    for path in sorted(files, key=_natural):
        agent, task_id, name = path.split("/")
        wrong = [*name_problems(agent, path), *name_problems(task_id, path), *answer_name_problems(name, path)]
        try:
            text = decode_text(files[path], path)
        except InvalidSubmission as error:
            problems += [*wrong, *error.problems]
            continue
        problems += [*wrong, *text_problems(text, path)]
        answers[agent, task_id].append(Answer(name=name, text=text))
    if problems:
        raise InvalidSubmission(problems)
    return tuple(
        Submission(agent=agent, task_id=task_id, answers=tuple(each)) for (agent, task_id), each in answers.items()
    )


def _natural(path: str) -> list[tuple[int, str]]:
    """Sorts ``answer_2`` before ``answer_10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", path)]
