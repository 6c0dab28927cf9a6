"""YAML documents with the position of every value. Reading is bounded and creates only plain values.

Scalars follow the core schema of YAML 1.2, so ``no`` and ``12:30`` are texts. Anchors, aliases, tags, duplicate keys
and further documents are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isfinite
from typing import Any, Final, TypeAlias

import yaml

from judges.errors import JudgeNotLoadable

MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 40
MAX_VALUES: Final = 100_000
MAX_PROBLEMS: Final = 50

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes from the top of a document to a value."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[-+]?\d{1,18}", re.ASCII)
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Error in a document. ``line`` and ``column`` start at 1."""

    line: int
    column: int
    message: str
    path: Path = ()


class InvalidTask(JudgeNotLoadable):
    """A task file that breaks a rule of the format.

    Attributes:
        problems: All problems that were found, in the order of the file.
    """

    names_lines = True

    def __init__(self, name: str, problems: list[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda each: (each.line, each.column)))
        lines = [f"{name}:{each.line}:{each.column}: {each.message}" for each in self.problems[:MAX_PROBLEMS]]
        if len(self.problems) > MAX_PROBLEMS:
            lines.append(f"and {len(self.problems) - MAX_PROBLEMS} more problems")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class _Mark:
    """Start of a key or value. ``text`` is the scalar if its characters follow each other from there, else None."""

    line: int
    column: int
    last_line: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Content of a YAML file, and where each of its keys and values starts."""

    value: Any
    text: str
    _values: dict[Path, _Mark] = field(repr=False)
    _keys: dict[Path, _Mark] = field(repr=False)

    def problem(self, path: Path, message: str, *, offset: int | None = None) -> Problem:
        """Return a problem of the value at ``path``, or of the nearest value around it.

        ``offset`` is a position in a text value. Without it, the problem is located at the key of the value.
        """
        while path and path not in self._values:
            path, offset = path[:-1], None
        value = self._values[path]
        if offset is None:
            mark, shift = self._keys.get(path, value), 0
        else:
            mark, shift = value, offset if value.text is not None else 0
        return Problem(line=mark.line, column=mark.column + shift, message=message, path=path)

    def lines(self, path: Path) -> tuple[int, int]:
        """Return the first and last line of a key with its value."""
        value = self._values[path]
        return self._keys.get(path, value).line, value.last_line


def read_document(source: str | bytes, name: str) -> Document:
    """Parse one YAML document.

    Raises:
        InvalidTask: it is not YAML, or exceeds a limit.
    """
    text = _decoded(source, name)
    reader = _Reader(name, text)
    try:
        value = reader.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        message = f"not YAML: {error.problem}; indent with spaces, and quote texts that contain any of : # {{ [ '"
        raise InvalidTask(name, [Problem(line=line, column=column, message=message)]) from error
    except yaml.reader.ReaderError as error:
        before = text.partition(chr(error.character))[0]  # `position` counts bytes or characters
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"not YAML: the character U+{error.character:04X} is not allowed; remove it"
        raise InvalidTask(name, [Problem(line=line, column=column, message=message)]) from error
    return Document(value, text, reader.values, reader.keys)


def document_of(value: Any, name: str) -> Document:
    """Return a document with JSON values, as if they were read from a file. All are located in its first line.

    Raises:
        InvalidTask: a limit is exceeded, or a number is not finite.
    """
    start = _Mark(1, 1, 1)
    values: dict[Path, _Mark] = {}
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, each = pending.pop()
        values[path] = start
        problem = None
        if len(values) > MAX_VALUES:
            problem = f"more than {MAX_VALUES} values; split the task"
        elif len(path) > MAX_DEPTH:
            problem = f"nested more than {MAX_DEPTH} levels deep; use fewer levels"
        elif isinstance(each, float) and not isfinite(each):
            problem = "the number is too large"
        if problem is not None:
            raise InvalidTask(name, [Problem(line=1, column=1, message=problem, path=path)])
        if isinstance(each, dict):
            pending += [((*path, key), item) for key, item in each.items()]
        elif isinstance(each, list):
            pending += [((*path, index), item) for index, item in enumerate(each)]
    return Document(value, "", values, {})


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar to a misspelt one, as a question in parentheses; else nothing."""
    found = get_close_matches(word[:100], list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _decoded(source: str | bytes, name: str) -> str:
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(data) > MAX_BYTES:
        message = f"the file has {len(data)} bytes (max {MAX_BYTES}); split the task"
        raise InvalidTask(name, [Problem(line=1, column=1, message=message)])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = "not UTF-8; save the file as UTF-8"
        raise InvalidTask(name, [Problem(line=line, column=1, message=message)]) from error


class _Reader:
    """Builds the value of a document from the events of the YAML parser."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._lines = text.split("\n")
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self._count = 0
        self.values: dict[Path, _Mark] = {}
        self.keys: dict[Path, _Mark] = {}

    def document(self) -> Any:
        """Return the value of the only document."""
        start = next(self._events)
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            raise self._error(start, "the file is empty; see `assay tasks new`")
        value = self._value(next(self._events), ())
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._error(after, "only one document per file; remove everything from `---`")
        return value

    def _value(self, event: Any, path: Path) -> Any:
        self._check(event, path)
        start: Any = event.start_mark
        end: Any = event.end_mark
        if isinstance(event, yaml.ScalarEvent):
            self.values[path] = _Mark(
                *self._scalar_start(event),
                _last_line(start, end),
                self._verbatim(event),
            )
            return _resolved(event)
        value: Any
        if isinstance(event, yaml.SequenceStartEvent):
            value = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                value.append(self._value(event, (*path, len(value))))
        else:
            value = {}
            while not isinstance(event := next(self._events), yaml.MappingEndEvent):
                key = self._key(event, path)
                value[key] = self._value(next(self._events), (*path, key))
        self.values[path] = _Mark(start.line + 1, start.column + 1, _last_line(start, event.end_mark))
        return value

    def _key(self, event: Any, path: Path) -> str:
        self._check(event, path)
        start, end = event.start_mark, event.end_mark
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error(event, "a key must be text; quote it if it contains braces or brackets")
        key = str(event.value)
        if key == "<<" and event.implicit[0]:
            raise self._error(event, "merge keys (`<<`) are not allowed; write the values out")
        if (*path, key) in self.keys:
            first = self.keys[*path, key].line
            raise self._error(event, f"{key!r} is already defined in line {first}; rename or remove one")
        self.keys[*path, key] = _Mark(start.line + 1, start.column + 1, end.line + 1)
        return key

    def _check(self, event: Any, path: Path) -> None:
        """Reject what a task file must not contain, before the value is read: a bomb is never expanded."""
        self._count += 1
        if isinstance(event, yaml.AliasEvent):
            raise self._error(event, f"aliases (`*{event.anchor}`) are not allowed; write the value out")
        if getattr(event, "anchor", None) is not None:
            raise self._error(event, f"anchors (`&{event.anchor}`) are not allowed; remove the anchor")
        if getattr(event, "tag", None) is not None:
            raise self._error(event, f"tags (`{event.tag}`) are not allowed; remove the tag")
        if len(path) > MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} levels deep; use fewer levels")
        if self._count > MAX_VALUES:
            raise self._error(event, f"more than {MAX_VALUES} values; split the task")

    def _scalar_start(self, event: Any) -> tuple[int, int]:
        quoted = event.style in ("'", '"')
        return event.start_mark.line + 1, event.start_mark.column + 1 + quoted

    def _verbatim(self, event: Any) -> str | None:
        """Return the scalar if the file contains exactly its characters on one line."""
        line, column = self._scalar_start(event)
        text = str(event.value)
        return text if "".join(self._lines[line - 1 : line]).startswith(text, column - 1) else None

    def _error(self, event: Any, message: str) -> InvalidTask:
        mark = event.start_mark
        return InvalidTask(self._name, [Problem(line=mark.line + 1, column=mark.column + 1, message=message)])


def _last_line(start: Any, end: Any) -> int:
    """Return the last line of a value. A block ends at the start of the line after it."""
    return int(end.line + 1 if end.column else max(start.line + 1, end.line))


def _resolved(event: Any) -> Any:
    text = str(event.value)
    return resolve_scalar(text) if event.implicit[0] else text


def resolve_scalar(text: str) -> Any:
    """Return the value of an unquoted scalar: null, a boolean, a number, or the text itself."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
