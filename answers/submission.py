"""Submissions and answers: value types and their validation."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from answers.citations import unique_urls
from answers.errors import InvalidSubmission, Problem, ProblemCode, invalid
from answers.provider_replies import answer_from_reply

MAX_NAME_CHARS = 100
NAME_PATTERN = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME_CHARS - 1}}}")
MAX_ANSWER_BYTES = 1024 * 1024
MAX_UNIQUE_URLS = 200
MAX_LABEL_CHARS = 200
MAX_METADATA_BYTES = 64 * 1024
EVIDENCE_POLICIES = (None, "captured", "fallback", "supplied")


AnswerContent: TypeAlias = str | Mapping[str, Any]
"""Markdown, or the JSON reply of a model provider (see ``answers.provider_replies``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One output of an agent for one task. ``name`` ends in ``.md``. ``sha256`` (hex) is the identity.

    ``evidence`` are records of the pages that the agent supplied, ``supplied`` the ids of their captures if they are
    stored.
    """

    name: str
    text: str
    evidence: tuple[Mapping[str, Any], ...] = ()
    supplied: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Upload for one agent and one task, with one or more answers.

    ``evidence_policy`` (``captured``, ``fallback`` or ``supplied``) says how supplied pages are used; None: as the task
    says.
    """

    agent: str
    task_id: str
    answers: tuple[Answer, ...]
    model: str | None = None
    run: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evidence_policy: str | None = None


def checked_submission(
    *,
    agent: str,
    task_id: str,
    answers: Sequence[tuple[str, AnswerContent]],
    model: str | None = None,
    run: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    evidence: Sequence[Sequence[Mapping[str, Any]]] = (),
    evidence_policy: str | None = None,
) -> Submission:
    """Validate raw fields and return a submission.

    ``answers`` are pairs of a name, with or without ``.md``, and a text or the JSON reply of a provider. ``evidence``
    are the records of the pages supplied with each answer, which are not validated here.

    Takes about 0.1 s per MiB of text. In an event loop, run it in a thread.

    Raises:
        InvalidSubmission: Fields are invalid. All problems are listed.
    """
    problems = [*name_problems(agent, "agent"), *name_problems(task_id, "task_id")]
    if run is not None:
        problems += name_problems(run, "run")
    if model is not None:
        problems += label_problems(model)
    if not answers:
        problems.append(Problem(path="answers", message="contains no answer", code=ProblemCode.EMPTY))
    if evidence_policy not in EVIDENCE_POLICIES:
        message = f"is {evidence_policy!r}; use captured, fallback or supplied"
        problems.append(Problem(path="evidence_policy", message=message, code=ProblemCode.BAD_NAME))
    names_used: set[str] = set()
    texts: list[str] = []
    for number, (name, content) in enumerate(answers):
        problems += answer_name_problems(name, f"answers.{number}.name")
        if with_suffix(name) in names_used:
            message = f"another answer already has the name {with_suffix(name)!r}"
            problems.append(Problem(path=f"answers.{number}.name", message=message, code=ProblemCode.DUPLICATE))
        names_used.add(with_suffix(name))
        try:
            texts.append(_checked_text(content, f"answers.{number}"))
        except InvalidSubmission as error:
            problems += error.problems
    problems += _metadata_problems(metadata or {})
    if problems:
        raise InvalidSubmission(problems)
    return Submission(
        agent=agent,
        task_id=task_id,
        answers=tuple(
            Answer(name=with_suffix(name), text=text, evidence=tuple(records))
            for (name, _), text, records in zip(answers, texts, evidence or [()] * len(texts), strict=True)
        ),
        evidence_policy=evidence_policy,
        model=model,
        run=run,
        metadata=dict(metadata or {}),
    )


def _checked_text(content: AnswerContent, path: str) -> str:
    if isinstance(content, str):
        text, path = content, f"{path}.text"
    else:
        path = f"{path}.reply"
        text = answer_from_reply(content, path=path).text
    problems = list(text_problems(text, path))
    if problems:
        raise InvalidSubmission(problems)
    return text


def with_suffix(name: str) -> str:
    """Return the name of an answer with exactly one ``.md`` at the end, as task scripts expect it.

    >>> with_suffix("answer_1"), with_suffix("answer_1.md")
    ('answer_1.md', 'answer_1.md')
    """
    return f"{name.removesuffix('.md')}.md"


def name_problems(name: str, path: str) -> Iterator[Problem]:
    """Yield the problems of the name of an agent, a task or a run."""
    if not NAME_PATTERN.fullmatch(name) or ".." in name:
        message = (
            f"must be 1 to {MAX_NAME_CHARS} letters, digits, '.', '_' and '-', start with a letter or digit and not "
            "contain '..'"
        )
        yield Problem(path=path, message=message, code=ProblemCode.BAD_NAME)


def answer_name_problems(name: str, path: str) -> Iterator[Problem]:
    """Yield the problems of the name of an answer, without its ``.md``."""
    return name_problems(name.removesuffix(".md"), path)


def decode_text(data: bytes, path: str) -> str:
    """Decode the bytes of an answer. A byte order mark is not part of its text.

    Raises:
        InvalidSubmission: The bytes are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {error.start})"
        raise invalid(path, message, ProblemCode.NOT_TEXT) from error


def text_problems(text: str, path: str) -> Iterator[Problem]:
    """Yield the first problem of the text of an answer, if any."""
    unstorable = _unstorable(text)
    if unstorable:
        yield Problem(path=path, message=unstorable, code=ProblemCode.NOT_TEXT)
        return
    size = len(text.encode("utf-8"))
    if not text.strip():
        yield Problem(path=path, message="is empty", code=ProblemCode.EMPTY)
    elif size > MAX_ANSWER_BYTES:
        message = f"has {size} bytes (maximum {MAX_ANSWER_BYTES})"
        yield Problem(path=path, message=message, code=ProblemCode.TOO_LARGE)
    elif (count := len(unique_urls(text))) > MAX_UNIQUE_URLS:
        message = f"cites {count} different URLs (maximum {MAX_UNIQUE_URLS})"
        yield Problem(path=path, message=message, code=ProblemCode.TOO_MANY)


_RUN = re.compile(r"answer_([1-9][0-9]*)\.md")


def answer_number(file_name: str) -> int | None:
    """Return k of ``answer_<k>.md`` (k from 1, no leading zeros); None if the file is not an answer.

    >>> answer_number("answer_12.md"), answer_number("answer_01.md"), answer_number("notes.md")
    (12, None, None)
    """
    match = _RUN.fullmatch(file_name)
    return None if match is None else int(match[1])


_SURROGATE = re.compile("[\ud800-\udfff]")


def _unstorable(text: str) -> str | None:
    """Return the reason why UTF-8 or the database cannot represent the text, or None."""
    if "\0" in text:
        return "contains a NUL character"
    if _SURROGATE.search(text):
        return "contains an unpaired surrogate, which is not valid UTF-8"
    return None


_LABEL = re.compile(rf"[!-~]{{1,{MAX_LABEL_CHARS}}}")


def label_problems(label: str) -> Iterator[Problem]:
    """Yield the problems of the name of a model."""
    if not _LABEL.fullmatch(label):
        message = f"must be 1 to {MAX_LABEL_CHARS} printable ASCII characters without spaces"
        yield Problem(path="model", message=message, code=ProblemCode.BAD_NAME)


def _metadata_problems(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        written = json.dumps(metadata, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield Problem(path="metadata", message=f"is not JSON: {error}", code=ProblemCode.NOT_JSON)
        return
    # JSON writes NUL as \u0000. Escaped backslashes are removed first, because "\\u0000" is not a NUL.
    unescaped = re.sub(r"\\\\", "", written)
    unstorable = _unstorable(unescaped.replace("\\u0000", "\0"))
    if unstorable:
        yield Problem(path="metadata", message=unstorable, code=ProblemCode.NOT_TEXT)
    elif (size := len(written.encode("utf-8"))) > MAX_METADATA_BYTES:
        message = f"has {size} bytes as JSON, more than {MAX_METADATA_BYTES}"
        yield Problem(path="metadata", message=message, code=ProblemCode.TOO_LARGE)
