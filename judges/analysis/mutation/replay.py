"""Model client that replays recorded extractions, with edits, and confirms every claim.

It allows hundreds of runs of a judge in seconds. Two runs differ only by the edit, so a difference between their leaves
shows how the judge uses the edited value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from judges.errors import LLMError, LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.json_schema import JSONSchema, options, schema_of_model
from rubrics.verdict import Usage

MODEL = "replay"
_NOT_IN_KEY = ("answer",)
"""Parts of a request that are not part of the key, because edits change them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Recorded extraction. ``value`` is the reply as JSON by field name, ``schema`` the class of the reply."""

    key: str
    schema: type[BaseModel]
    value: Any


def request_key(request: LLMRequest) -> str:
    """Return the key of an extraction: a hash of the schema's name and all parts except the text of the answer."""
    schema = "" if request.schema is None else request.schema.__name__
    parts = {name: text for name, text in request.parts.items() if name not in _NOT_IN_KEY}
    return hashlib.sha256(json.dumps([schema, parts], sort_keys=True).encode()).hexdigest()


class ExtractionRecorder:
    """Request observer that records the replies to extractions as JSON text, by ``request_key``."""

    def __init__(self, replies: dict[str, str]) -> None:
        self._replies = replies

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        if request.purpose == "extract":
            self._replies[request_key(request)] = _json_text(reply)

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        """Do nothing."""

    def cancelled(self, request: LLMRequest) -> None:
        """Do nothing."""


class Recordings:
    """Extractions of the unedited run, in order. ``replies``: recorded replies of a model, as JSON text by key."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        self._replies = replies
        self.extracted: dict[str, Extracted] = {}
        self.has_refused = False
        """Whether the judge sent a request that is neither an extraction nor a claim."""

    async def read(self, request: LLMRequest, client: LLMClient) -> tuple[Any, bool]:
        """Return the values of an extraction, and whether it was new. ``client`` extracts what was not recorded."""
        key = request_key(request)
        known = self.extracted.get(key)
        if known is not None:
            return known.value, False
        return await self._ask(request, client, key), True

    def keep(self, request: LLMRequest, value: Any) -> None:
        """Record an extraction of the unedited run."""
        key = request_key(request)
        if request.schema is not None:
            self.extracted[key] = Extracted(key=key, schema=request.schema, value=value)

    async def _ask(self, request: LLMRequest, client: LLMClient, key: str) -> Any:
        text = self._replies.get(key)
        if text is not None and request.schema is not None:
            return request.schema.model_validate_json(text).model_dump(mode="json")
        reply = await client.complete(request)
        if reply.parsed is None:
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, "the extraction has no values")
        return reply.parsed.model_dump(mode="json")


class ReplayClient:
    """``LLMClient`` of one run. ``edited``: edited values by key; None for the unedited run, which is recorded."""

    def __init__(self, client: LLMClient, recordings: Recordings, edited: Mapping[str, Any] | None) -> None:
        self._client = client
        self._recordings = recordings
        self._edited = edited
        self.new_extractions = 0
        """Number of extractions that the unedited run did not request: the edited value is part of their prompt."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        schema = request.schema
        if schema is None or request.purpose == "free":
            self._recordings.has_refused = True
            raise LLMOutputUnusable(UnusableKind.REFUSED, "a field test supports only claims and extractions")
        if request.purpose == "verify":
            return confirmed(schema)
        value, is_new = await self._recordings.read(request, self._client)
        if self._edited is None:
            self._recordings.keep(request, value)
        else:
            self.new_extractions += is_new
            value = self._edited.get(request_key(request), value)
        return reply_of(schema.model_validate(value, by_name=True, by_alias=True))

    async def aclose(self) -> None:
        """The client behind it stays open."""


def _json_text(reply: LLMReply) -> str:
    """Return a reply as JSON. A reply from a child process has its values only in ``text``."""
    if reply.text.lstrip().startswith("{") or reply.parsed is None:
        return reply.text
    return reply.parsed.model_dump_json(by_alias=True)


def confirmed(schema: type[BaseModel]) -> LLMReply:
    """Return the reply that confirms a claim."""
    return reply_of(schema.model_validate({"result": True, "reasoning": "Confirmed without asking a model."}))


def reply_of(parsed: BaseModel) -> LLMReply:
    """Return a reply with the given values."""
    return LLMReply(text=parsed.model_dump_json(), parsed=parsed, model=MODEL, usage=Usage(calls=1))


_ENTRIES = 3
_MAX_DEPTH = 6
PAGE = "https://made-up.invalid/page"


def generate_values(schema: type[BaseModel]) -> Any:
    """Return JSON values that fill every field. Texts name their field, lists have three entries that differ."""
    described = schema_of_model(schema)
    return _value(described, described, "value", "", 0)


def _value(described: JSONSchema, root: JSONSchema, name: str, place: str, depth: int) -> Any:
    """Return a value for one field. ``place`` numbers the list entries around it, such as " 2" or " 2.1"."""
    described = next(iter(options(described, root)), {"type": "null"})
    if "const" in described or "enum" in described:
        return described.get("const", (described.get("enum") or [None])[0])
    match described.get("type"):
        case "object" if depth < _MAX_DEPTH:
            fields = described.get("properties", {})
            return {each: _value(inner, root, each, place, depth + 1) for each, inner in fields.items()}
        case "array" if depth + 1 < _MAX_DEPTH:  # + 1 because entries may be objects
            entry, before = described.get("items", {}), f"{place}." if place else " "
            return [_value(entry, root, name, f"{before}{n}", depth + 1) for n in range(1, _ENTRIES + 1)]
        case "integer" | "number":
            return _number(described, place)
        case "boolean":
            return True
        case "string" if any(word in name.casefold() for word in ("url", "link", "source", "cit")):
            return f"{PAGE}/{name}{place}".replace(" ", "-")
        case "string":
            return f"the {name.replace('_', ' ')}{place}"
    return [] if described.get("type") == "array" else {} if described.get("type") == "object" else None


def _number(described: JSONSchema, place: str) -> Any:
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
