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

from pydantic import BaseModel, ValidationError

from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.json_schema import JSONSchema, ReplyType, as_reply, json_schema_of, options
from judges.llm.observed import RequestObserver
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
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
    parts = {name: text for name, text in request.parts.items() if name not in _NOT_IN_KEY}
    return hashlib.sha256(json.dumps([request.schema_name, parts], sort_keys=True).encode()).hexdigest()


class ExtractionRecorder(RequestObserver):
    """Request observer that records the text of the replies to extractions, by ``request_key``."""

    def __init__(self, replies: dict[str, str]) -> None:
        self._replies = replies

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        if request.purpose == "extract":
            self._replies[request_key(request)] = reply.text


class Recordings:
    """Extractions of the unedited run, in order. ``replies``: recorded replies of a model, as JSON text by key."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        self._replies = replies
        self.extracted: dict[str, Extracted] = {}

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
        if request.reply_class is not None:
            self.extracted[key] = Extracted(key=key, schema=request.reply_class, value=value)

    async def _ask(self, request: LLMRequest, client: LLMClient, key: str) -> Any:
        text = self._replies.get(key)
        if text is None:
            parsed = (await client.complete(request)).parsed
        else:
            raw = RawReply(text=text, finish=FinishReason.STOP, model=MODEL)
            parsed = read_reply(raw, request.schema, purpose="extract")
        if parsed is None:
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, "the extraction has no values")
        return parsed.model_dump(mode="json")


class ConfirmingClient:
    """``LLMClient`` that confirms every claim and sends nothing. Subclasses supply the values of extractions."""

    has_refused = False
    """Whether the judge sent a request that is neither an extraction nor a claim."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        reply_class = request.reply_class
        if reply_class is None or request.purpose == "free":
            self.has_refused = True
            raise LLMOutputUnusable(UnusableKind.REFUSED, "without a model, only claims and extractions are supported")
        if request.purpose == "verify":
            values: Any = {"result": True, "reasoning": "Confirmed without asking a model."}
        else:
            values = await self.values(request)
        try:
            text, parsed = as_reply(values, reply_class)
        except ValidationError as error:
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"no values fit {reply_class.__name__}") from error
        return LLMReply(text=text, parsed=parsed, model=MODEL, usage=Usage(calls=1))

    async def values(self, request: LLMRequest) -> Any:
        """Return the values of an extraction."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Do nothing."""


class ReplayClient(ConfirmingClient):
    """Client of one run. ``edited``: edited values by key; None for the unedited run, which is recorded.

    ``client`` stays open. It extracts what was not recorded.
    """

    def __init__(self, client: LLMClient, recordings: Recordings, edited: Mapping[str, Any] | None) -> None:
        self._client = client
        self._recordings = recordings
        self._edited = edited
        self.new_extractions = 0
        """Number of extractions that the unedited run did not request: the edited value is part of their prompt."""

    async def values(self, request: LLMRequest) -> Any:
        value, is_new = await self._recordings.read(request, self._client)
        if self._edited is None:
            self._recordings.keep(request, value)
            return value
        self.new_extractions += is_new
        return self._edited.get(request_key(request), value)


_ENTRIES = 3
_MAX_DEPTH = 6
PAGE = "https://made-up.invalid/page"


def generate_values(schema: ReplyType) -> Any:
    """Return JSON values that fill every field. Texts name their field, lists have three entries that differ."""
    described = json_schema_of(schema)
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


class GeneratedValuesClient(ConfirmingClient):
    """Client that fills every extraction with generated values.

    ``texts`` are the texts generated so far. The answer must contain them, because the extractor drops other values.
    """

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}

    async def values(self, request: LLMRequest) -> Any:
        generated = None if request.schema is None else generate_values(request.schema)
        self.texts |= dict.fromkeys(_texts(generated))
        return generated


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif value is not None:
        yield str(value)
