"""Made-up values for a class to be extracted, so that a judge can declare its rubric without an answer. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from judges.analysis.mutation.replay import confirmed, reply_of
from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMReply, LLMRequest

_ENTRIES = 3
_MAX_DEPTH = 6
PAGE = "https://made-up.invalid/page"


def made_up(schema: type[BaseModel]) -> Any:
    """JSON values that fill every field: texts name their field, lists have three entries."""
    described = schema.model_json_schema()
    return _value(described, described.get("$defs", {}), "value", 0)


def _value(described: dict[str, Any], definitions: dict[str, Any], name: str, depth: int) -> Any:
    if "$ref" in described:
        described = definitions.get(str(described["$ref"]).rpartition("/")[2], {})
    for several in ("anyOf", "oneOf", "allOf"):
        options = [each for each in described.get(several, ()) if each.get("type") != "null"]
        if options:
            return _value(options[0], definitions, name, depth)
    if "const" in described or "enum" in described:
        return described.get("const", (described.get("enum") or [None])[0])
    match described.get("type"):
        case "object" if depth < _MAX_DEPTH:
            fields = described.get("properties", {})
            return {each: _value(inner, definitions, each, depth + 1) for each, inner in fields.items()}
        case "array" if depth < _MAX_DEPTH:
            entry = described.get("items", {})
            return [_value(entry, definitions, f"{name} {n}", depth + 1) for n in range(1, _ENTRIES + 1)]
        case "integer" | "number":
            return described.get("minimum", 1)
        case "boolean":
            return True
        case "string" if any(word in name.casefold() for word in ("url", "link", "source", "cit")):
            return f"{PAGE}/{name.replace(' ', '-')}"
        case "string":
            return f"the {name.replace('_', ' ')}"
    return [] if described.get("type") == "array" else {} if described.get("type") == "object" else None


class MadeUpClient:
    """Fills every extraction with made-up values and confirms every claim."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        if request.schema is None or request.purpose == "free":
            raise LLMOutputUnusable(UnusableKind.REFUSED, "a dry run answers claims and extractions only")
        if request.purpose == "verify":
            return confirmed(request.schema)
        try:
            return reply_of(request.schema.model_validate(made_up(request.schema), by_name=True, by_alias=True))
        except ValueError as error:
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"no values fit {request.schema.__name__}") from error

    async def aclose(self) -> None:
        """Nothing was opened."""
