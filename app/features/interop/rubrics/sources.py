"""Values of a rubric file with their places. Keys that no conversion reads can be listed, so that nothing is lost."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from judges.yaml_tasks.document import InvalidTask, Path, read_document

MAX_BYTES: Final = 100_000_000
MAX_ROWS: Final = 10_000
MAX_PROBLEMS: Final = 20
_MAX_NUMBER: Final = 1e9
_MAX_KEY_PARTS: Final = 100
_DEEP_TOML_KEY: Final = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}"""
)
"""The parser of the standard library needs quadratic time for dotted keys."""


class Malformed(ValueError):
    """A rubric file that is not of its format. The message has one ``place: problem; fix`` per line."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems[:MAX_PROBLEMS]))


class Unfilled(ValueError):
    """A template with a placeholder that has no value here, or that needs a template engine."""


class Source:
    """Value of a rubric file. Reading a key marks it as read."""

    def __init__(self, value: Any, locate: Callable[[Path], str], path: Path = ()) -> None:
        self.value = value
        self._locate = locate
        self._path = path
        self._read: set[str] = set()

    @property
    def where(self) -> str:
        """Place for messages, such as ``rows.jsonl:3: rubrics[0]``."""
        return self._locate(self._path)

    def error(self, message: str) -> Malformed:
        return Malformed(f"{self.where}: {message}")

    def get(self, *names: str) -> Source:
        """Return the value of the first of these keys that is present; its value is None if none is.

        Raises:
            Malformed: this value has no keys.
        """
        if not isinstance(self.value, dict):
            raise self.error(f"expected an object with {names[0]!r}, found {_kind(self.value)}")
        self._read.update(names)
        name = next((each for each in names if self.value.get(each) is not None), names[0])
        return Source(self.value.get(name), self._locate, (*self._path, name))

    def text(self, *names: str, default: str | None = None) -> str:
        """Return a text.

        Raises:
            Malformed: it is missing and there is no default, or it is not text.
        """
        found = self.get(*names)
        if found.value is None and default is not None:
            return default
        if not isinstance(found.value, str) or not (found.value.strip() or default is not None):
            raise found.error(f"{names[0]!r} must be text, found {_kind(found.value)}")
        return found.value

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number of at most 1e9.

        Raises:
            Malformed: it is missing and there is no default, or it is not such a number.
        """
        found = self.get(name)
        value = default if found.value is None else found.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MAX_NUMBER:
            raise found.error(f"{name!r} must be a number between -1e9 and 1e9, found {_kind(found.value)}")
        return float(value)

    def items(self, *names: str) -> list[Source]:
        """Return the items of a list; none if it is missing.

        Raises:
            Malformed: it is not a list.
        """
        found = self.get(*names)
        if found.value is not None and not isinstance(found.value, list):
            raise found.error(f"{names[0]!r} must be a list, found {_kind(found.value)}")
        return found.rows()

    def some(self, *names: str) -> list[Source]:
        """Return the items of a list that must have one.

        Raises:
            Malformed: it is missing or empty, or not a list.
        """
        if not (found := self.items(*names)):
            raise self.error(f"{names[0]!r} is missing or empty; is this the right format?")
        return found

    def rows(self) -> list[Source]:
        """Return the items of this list; none if it is not a list.

        Raises:
            Malformed: it has more than ``MAX_ROWS``.
        """
        listed = self.value if isinstance(self.value, list) else []
        if len(listed) > MAX_ROWS:
            raise self.error(f"{len(listed)} entries (maximum {MAX_ROWS}); split the file")
        return [Source(each, self._locate, (*self._path, number)) for number, each in enumerate(listed)]

    def unread(self) -> Iterator[tuple[str, Source]]:
        """Yield the keys that were not read and have a value."""
        for name in self.value if isinstance(self.value, dict) else ():
            if name not in self._read and self.value[name] not in (None, "", [], {}):
                yield name, Source(self.value[name], self._locate, (*self._path, name))


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    shown = f" {value!r}" if isinstance(value, bool | float) or (isinstance(value, str) and len(value) < 40) else ""
    return names.get(type(value), type(value).__name__) + shown


def read_source(data: bytes, name: str) -> Source:
    """Parse a file by its suffix: ``.toml``, ``.yaml``, ``.yml``, ``.jsonl``, else JSON. JSON lines become a list.

    Raises:
        Malformed: it cannot be parsed, or exceeds a limit.
    """
    if len(data) > MAX_BYTES:
        raise Malformed(f"{name}: the file has {len(data)} bytes (max {MAX_BYTES}); split it")
    suffix = PurePath(name).suffix.lower()
    if suffix in (".yaml", ".yml"):
        return _read_yaml(data, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Malformed(f"{name}:{line}: not UTF-8; save the file as UTF-8") from None
    if suffix == ".jsonl":
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if len(lines) > MAX_ROWS:
            raise Malformed(f"{name}:{lines[MAX_ROWS][0]}: more than {MAX_ROWS} rows; split the file")
        values = [_json(line, name, number) for number, line in lines]
        return Source(values, lambda path: _at(f"{name}:{lines[int(path[0])][0]}" if path else name, path[1:]))
    value = _toml(text, name) if suffix == ".toml" else _json(text, name, 1)
    return Source(value, lambda path: _at(name, path))


def _read_yaml(data: bytes, name: str) -> Source:
    try:
        document = read_document(data, name)
    except InvalidTask as error:
        raise Malformed(str(error)) from error
    return Source(document.value, lambda path: _at(f"{name}:{document.problem(path, '').line}", path))


def _json(text: str, name: str, line: int) -> Any:
    def reject(constant: str) -> None:
        raise ValueError(f"{constant} is not a number of JSON; remove it")

    try:
        return json.loads(text, parse_constant=reject)
    except json.JSONDecodeError as error:
        hint = "; a file with one object per line must be named .jsonl" if error.msg == "Extra data" else ""
        place = f"{name}:{line + error.lineno - 1}:{error.colno}"
        raise Malformed(f"{place}: not JSON: {error.msg}{hint}") from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Malformed(f"{name}:{line}: not JSON: {reason}") from None


def _toml(text: str, name: str) -> Any:
    if deep := _DEEP_TOML_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise Malformed(f"{name}:{line}: not read: a key with more than {_MAX_KEY_PARTS} parts; use shorter keys")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Malformed(f"{name}: not TOML: {reason}") from None


def _at(place: str, path: Path) -> str:
    steps = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).lstrip(".")
    return f"{place}: {steps}" if steps else place


_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_OTHER_TAGS = re.compile(r"\{\{|\{%|\{#")


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a template with its ``{{ path.to.value }}`` replaced. Values are not templates themselves.

    Raises:
        Unfilled: a placeholder has no value, or needs a template engine: a filter, a call, a tag.
    """
    if tag := _OTHER_TAGS.search(_PLACEHOLDER.sub("", template)):
        raise Unfilled(f"`{tag[0]}` needs a template engine; write the text out")

    def value(match: re.Match[str]) -> str:
        found: Any = values
        for step in match[1].strip().split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        if found is None:
            raise Unfilled(f"`{match[0]}` is not the name of a value here; write the text out")
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return _PLACEHOLDER.sub(value, template)
