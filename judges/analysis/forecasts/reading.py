"""Guessed extraction from the outline of an answer, for values that the lexical judge does not find.

The lexical judge reads values that follow their labels. If it finds few values, the entries of the answer (numbered
items, otherwise headed sections) fill the schema: the n-th entry for "number n", all entries for a list, with their
names and URLs. The values may be wrong, but their number is about right, and the cost depends on the number. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from answers.citations import unique_urls

MIN_FILLED_SHARE: Final = 0.5
"""Minimum share of filled fields at which the lexical reading is used."""
MAX_OUTLINE_ENTRIES: Final = 50

_NUMBERED = re.compile(r"^[ \t]{0,3}\d{1,3}[.)]\s+", re.MULTILINE)
_HEADED = re.compile(r"^#{2,6}\s+", re.MULTILINE)
_ITEM_NUMBER = re.compile(
    r"\b(?:number|no\.|nr\.|#)\s?(\d{1,3})\b|\b(first|second|third|fourth|fifth|sixth)\b", re.IGNORECASE
)
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth")
_URL_FIELD = re.compile(r"url|link|source|citation|website", re.IGNORECASE)
_NAME_FIELDS: Final = frozenset({"name", "title", "heading"})
_NAME_CHARS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of an answer."""

    name: str
    urls: tuple[str, ...] = ()


def complete_from_outline(read: Any, schema: Mapping[str, Any], *, request: str, text: str) -> Any:
    """Complete the lexical reading ``read`` (JSON) from the outline of ``text`` if it has few values."""
    found = entries(text)
    wanted = _item_number(request)
    if wanted is not None and 0 < wanted <= len(found):
        return _value(schema, "", found[wanted - 1 : wanted], schema)
    guessed = _value(schema, "", found, schema)
    return (
        _fill_blank_strings(read, guessed) if _filled_share(read) >= MIN_FILLED_SHARE else _fill_missing(read, guessed)
    )


def entries(text: str) -> list[Entry]:
    """Return the items of a text: numbered items, otherwise headed sections, otherwise the whole text as one item."""
    for mark in (_NUMBERED, _HEADED):
        starts = [found.start() for found in mark.finditer(text)]
        if len(starts) > 1:
            parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
            return [_entry(mark.sub("", part, count=1)) for part in parts[:MAX_OUTLINE_ENTRIES]]
    return [_entry(text)]


def _entry(text: str) -> Entry:
    bold = re.match(r"\W*\*\*(.+?)\*\*", text)
    name = bold[1] if bold else re.split(r"[\n:(]|\s[\u2013\u2014-]\s", text.strip(), maxsplit=1)[0]
    return Entry(name=name.strip(" *#_")[:_NAME_CHARS], urls=tuple(unique_urls(text)))


def _item_number(request: str) -> int | None:
    """Return the number of the item that a request names, or None."""
    found = _ITEM_NUMBER.search(request)
    if found is None:
        return None
    return int(found[1]) if found[1] else _ORDINALS.index(found[2].lower()) + 1


def _filled_share(read: Any) -> float:
    """Return the share of filled fields, including those of records in lists."""
    fields = list(_fields(read))
    return sum(fields) / len(fields) if fields else 0.0


def _fields(value: Any) -> Iterator[bool]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _fields(each)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for each in value:
            yield from _fields(each)
    else:
        yield value not in (None, "", [])


def _fill_blank_strings(read: Any, guessed: Any) -> Any:
    """Fill blank strings with guessed words, because the lexical judge often misses a value.

    URLs and lists are not changed.
    """
    if isinstance(read, Mapping) and isinstance(guessed, Mapping):
        return {
            name: value if _URL_FIELD.search(name) else _fill_blank_strings(value, guessed.get(name))
            for name, value in read.items()
        }
    if isinstance(read, list) and isinstance(guessed, list) and guessed:
        return [_fill_blank_strings(each, guessed[min(n, len(guessed) - 1)]) for n, each in enumerate(read)]
    return guessed if read in (None, "") and isinstance(guessed, str) else read


def _fill_missing(read: Any, guessed: Any) -> Any:
    """Replace missing values with guessed ones."""
    if isinstance(read, Mapping) and isinstance(guessed, Mapping):
        return {name: _fill_missing(value, guessed.get(name)) for name, value in read.items()}
    return guessed if read in (None, "", []) and guessed is not None else read


def _value(schema: Mapping[str, Any], name: str, found: Sequence[Entry], root: Mapping[str, Any]) -> Any:
    """Return an instance of a JSON Schema, filled from the entries."""
    if "$ref" in schema:
        return _value(root.get("$defs", {}).get(str(schema["$ref"]).rsplit("/", 1)[-1], {}), name, found, root)
    options = [each for each in schema.get("anyOf") or () if each.get("type") != "null"]
    if options:
        return _value(options[0], name, found, root) if found else None
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {field: _value(each, field, found, root) for field, each in schema.get("properties", {}).items()}
        case "array":
            if _URL_FIELD.search(name):
                return [url for entry in found for url in entry.urls]
            return [_value(schema.get("items", {}), name.removesuffix("s"), [entry], root) for entry in found]
        case "string":
            return _text(name, found)
        case kind:
            return {"integer": 1, "number": 1.0, "boolean": True}.get(str(kind))


def _text(name: str, found: Sequence[Entry]) -> str:
    if not found:
        return ""
    if _URL_FIELD.search(name):
        return found[0].urls[0] if found[0].urls else ""
    return found[0].name if name in _NAME_FIELDS else f"the {name} of {found[0].name}"
