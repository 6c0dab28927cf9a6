"""Answers in JSON lines: one object per answer, with ``agent``, ``task_id``, ``text`` and optional fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, TypeAlias

from answers.errors import InvalidSubmission, Problem, ProblemCode, invalid
from answers.submission import MAX_ANSWER_BYTES, AnswerContent, Submission, checked_submission

MAX_LINES = 50_000
MAX_LINE_BYTES = 32 * MAX_ANSWER_BYTES
"""Room for an answer of the maximum size with every character escaped, supplied pages, and the other fields."""
MAX_PROBLEMS = 20
_TEXTS = ("text", "answer")
_REPLY = "reply"
_KNOWN = frozenset(
    {"agent", "task_id", "name", "model", "run", "metadata", "evidence", "evidence_policy", _REPLY, *_TEXTS}
)
_Group: TypeAlias = tuple[str, str, str | None, str | None, str | None, str]
_Line: TypeAlias = tuple[int, str | None, AnswerContent, list[Any]]


def read_jsonl(file: BinaryIO, *, agent: str | None = None) -> tuple[Submission, ...]:
    """Return the answers of a file in file order, one submission per agent, task, run, model and metadata.

    ``agent`` is the default for answers that name no agent. An answer without a name becomes ``answer_<k>`` of its
    submission. ``evidence`` is a list of the pages that the agent supplied. Alternatives to the field ``text`` are
    ``answer``, and ``reply`` for the JSON reply of a model provider. Empty lines are ignored.

    Raises:
        InvalidSubmission: Lines are invalid. The first 20 problems are listed.
    """
    problems: list[Problem] = []
    groups: dict[_Group, list[_Line]] = {}
    for number, line in _lines(file):
        try:
            group, name, content, evidence = _read(line, f"line {number}", agent)
        except InvalidSubmission as error:
            problems += error.problems
            if len(problems) >= MAX_PROBLEMS:
                break
            continue
        groups.setdefault(group, []).append((number, name, content, evidence))
    submissions = []
    for group, answers in groups.items():
        try:
            submissions.append(_submission(group, answers))
        except InvalidSubmission as error:
            problems += error.problems
    if not problems and not submissions:
        problems.append(Problem(path="", message="contains no answer", code=ProblemCode.EMPTY))
    if problems:
        raise InvalidSubmission(problems[:MAX_PROBLEMS])
    return tuple(submissions)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise invalid(f"line {number}", f"has more than {MAX_LINE_BYTES} bytes", ProblemCode.TOO_LARGE)
        if number > MAX_LINES:
            raise invalid("", f"has more than {MAX_LINES} lines", ProblemCode.TOO_MANY)
        stripped = line.removeprefix(b"\xef\xbb\xbf").strip()
        if stripped:
            yield number, stripped


def _read(line: bytes, path: str, agent: str | None) -> tuple[_Group, str | None, AnswerContent, list[Any]]:
    """Return the group of an answer, its name (None if it has none), its text or reply, and its supplied pages."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise invalid(path, f"is not JSON: {error}", ProblemCode.NOT_JSON) from error
    if not isinstance(record, dict):
        raise invalid(path, "is not a JSON object", ProblemCode.NOT_JSON)
    unknown = sorted(record.keys() - _KNOWN)
    if unknown:
        message = f"is not a field of an answer; use one of {', '.join(sorted(_KNOWN))}, or put the value into metadata"
        raise invalid(f"{path}.{unknown[0]}", message, ProblemCode.NOT_JSON)
    agent_name = _string(record, "agent", path) or agent
    task_id = _string(record, "task_id", path)
    text = next((_string(record, name, path) for name in _TEXTS if record.get(name) is not None), None)
    reply = record.get(_REPLY)
    if reply is not None and not isinstance(reply, Mapping):
        raise invalid(f"{path}.{_REPLY}", "is not a JSON object", ProblemCode.NOT_JSON)
    if reply is not None and text is not None:
        raise invalid(f"{path}.{_REPLY}", "is given beside a text; send one of them", ProblemCode.NOT_JSON)
    content = text if reply is None else reply
    for name, value in (("agent", agent_name), ("task_id", task_id), ("text", content)):
        if value is None:
            raise invalid(f"{path}.{name}", "is missing", ProblemCode.EMPTY)
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise invalid(f"{path}.metadata", "is not a JSON object", ProblemCode.NOT_JSON)
    evidence = record.get("evidence") or []
    if not isinstance(evidence, list):
        raise invalid(f"{path}.evidence", "is not a list of pages", ProblemCode.NOT_JSON)
    group = (
        str(agent_name),
        str(task_id),
        _string(record, "run", path),
        _string(record, "model", path),
        _string(record, "evidence_policy", path),
        json.dumps(metadata, sort_keys=True),
    )
    return group, _string(record, "name", path), content or "", evidence


def _submission(group: _Group, answers: Sequence[_Line]) -> Submission:
    """Build one submission. The paths of its problems contain line numbers."""
    agent, task_id, run, model, evidence_policy, metadata = group
    named_answers = [
        (number, name or f"answer_{place}", content)
        for place, (number, name, content, _) in enumerate(answers, start=1)
    ]
    try:
        return checked_submission(
            agent=agent,
            task_id=task_id,
            answers=[(name, content) for _, name, content in named_answers],
            model=model,
            run=run,
            metadata=json.loads(metadata),
            evidence=[evidence for _, _, _, evidence in answers],
            evidence_policy=evidence_policy,
        )
    except InvalidSubmission as error:
        raise InvalidSubmission(
            [_with_line_number(problem, [number for number, _, _ in named_answers]) for problem in error.problems]
        ) from error


def _with_line_number(problem: Problem, numbers: list[int]) -> Problem:
    parts = problem.path.split(".")
    if parts[0] == "answers" and len(parts) >= 3:
        path = ".".join([f"line {numbers[int(parts[1])]}", *parts[2:]])
    else:
        path = f"line {numbers[0]}.{problem.path}"
    return Problem(path=path, message=problem.message, code=problem.code)


def _string(record: Mapping[str, Any], name: str, path: str) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid(f"{path}.{name}", "is not a string", ProblemCode.NOT_JSON)
    return value
