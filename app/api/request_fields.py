"""Field types of request bodies. The OpenAPI description contains their rules; code checks them with clearer messages.

``answers.submission`` checks names, texts and metadata.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from answers.provider_replies import REPLY_LISTS
from answers.submission import MAX_ANSWER_BYTES, MAX_LABEL_CHARS, MAX_NAME_CHARS, label_problems
from judges.errors import ModelNotConfigured
from judges.llm.providers import LEXICAL, PROVIDERS, parse_model

_NAME: Final = r"^[A-Za-z0-9](\.?[A-Za-z0-9_-])*\.?"
NOT_BLANK: Final = r"^[^\x00]*[^\x00\s][^\x00]*$"
"""At least one character that is not white space, and no NUL."""
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


def _known_model(name: str) -> str:
    for problem in label_problems(name, "model"):
        raise ValueError(problem.message)
    try:
        parse_model(name)
    except ModelNotConfigured as error:
        raise ValueError(str(error)) from error
    return name


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
AnswerReply: TypeAlias = Annotated[
    dict[str, Any],
    Field(
        description="JSON reply of OpenAI or Perplexity (``output`` or ``choices``), Anthropic (``content``) or Gemini "
        "(``candidates`` or ``steps``), complete. It becomes Markdown in which the citations are links; the rules of "
        "``text`` apply to the Markdown",
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"type": "array", "minItems": 1}}} for name in REPLY_LISTS
            ]
        },
    ),
]
Model: TypeAlias = Annotated[
    str,
    Field(
        description="provider/model, or the name of an OpenAI model (default: the model of the service)",
        json_schema_extra={
            "pattern": f"^(({'|'.join(sorted(PROVIDERS))})[/:][!-~]+|[A-Za-z0-9_.-]+)$",
            "maxLength": MAX_LABEL_CHARS,
            "not": {"enum": sorted(PROVIDERS.keys() - {LEXICAL})},
        },
    ),
    AfterValidator(_known_model),
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
