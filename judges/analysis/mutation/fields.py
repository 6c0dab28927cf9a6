"""Fields of extracted values, with their path, value and declaring class. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel

from answers.citations import unique_urls
from judges.analysis.mutation.replay import Extracted

Path: TypeAlias = tuple[str | int, ...]
REMOVED = object()
"""New value that removes a list entry or empties a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Extracted value: a string, number or boolean, or an entry of a list of these.

    ``owner`` is the path of the object that contains it, ``declared`` the class and the name of the field.
    """

    extraction: str
    path: Path
    owner: Path
    value: Any
    declared: tuple[str, str]

    @property
    def urls(self) -> tuple[str, ...]:
        """Return the URLs in the value. A field with a URL is a citation."""
        return tuple(unique_urls(self.value)) if isinstance(self.value, str) else ()

    @property
    def is_empty(self) -> bool:
        return self.value is None or self.value == ""

    @property
    def name(self) -> str:
        return format_path(self.path)

    @property
    def shape(self) -> Path:
        """Return the path with ``*`` for every index, which is equal for the same field of all list items."""
        return shape_of(self.path)


def shape_of(path: Path) -> Path:
    return tuple("*" if isinstance(part, int) else part for part in path)


def format_path(path: Path) -> str:
    """Format a path as ``directors[0].name``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def fields_of(extracted: Extracted) -> tuple[Field, ...]:
    """Return all fields of an extraction, in order."""
    return tuple(_walk(extracted.value, (), (), extracted.schema, ("", ""), extracted.key))


def objects_of(extracted: Extracted) -> tuple[Path, ...]:
    """Return the paths of all objects and lists of objects in an extraction, outermost first."""
    return tuple(_containers(extracted.value, ()))


def value_at(value: Any, path: Path) -> Any:
    """Return the value at a path."""
    for part in path:
        value = value[part]
    return value


def with_value(value: Any, path: Path, by: Any) -> Any:
    """Return a copy with another value at a path. ``REMOVED`` removes a list entry and empties a field."""
    if not path:
        return empty_value(value) if by is REMOVED else by
    edited = copy.deepcopy(value)
    holder = value_at(edited, path[:-1])
    last = path[-1]
    if by is not REMOVED:
        holder[last] = by
    elif isinstance(last, int):
        del holder[last]
    else:
        holder[last] = empty_value(holder[last])
    return edited


def empty_value(value: Any) -> Any:
    """Return the empty value of the same type: empty lists and strings, None for numbers and booleans."""
    if isinstance(value, dict):
        return {name: empty_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return []
    return "" if isinstance(value, str) else None


def validate_value(schema: type[BaseModel], value: Any) -> Any:
    """Return the value validated by the class, or None if it is invalid. "" is also tried as None, and vice versa."""
    for candidate in (value, _swapped(value, "", None), _swapped(value, None, "")):
        try:
            return schema.model_validate(candidate, by_name=True, by_alias=True).model_dump(mode="json")
        except ValueError:
            continue
    return None


def _swapped(value: Any, old: Any, new: Any) -> Any:
    if isinstance(value, dict):
        return {name: _swapped(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [_swapped(each, old, new) for each in value]
    return new if value is old or (isinstance(value, str) and value == old) else value


def _walk(
    value: Any, path: Path, owner: Path, schema: type[BaseModel] | None, declared: tuple[str, str], key: str
) -> Iterator[Field]:
    if isinstance(value, dict):
        for name, each in value.items():
            field = None if schema is None else schema.model_fields.get(name)
            inner = None if field is None else _model_in(field.annotation)
            declared_at = (schema.__name__, name) if schema is not None and field is not None else declared
            yield from _walk(each, (*path, name), path, inner, declared_at, key)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _walk(each, (*path, number), owner, schema, declared, key)
    else:
        yield Field(extraction=key, path=path, owner=owner, value=value, declared=declared)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model class in a type such as ``list[Director] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for each in get_args(annotation) if (model := _model_in(each)) is not None), None)


def _containers(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        yield path
        for name, each in value.items():
            yield from _containers(each, (*path, name))
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        yield path
        for number, each in enumerate(value):
            yield from _containers(each, (*path, number))


_WORD = re.compile(r"\w+")


def new_words(by: Any, instead_of: Any) -> frozenset[str]:
    """Return the words of a value that the previous value does not contain."""
    before = {word.casefold() for word in _WORD.findall(str(instead_of))}
    return frozenset(word.casefold() for word in _WORD.findall(str(by))) - before


def has_words(text: str, words: frozenset[str]) -> bool:
    """Return whether a text contains one of the words."""
    return not words.isdisjoint(word.casefold() for word in _WORD.findall(text))
