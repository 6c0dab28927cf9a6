"""Answers in the public layout ``<agent>/<task_id>/answer_<k>.md``, read from a folder or an archive.

Members of an archive are read into memory within the limits of ``answers.archive``. Their names never become paths.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from answers.archive import read_members
from answers.errors import AnswersNotFound, InvalidArchive, InvalidSubmission, Problem, ProblemCode
from answers.submission import (
    MAX_ANSWER_BYTES,
    Answer,
    Submission,
    decode_text,
    name_problems,
    run_number,
    text_problems,
)

ANSWERS = "answer_<k>.md"
LAYOUT = f"<agent>/<task_id>/{ANSWERS}"
_METADATA = ".meta.json"


def read_folder(root: Path, agent: str, task_ids: Collection[str] = ()) -> tuple[Submission, ...]:
    """Return the answers of one agent below ``root``, sorted, one submission per task. Blocks on disk reads.

    Reads all tasks unless ``task_ids`` names some. Other files are not answers; ``ignored_files`` lists them.

    Raises:
        AnswersNotFound: The agent, or a named task, has no answers.
        InvalidSubmission: Names or texts are invalid. All invalid files are listed.
    """
    problems = [*name_problems(agent, "agent")]
    for task_id in task_ids:
        problems += name_problems(task_id, "task_id")
    if problems:
        raise InvalidSubmission(problems)
    folder = root / agent
    if not folder.is_dir():
        raise AnswersNotFound(f"no folder {folder} with answers of agent {agent!r}")
    tasks = _task_folders(folder, task_ids)
    files: dict[str, bytes] = {}
    for task in tasks:
        answers = dict(_answers_in(root, task)) if task.is_dir() else {}
        if not answers and task_ids:
            raise AnswersNotFound(f"no {ANSWERS} files in {task}")
        files |= answers
    if not files:
        raise AnswersNotFound(f"no answers of agent {agent!r} in {folder}")
    return _submissions(files)


def ignored_files(root: Path, agent: str, task_ids: Collection[str] = ()) -> list[Path]:
    """Return the files that ``read_folder`` ignores because they are neither answers nor their metadata."""
    return [path for task in _task_folders(root / agent, task_ids) if task.is_dir() for path in other_files(task)]


def other_files(task: Path) -> list[Path]:
    """Return the visible files in the folder of a task that are neither answers nor their metadata, sorted."""
    return [path for path in _visible(task) if not (is_answer(path.name) or is_metadata(path.name))]


def is_answer(file_name: str) -> bool:
    return run_number(file_name) is not None


def is_metadata(file_name: str) -> bool:
    """Return whether the file describes an answer: ``answer_<k>.meta.json``."""
    return file_name.endswith(_METADATA) and is_answer(f"{file_name.removesuffix(_METADATA)}.md")


def _task_folders(folder: Path, task_ids: Collection[str]) -> list[Path]:
    return [folder / task_id for task_id in task_ids] or [each for each in _visible(folder) if each.is_dir()]


def _answers_in(root: Path, task: Path) -> Iterator[tuple[str, bytes]]:
    resolved_root = root.resolve()
    for path in _visible(task):
        if is_answer(path.name) and path.is_file():
            name = path.relative_to(root).as_posix()
            if not path.resolve().is_relative_to(resolved_root):
                message = "is a link to a file outside the folder"
                raise InvalidSubmission([Problem(path=name, message=message, code=ProblemCode.BAD_NAME)])
            with path.open("rb") as file:
                yield name, file.read(MAX_ANSWER_BYTES + 1)  # one byte over the limit is enough to reject it


def _visible(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.iterdir()) if not each.name.startswith("."))


def read_archive(file: BinaryIO) -> tuple[Submission, ...]:
    """Return the answers in a zip, tar or tar.gz archive, sorted, one submission per agent and task.

    ``file`` must be seekable. Ignores files that desktops add (``__MACOSX``, hidden files) and metadata of answers. All
    other members must follow the layout. Blocks for seconds if the archive is large.

    Raises:
        InvalidArchive: The archive is damaged, exceeds a limit, or contains a member that does not follow the layout.
        InvalidSubmission: Names or texts are invalid. All invalid members are listed.
    """
    files: dict[str, bytes] = {}
    folded: dict[str, str] = {}
    for name, content in read_members(file):
        parts = name.split("/")
        if parts[0] == "__MACOSX" or parts[-1].startswith(".") or (len(parts) == 3 and is_metadata(parts[-1])):
            continue
        if len(parts) != 3 or not is_answer(parts[-1]):
            message = f"does not follow the layout {LAYOUT}"
            raise InvalidArchive([Problem(path=name, message=message, code=ProblemCode.BAD_ARCHIVE)])
        other_name = folded.setdefault(name.casefold(), name)
        if name in files or other_name != name:
            message = "occurs twice in the archive (upper and lower case count as equal)"
            raise InvalidArchive([Problem(path=name, message=message, code=ProblemCode.DUPLICATE)])
        files[name] = content
    if not files:
        raise InvalidArchive([Problem(path="", message=f"contains no {LAYOUT}", code=ProblemCode.EMPTY)])
    return _submissions(files)


def _submissions(files: Mapping[str, bytes]) -> tuple[Submission, ...]:
    """Build submissions from file contents, keyed by ``agent/task_id/answer.md``."""
    answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    problems: list[Problem] = []
    for path in sorted(files, key=natural_key):
        agent, task_id, name = path.split("/")
        invalid = [*name_problems(agent, path), *name_problems(task_id, path)]
        try:
            text = decode_text(files[path], path)
        except InvalidSubmission as error:
            problems += [*invalid, *error.problems]
            continue
        problems += [*invalid, *text_problems(text, path)]
        answers[agent, task_id].append(Answer(name=name, text=text))
    if problems:
        raise InvalidSubmission(problems)
    return tuple(
        Submission(agent=agent, task_id=task_id, answers=tuple(each)) for (agent, task_id), each in answers.items()
    )


def natural_key(path: str) -> list[tuple[int, str]]:
    """Return a sort key that puts ``answer_2`` before ``answer_10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", path)]
