"""Request formats of OpenAI-compatible servers, and how a rejected request changes the format. Pure.

Servers differ in how they accept a schema, in the parameters and roles they know, and in whether a model takes images.
The first request uses OpenAI's own format. If the server rejects a part of it, the next format omits that part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from judges.llm.error_mapping import (
    ErrorResponse,
    is_filtered,
    is_key_rejected,
    is_quota_exhausted,
    is_too_long,
    is_unknown_model,
)


class SchemaMode(StrEnum):
    """How a request states its schema: one step of the structured output ladder, strictest first."""

    STRICT = "json_schema strict"
    SCHEMA = "json_schema"
    OBJECT = "json_object"
    TOOL = "tool call"
    PROMPT = "prompt"


LADDER: Final = tuple(SchemaMode)
SCHEMA_IN_WORDS: Final = "schema in words"
"""Part of a format's name: the prompt ``schema_words``, which contains the schema, follows the last message."""
REJECTING_STATUSES: Final = frozenset({400, 404, 405, 415, 422, 500, 501})
"""HTTP statuses with which servers reject a request format."""
AMBIGUOUS_STATUSES: Final = frozenset({400, 422})
"""Statuses that may reject the format even if the message names no part of it."""
DEFAULT_OUTPUT_LIMIT: Final = 4096
"""Output limit in tokens to request if the server's default truncates replies."""
_CAPS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_KEPT: Final = frozenset({"model", "messages", "response_format", "tools", "tool_choice"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFormat:
    """Request format.

    ``schema_in_words``: the prompt contains the schema, too. ``dropped`` parameters are not sent. ``cap_name`` is the
    parameter for the output limit, and ``cap`` its value for requests that set none.
    """

    schema_mode: SchemaMode = SchemaMode.STRICT
    schema_in_words: bool = False
    dropped: frozenset[str] = frozenset()
    cap_name: str | None = None
    cap: int | None = None
    one_message: bool = False
    """Send one user message, because the server accepts no system role or no two messages of the same role."""
    images: bool = True
    stream: bool = False
    """Request server-sent events, because the server supports only streamed replies."""
    oversized: bool = False
    """Leave out the images of this one request because its body was too large. Never stored."""

    @property
    def shows_images(self) -> bool:
        return self.images and not self.oversized

    def parameters(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters to send."""
        sent = dict(params)
        if self.cap is not None and not any(name in sent for name in _CAPS):
            sent[self.cap_name or "max_tokens"] = self.cap
        if self.stream:
            sent |= {"stream": True, "stream_options": {"include_usage": True}}
        if self.cap_name is not None:
            sent = {self.cap_name if name in _CAPS else name: value for name, value in sent.items()}
        return {name: value for name, value in sent.items() if name not in self.dropped}

    def lower(self, *, to: SchemaMode | None = None) -> RequestFormat | None:
        """Return the format with the next schema mode of the ladder (or ``to``); None after the last one.

        From ``json_object`` on, the prompt contains the schema.
        """
        place = LADDER.index(self.schema_mode) + 1 if to is None else LADDER.index(to)
        if place >= len(LADDER):
            return None
        return replace(
            self,
            schema_mode=LADDER[place],
            schema_in_words=self.schema_in_words or place >= LADDER.index(SchemaMode.OBJECT),
        )

    def more_explicit(self) -> RequestFormat | None:
        """Return the format to try after a reply that does not match the schema.

        The first such format has the schema in words; the next ones have a less strict schema mode.
        """
        if not self.schema_in_words:
            return replace(self, schema_in_words=True)
        return self.lower(to=SchemaMode.OBJECT) if self.schema_mode is SchemaMode.STRICT else self.lower()

    def __str__(self) -> str:
        notes = [SCHEMA_IN_WORDS] if self.schema_in_words else []
        notes += [f"without {', '.join(sorted(self.dropped))}"] if self.dropped else []
        notes += [f"{self.cap_name or 'max_tokens'} {self.cap or ''}".strip()] if self.cap or self.cap_name else []
        notes += ["one message"] if self.one_message else []
        notes += [] if self.shows_images else ["without pictures"]
        notes += ["streamed"] if self.stream else []
        return "; ".join([self.schema_mode.value, *notes])


def to_json(request_format: RequestFormat) -> dict[str, Any]:
    return {
        **asdict(request_format),
        "schema_mode": request_format.schema_mode.value,
        "dropped": sorted(request_format.dropped),
    }


def from_json(values: Mapping[str, Any]) -> RequestFormat:
    """Raises ValueError, TypeError or LookupError if ``values`` were not written by ``to_json``."""
    return RequestFormat(
        **{**values, "schema_mode": SchemaMode(values["schema_mode"]), "dropped": frozenset(values["dropped"])}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParts:
    """Parts of a rejected request."""

    params: Collection[str]
    has_schema: bool
    has_images: bool
    has_system: bool
    may_drop_images: bool


_IMAGES = re.compile(
    r"image|multi-?modal|vision|mmproj|pictures?\b|content\b.{0,40}(?:must be|should be|valid|expected)"
    r".{0,15}str(?:ing)?|(?:str|string) type expected|unsupported content|content type"
)
_BAD_IMAGE = re.compile(
    r"invalid.{0,10}image|image.{0,30}(?:too (?:large|small|big|many)|decod|corrupt|exceed|dimension"
    r"|resolution|download"
    r"|fetch)|(?:decode|process|load|parse|open|download|fetch).{0,20}image|at most [1-9]\d* image|too many images"
)
_ROLES = re.compile(
    r"system (?:role|message|prompt|instruction)|developer (?:role|message|instruction)"
    r"|roles? .{0,40}(?:system|developer|alternat)"
    r"|(?:system|developer)\W{1,3}(?:is|role|are|does|not)|only .{0,30}user.{0,20}assistant|must alternate"
    r"|conversation roles|(?:support|allow|accept|unknown|invalid|unexpected).{0,30}\W(?:system|developer)\b"
    r"|role.{0,60}\b(?:system|developer)\b|multiple user messages|consecutive"
    r"|successive (?:user|assistant|messages)|interleave the user"
)
_STRUCTURE = re.compile(
    r"response[_ ]?format|json[_ ]?schema|json[_ ]?object|json mode|structured|guided|grammar|schema|\bstrict\b"
    r"|additionalproperties|xgrammar|outlines|lm-format|tool|function|\bformat\b"
)
_STRICT = re.compile(r"\bstrict\b|additionalproperties|'required' is required|invalid schema|schema.{0,60}required")
_NO_SCHEMA = re.compile(
    r"(?:one of|expected|allowed|only|must be|supports?|permitted).{0,60}json_object"
    r"|unknown variant .?json_schema|json_schema.{0,40}(?:not|unsupported|isn)"
    r"|(?:not|n't|un)\W?.{0,12}support.{0,30}json_schema"
    r"|response_?format\W{0,3}(?:of )?type\b.{0,40}\b(?:un(?:available|supported)|not (?:available|supported))"
)
_NO_FORMAT = re.compile(
    r"(?:un(?:known|supported|expected|recognized|recognised)|extra|invalid|not (?:permitted|allowed"
    r"|supported)).{0,60}response_format(?!\.)"
    r"|response_format\W{0,6}(?:is )?(?:not|un|extra|param).{0,20}(?:support|permit|allow|known|recogni|input|field)"
)
_STREAM = re.compile(
    r"only supports? (?:the )?stream|stream(?:ing)?(?: mode)? (?:is|must be) (?:required|enabled|set to true)"
    r"|enable (?:the )?[`'\"]?stream|non-?stream(?:ing|ed)? (?:calls?|requests?|mode|responses?)"
    r"|set [`'\"]?stream[`'\"]?(?: to|=) ?true"
)
_CAP_WANTED = re.compile(
    r"max_(?:completion_|output_)?tokens\b.{0,40}\b(?:required|missing|must be (?:set|given|specified|provided))"
    r"|\b(?:required|missing|must (?:set|give|specify|provide))\b.{0,60}\bmax_(?:completion_|output_)?tokens"
)
_TEMPLATE_TRACE = re.compile(r"(?:while executing|jinja|template).*\berror: ", re.DOTALL)
"""The part of an error message in which a server quotes its chat template, up to the error itself."""


def adapt_format(request_format: RequestFormat, response: ErrorResponse, parts: RequestParts) -> RequestFormat | None:
    """Return the format to try next if the error names a part of the request format; else None."""
    text = _text(response)
    if response.status not in REJECTING_STATUSES or _is_about_something_else(response):
        return None
    if parts.has_images and says_no_images(response):
        return replace(request_format, images=False) if parts.may_drop_images else None
    if not request_format.stream and _STREAM.search(text):
        return replace(request_format, stream=True)
    if response.status == 404 and "parameter" not in text and "response_format" not in text and "tool" not in text:
        return None
    return (
        _without_parameters(request_format, response, text, parts)
        or _without_roles(request_format, text)
        or _with_other_structure(request_format, text, parts)
    )


def next_untried_format(request_format: RequestFormat, parts: RequestParts) -> RequestFormat | None:
    """Return the format to try after an error that names no part of the request; None if all were tried."""
    if parts.has_schema and request_format.schema_mode is not SchemaMode.PROMPT:
        return request_format.lower()
    optional = frozenset(parts.params) - _KEPT - ({"stream"} if request_format.stream else set())
    if optional:
        return replace(request_format, dropped=request_format.dropped | optional)
    if parts.has_system and not request_format.one_message:
        return replace(request_format, one_message=True)
    if parts.has_images and parts.may_drop_images:
        return replace(request_format, images=False)
    return None


def says_no_images(response: ErrorResponse) -> bool:
    """Return whether the error for a request with images means that the model takes no images."""
    text = _text(response)
    is_form = response.status in REJECTING_STATUSES and not _is_about_something_else(response)
    return is_form and bool(_IMAGES.search(text)) and not _BAD_IMAGE.search(text)


def is_ambiguous(response: ErrorResponse) -> bool:
    """Return whether an error may be about the request format although its message does not say so."""
    return response.status in AMBIGUOUS_STATUSES and not _is_about_something_else(response)


def _text(response: ErrorResponse) -> str:
    """Return message, code and parameter of an error in lower case, without a quoted chat template."""
    return _TEMPLATE_TRACE.sub("", f"{response.message} {response.code} {response.param}".lower())


def _is_about_something_else(response: ErrorResponse) -> bool:
    tests = (is_key_rejected, is_filtered, is_quota_exhausted, is_unknown_model, is_too_long)
    return any(test(response) for test in tests)


def _without_parameters(
    request_format: RequestFormat, response: ErrorResponse, text: str, parts: RequestParts
) -> RequestFormat | None:
    if "max_completion_tokens" in text and "max_tokens" in parts.params and request_format.cap_name is None:
        return replace(request_format, cap_name="max_completion_tokens")
    if request_format.cap is None and not any(name in parts.params for name in _CAPS) and _CAP_WANTED.search(text):
        return replace(request_format, cap=DEFAULT_OUTPUT_LIMIT)
    own = [name for name in parts.params if name not in _KEPT and name != "stream"]
    named_params = [name for name in own if response.param == name] or [name for name in own if _names(text, name)]
    if not named_params:
        return None
    if "max_completion_tokens" in named_params and request_format.cap_name is None:
        return replace(request_format, cap_name="max_tokens")
    return replace(request_format, dropped=request_format.dropped | set(named_params))


def _names(text: str, name: str) -> bool:
    """Return whether a message names a parameter. Names that are ordinary words or letters must be quoted."""
    before = r"[`'\"\[.:]\s?" if name in ("n", "user", "stop", "store") else r"\b"
    return re.search(rf"{before}{re.escape(name)}\b", text) is not None


def _without_roles(request_format: RequestFormat, text: str) -> RequestFormat | None:
    if request_format.one_message or not _ROLES.search(text):
        return None
    return replace(request_format, one_message=True)


def _with_other_structure(request_format: RequestFormat, text: str, parts: RequestParts) -> RequestFormat | None:
    if not parts.has_schema or not _STRUCTURE.search(text):
        return None
    if request_format.schema_mode in (SchemaMode.STRICT, SchemaMode.SCHEMA):
        if _NO_SCHEMA.search(text):
            return request_format.lower(to=SchemaMode.OBJECT)
        if _NO_FORMAT.search(text) and not _STRICT.search(text):
            return request_format.lower(to=SchemaMode.TOOL)
    if (
        request_format.schema_mode is SchemaMode.OBJECT
        and "json_schema" in text
        and re.search(r"must be|expected|one of|only", text)
    ):
        return request_format.lower(to=SchemaMode.TOOL)
    return request_format.lower()
