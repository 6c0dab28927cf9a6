"""Generated values for extraction classes, so that a judge can declare its rubric without a real answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from judges.analysis.mutation.replay import confirmed, reply_of
from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMReply, LLMRequest

_ENTRIES = 3
_MAX_DEPTH = 6
PAGE = "https://made-up.invalid/page"


def generate_values(schema: type[BaseModel]) -> Any:
    """Return JSON values that fill every field. Texts name their field, lists have three entries that differ."""
    described = schema.model_json_schema()
    return _value(described, described.get("$defs", {}), "value", "", 0)


def _value(described: dict[str, Any], definitions: dict[str, Any], name: str, place: str, depth: int) -> Any:
    """Return a value for one field. ``place`` numbers the list entries around it, such as " 2" or " 2.1"."""
    if "$ref" in described:
        described = definitions.get(str(described["$ref"]).rpartition("/")[2], {})
    for several in ("anyOf", "oneOf", "allOf"):
        options = [each for each in described.get(several, ()) if each.get("type") != "null"]
        if options:
            return _value(options[0], definitions, name, place, depth)
    if "const" in described or "enum" in described:
        return described.get("const", (described.get("enum") or [None])[0])
    match described.get("type"):
        case "object" if depth < _MAX_DEPTH:
            fields = described.get("properties", {})
            return {each: _value(inner, definitions, each, place, depth + 1) for each, inner in fields.items()}
        case "array" if depth + 1 < _MAX_DEPTH:  # + 1 because entries may be objects
            entry, before = described.get("items", {}), f"{place}." if place else " "
            return [_value(entry, definitions, name, f"{before}{n}", depth + 1) for n in range(1, _ENTRIES + 1)]
        case "integer" | "number":
            return _number(described, place)
        case "boolean":
            return True
        case "string" if any(word in name.casefold() for word in ("url", "link", "source", "cit")):
            return f"{PAGE}/{name}{place}".replace(" ", "-")
        case "string":
            return f"the {name.replace('_', ' ')}{place}"
    return [] if described.get("type") == "array" else {} if described.get("type") == "object" else None


def _number(described: dict[str, Any], place: str) -> Any:
    """Return the smallest number allowed, plus the number of the list entry if the maximum permits it."""
    least = described.get("minimum", 1)
    value = least + int(place.rpartition(".")[2] or 0)
    return value if value <= described.get("maximum", value) else least


class GeneratedValuesClient:
    """Model client that fills every extraction with generated values and confirms every claim.

    ``texts`` are the texts generated so far. The answer must contain them, because the extractor drops other values.
    """

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}

    async def complete(self, request: LLMRequest) -> LLMReply:
        if request.schema is None or request.purpose == "free":
            raise LLMOutputUnusable(UnusableKind.REFUSED, "a lint run supports only claims and extractions")
        if request.purpose == "verify":
            return confirmed(request.schema)
        values = generate_values(request.schema)
        self.texts |= dict.fromkeys(_texts(values))
        try:
            return reply_of(request.schema.model_validate(values, by_name=True, by_alias=True))
        except ValueError as error:
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"no values fit {request.schema.__name__}") from error

    async def aclose(self) -> None:
        """Do nothing."""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif value is not None:
        yield str(value)
