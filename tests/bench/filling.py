"""Extractions of the stand-in model: entries of a generated answer as an instance of any JSON schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.standin.call import Call

_ENTRY = re.compile(r"^\d+\. \*\*(?P<name>.+?)\*\* (?P<rest>.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\((https?://[^)\s]+)\)")
_ASKED_FOR = re.compile(r"number (\d+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One numbered entry of an answer, or the heading of a page."""

    name: str
    urls: tuple[str, ...] = ()


def entries_of(answer: str) -> list[Entry]:
    return [Entry(found["name"], tuple(_LINK.findall(found["rest"]))) for found in _ENTRY.finditer(answer)]


def filled(call: Call) -> Any:
    """Return the reply to an extraction: the page's heading, the requested entry, or all entries."""
    assert call.schema is not None
    if call.page:
        heading = call.page.partition("\n")[0].lstrip("# ")
        return _value(call.schema, "", [Entry(heading)], call.schema)
    entries = entries_of(call.block("answer"))
    asked = _ASKED_FOR.search(call.block("request"))
    if asked is not None:
        place = int(asked[1]) - 1
        entries = entries[place : place + 1]
    return _value(call.schema, "", entries, call.schema)


def _value(schema: Mapping[str, Any], name: str, entries: Sequence[Entry], root: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _value(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], name, entries, root)
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], name, entries, root) if entries else None
    if schema.get("type") == "object":
        return {field: _value(each, field, entries, root) for field, each in schema["properties"].items()}
    if schema.get("type") == "array":
        return _list(schema["items"], name, entries, root)
    if not entries:
        return ""
    urls = entries[0].urls
    if "url" in name:
        return urls[0] if urls else ""
    return entries[0].name if name in {"name", "title", "heading"} else f"the {name} of {entries[0].name}"


def _list(items: Mapping[str, Any], name: str, entries: Sequence[Entry], root: Mapping[str, Any]) -> list[Any]:
    if "url" in name:
        return [url for entry in entries for url in entry.urls]
    return [_value(items, name.removesuffix("s"), [entry], root) for entry in entries]
