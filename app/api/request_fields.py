"""Field types of request bodies. The OpenAPI description contains their rules; code checks them with clearer messages.

``answers.submission`` checks names, texts and metadata.

Request bodies are strict JSON: UTF-8, no lone surrogates, no NaN, no repeated keys, limited nesting and count of
values. The parser of the standard library accepts lone surrogates, NaN and nesting that overflows the stack. Each of
these would cause an internal error later. Of a repeated key, parsers would ignore all values but the last.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import urlsplit

from fastapi import Request, Response, params
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import from_json

from answers.provider_replies import REPLY_SHAPES
from answers.submission import MAX_ANSWER_BYTES, MAX_LABEL_CHARS, MAX_NAME_CHARS, label_problems
from app.api.problems import Problem, ProblemWhileReading
from cache.urls import MAX_URL_CHARS, unfetchable_reason
from judges.errors import ModelNotConfigured
from judges.isolation.serialization import max_values
from judges.llm.providers import LEXICAL, PROVIDERS, parse_judge
from judges.voting import MAX_MEMBERS, MIN_MEMBERS, check_members

_NAME: Final = r"^[A-Za-z0-9](\.?[A-Za-z0-9_-])*\.?"
NOT_BLANK: Final = r"^[^\x00]*[^\x00\s\x1c-\x1f\x85][^\x00]*$"
"""No NUL, and a character that is not white space. Dialects differ on whether 1C to 1F and 85 are white space."""
FETCHABLE_URL: Final = (
    r"^\s*[Hh][Tt][Tt][Pp][Ss]?://[^\x00-\x2c\x2f\x3b-\x40\x5c\x5e\x60\x7b-\x7f]+"
    r"(/[^\x00-\x20\x3f\x23\x5c\x7f]*)?([?#][^\x00-\x20\x7f]*)?\s*$"
)
METADATA_VALUE: Final = "MetadataValue"
_NO_NUL: Final = {"pattern": r"^[^\x00]*$"}
_REF: Final = {"$ref": f"#/components/schemas/{METADATA_VALUE}"}
METADATA_VALUE_SCHEMA: Final[dict[str, Any]] = {
    "description": "Any JSON value. Neither strings nor field names contain NUL.",
    **_NO_NUL,
    "items": _REF,
    "propertyNames": _NO_NUL,
    "additionalProperties": _REF,
}


def _fetchable(url: str) -> str:
    refusal = unfetchable_reason(url.strip())
    if refusal is not None:
        raise ValueError(refusal)
    if "@" in urlsplit(url.strip()).netloc:
        raise ValueError("contains a user name or password: remove it, the requests are signed")
    return url.strip()


def _known_model(name: str) -> str:
    for problem in label_problems(name):
        raise ValueError(problem.message)
    try:
        parse_judge(name)
    except ModelNotConfigured as error:
        raise ValueError(str(error)) from error
    return name


def _single_model(name: str) -> str:
    if parse_judge(_known_model(name)).is_jury:
        raise ValueError("name one model: a jury judges answers only")
    return name


def _jury_of(value: Any) -> Any:
    """Return the name of the jury whose models are listed, any other value as it is."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        check_members(value)
        return ",".join(value)
    return value


def _whole(value: Any) -> Any:
    """Accept ``3.0`` as ``3``, as JSON Schema does; strict validation would reject it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Name: TypeAlias = Annotated[
    str,
    Field(
        description=f"1 to {MAX_NAME_CHARS} letters, digits, '.', '_' and '-'; starts with a letter or digit; no '..'",
        json_schema_extra={"pattern": f"{_NAME}$", "minLength": 1, "maxLength": MAX_NAME_CHARS},
    ),
]
AnswerName: TypeAlias = Annotated[
    str,
    Field(
        description=f"1 to {MAX_NAME_CHARS} letters, digits, '.', '_' and '-', with or without '.md'; starts with a "
        "letter or digit; no '..'. Names are unique within a request",
        json_schema_extra={
            "anyOf": [
                {"pattern": f"{_NAME}$", "minLength": 1, "maxLength": MAX_NAME_CHARS},
                {"pattern": rf"{_NAME}\.md$", "minLength": 4, "maxLength": MAX_NAME_CHARS + len(".md")},
            ]
        },
    ),
]
AnswerText: TypeAlias = Annotated[
    str,
    Field(
        description="Markdown: not blank, no NUL, at most 1 MiB of UTF-8 and 200 different URLs (413 if more)",
        json_schema_extra={"pattern": NOT_BLANK, "minLength": 1, "maxLength": MAX_ANSWER_BYTES},
    ),
]
_REPLY_TEXT: Final = ", ".join(f"{shape.provider} (``{shape.field}``)" for shape in REPLY_SHAPES)
_REPLY_FIELDS: Final = {list: {"type": "array", "minItems": 1}, dict: {"type": "object", "minProperties": 1}}
AnswerReply: TypeAlias = Annotated[
    dict[str, Any],
    Field(
        description=f"Complete JSON reply of a model provider: {_REPLY_TEXT}. It becomes Markdown in which the "
        "citations are links; the rules of ``text`` apply to the Markdown",
        json_schema_extra={
            "anyOf": [
                {"required": [shape.field], "properties": {shape.field: _REPLY_FIELDS[shape.kind]}}
                for shape in REPLY_SHAPES
            ]
        },
    ),
]
_MODEL: Final = rf"(({'|'.join(sorted(PROVIDERS))})[/:][!-+\x2d-~]+|[A-Za-z0-9_.-]+)"
_MODEL_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": f"^{_MODEL}$",
    "maxLength": MAX_LABEL_CHARS,
    "not": {"enum": sorted(PROVIDERS.keys() - {LEXICAL})},
}
_JURY_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": f"^{_MODEL}(,{_MODEL},{_MODEL}){{1,4}}$",
    "maxLength": MAX_LABEL_CHARS,
}
_MODEL_TEXT: Final = (
    "provider/model, or the name of an OpenAI model (default: the model of the service). A jury of 3, 5, 7 or 9 models "
    "is `a,b,c`: the majority decides"
)
SingleModel: TypeAlias = Annotated[
    str,
    AfterValidator(_single_model),
    WithJsonSchema(
        {"description": "provider/model, or the name of an OpenAI model (default: the model of the service)"}
        | _MODEL_SCHEMA
    ),
]
ModelText: TypeAlias = Annotated[
    str,
    Field(description=_MODEL_TEXT),
    AfterValidator(_known_model),
    WithJsonSchema({"description": _MODEL_TEXT, "anyOf": [_MODEL_SCHEMA, _JURY_SCHEMA]}),
]
Model: TypeAlias = Annotated[
    str,
    BeforeValidator(_jury_of),
    AfterValidator(_known_model),
    WithJsonSchema(
        {
            "description": f"{_MODEL_TEXT}. A list of models is the jury of its models",
            "anyOf": [
                _MODEL_SCHEMA,
                _JURY_SCHEMA,
                *(
                    {"type": "array", "items": _MODEL_SCHEMA, "minItems": n, "maxItems": n, "uniqueItems": True}
                    for n in range(MIN_MEMBERS, MAX_MEMBERS + 1, 2)
                ),
            ],
        }
    ),
]
WebhookUrl: TypeAlias = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_URL_CHARS,
        description="HTTP or HTTPS address of the receiver; private addresses only if ASSAY_EGRESS_ALLOW names them",
        json_schema_extra={"pattern": FETCHABLE_URL, "example": "https://example.org/hooks/assay"},
    ),
    AfterValidator(_fetchable),
]
Metadata: TypeAlias = Annotated[
    dict[str, Any],
    Field(
        description="Stored and returned unchanged; at most 64 KiB of JSON (413 if more)",
        json_schema_extra={"propertyNames": _NO_NUL, "additionalProperties": _REF},
    ),
]
WHOLE_NUMBER: Final = BeforeValidator(_whole)
"""For integers of strict models. Put it after the bounds, otherwise the OpenAPI description lacks them."""


MAX_VALUES: Final = 500_000
"""Maximum number of JSON values in a body. Decoded, ``[{},{},...]`` needs 25 times its size."""
_LARGE_BYTES: Final = 256 * 1024
"""Bodies of at least this size are parsed in a thread, so that the event loop is not blocked."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)


class StrictJsonRequest(Request):
    """Request with a strict ``json`` method."""

    async def json(self) -> Any:
        """Return the parsed body.

        Raises:
            json.JSONDecodeError: The body is invalid. FastAPI turns this into a validation error.
            ProblemWhileReading: An object has a key twice.
        """
        body = await self.body()
        return _parse(body) if len(body) < _LARGE_BYTES else await asyncio.to_thread(_parse, body)


def _parse(body: bytes) -> Any:
    # The upper bound counts characters in strings too, so the exact one is needed if it is exceeded.
    if max_values(body) > MAX_VALUES and max_values(_STRING.sub(b"", body)) > MAX_VALUES:
        raise json.JSONDecodeError(f"more than {MAX_VALUES} values", "", 0)
    try:
        value = from_json(body, allow_inf_nan=False, cache_strings="none")
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error
    json.loads(body, object_pairs_hook=_check_keys, parse_int=len, parse_float=len)  # the numbers are not needed
    return value


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(names) > len(set(names)):
        name, _ = Counter(names).most_common(1)[0]
        message = "is given more than once in an object of the body: send it once"
        raise ProblemWhileReading(Problem(400, "GIVEN_TWICE", f"{name} {message}", errors=[(name, message)]))


class StrictJsonRoute(APIRoute):
    """Route that accepts only JSON bodies, unless it declares a form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_json = self.body_field is not None and not isinstance(self.body_field.field_info, params.Form)

        async def strict(request: Request) -> Response:
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if takes_json and media_type != "application/json":
                raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "Send the body with Content-Type: application/json")
            return await handle(StrictJsonRequest(request.scope, request.receive))

        return strict
