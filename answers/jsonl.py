"""Answers as JSON lines: one object for each, ``{"agent", "task_id", "text"}`` and what else is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, TypeAlias

from answers.errors import InvalidSubmission, Problem, ProblemCode
from answers.submission import MAX_ANSWER_BYTES, Submission, checked_submission

MAX_LINES = 50_000
MAX_LINE_BYTES = 8 * MAX_ANSWER_BYTES
"""A text of the largest answer, every character escaped, and the rest."""
MOST_PROBLEMS = 20
_TEXTS = ("text", "answer")
_KNOWN = frozenset({"agent", "task_id", "name", "model", "run", "metadata", *_TEXTS})
_Group: TypeAlias = tuple[str, str, str | None, str | None, str]


def read_jsonl(file: BinaryIO, *, agent: str | None = None) -> tuple[Submission, ...]:
    """The answers of a file, a submission for each agent, task, run, model and metadata, in the order of the file.

    ``agent`` is whose answers those are that name none. An answer without a name is ``answer_<k>`` of its submission;
    ``answer`` stands for ``text`` where that is not there. Empty lines are passed over.

    Raises:
        InvalidSubmission: lines that hold no answer, or break a rule; the first twenty are listed.
    """
    problems: list[Problem] = []
    groups: dict[_Group, list[tuple[int, str | None, str]]] = {}
    for number, line in _lines(file):
        try:
            group, name, text = _read(line, f"line {number}", agent)
        except InvalidSubmission as error:
            problems += error.problems
            if len(problems) >= MOST_PROBLEMS:
                break
            continue
        groups.setdefault(group, []).append((number, name, text))
    submissions = []
    for group, answers in groups.items():
        try:
            submissions.append(_submission(group, answers))
        except InvalidSubmission as error:
            problems += error.problems
    if not problems and not submissions:
        problems.append(Problem(path="", message="holds no answer", code=ProblemCode.EMPTY))
    if problems:
        raise InvalidSubmission(problems[:MOST_PROBLEMS])
    return tuple(submissions)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise InvalidSubmission(
                [_wrong(f"line {number}", f"has more than {MAX_LINE_BYTES} bytes", ProblemCode.TOO_LARGE)]
            )
        if number > MAX_LINES:
            raise InvalidSubmission([_wrong("", f"has more than {MAX_LINES} lines", ProblemCode.TOO_MANY)])
        bare = line.removeprefix(b"\xef\xbb\xbf").strip()
        if bare:
            yield number, bare


def _read(line: bytes, path: str, agent: str | None) -> tuple[_Group, str | None, str]:
    """The group of an answer, its name if it has one, its text."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidSubmission([_wrong(path, f"is not JSON: {error}")]) from error
    if not isinstance(found, dict):
        raise InvalidSubmission([_wrong(path, "is no JSON object")])
    unknown = sorted(found.keys() - _KNOWN)
    if unknown:
        message = (
            f"is no field of an answer (there are {', '.join(sorted(_KNOWN))}); what else is known goes into metadata"
        )
        raise InvalidSubmission([_wrong(f"{path}.{unknown[0]}", message)])
    who = _word(found, "agent", path) or agent
    task_id = _word(found, "task_id", path)
    text = next((_word(found, name, path) for name in _TEXTS if found.get(name) is not None), None)
    for name, value in (("agent", who), ("task_id", task_id), ("text", text)):
        if value is None:
            raise InvalidSubmission([_wrong(f"{path}.{name}", "is missing", ProblemCode.EMPTY)])
    metadata = found.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise InvalidSubmission([_wrong(f"{path}.metadata", "is no JSON object")])
    group = (
        str(who),
        str(task_id),
        _word(found, "run", path),
        _word(found, "model", path),
        json.dumps(metadata, sort_keys=True),
    )
    return group, _word(found, "name", path), str(text)


def _submission(group: _Group, answers: Iterable[tuple[int, str | None, str]]) -> Submission:
    """One submission; its problems name the lines that they are about."""
    who, task_id, run, model, metadata = group
    named = [(number, name or f"answer_{place}", text) for place, (number, name, text) in enumerate(answers, start=1)]
    try:
        return checked_submission(
            agent=who,
            task_id=task_id,
            answers=[(name, text) for _, name, text in named],
            model=model,
            run=run,
            metadata=json.loads(metadata),
        )
    except InvalidSubmission as error:
        raise InvalidSubmission(
            [_placed(problem, [number for number, _, _ in named]) for problem in error.problems]
        ) from error


def _placed(problem: Problem, numbers: list[int]) -> Problem:
    parts = problem.path.split(".")
    if parts[0] == "answers" and len(parts) == 3:
        path = f"line {numbers[int(parts[1])]}.{parts[2]}"
    else:
        path = f"line {numbers[0]}.{problem.path}"
    return Problem(path=path, message=problem.message, code=problem.code)


def _word(found: Mapping[str, Any], name: str, path: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidSubmission([_wrong(f"{path}.{name}", "is no text")])
    return value


def _wrong(path: str, message: str, code: ProblemCode = ProblemCode.NOT_JSON) -> Problem:
    return Problem(path=path, message=message, code=code)
