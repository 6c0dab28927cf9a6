"""Whether a raw reply says what was asked for. Pure: text in, value out, or the way in which it is unusable.

Lenient where the meaning is beyond doubt (a fence around the whole object, fields nobody asked for), strict
where it is not: two objects, half an object or a word where a boolean belongs are never guessed at.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import BaseModel, ValidationError

from judges.errors import JudgeBug, LLMOutputUnusable, UnusableKind
from judges.foreign import judge_code
from judges.llm.wire import Finish, RawReply

MAX_REPLY_CHARS: Final = 2_000_000
_FENCE = re.compile(r"\s*```[a-zA-Z]*\s*\n(?P<body>.*?)\n?\s*```\s*", re.DOTALL)
_UNUSABLE_FINISH = {
    Finish.LENGTH: UnusableKind.TRUNCATED,
    Finish.REFUSAL: UnusableKind.REFUSED,
    Finish.FILTER: UnusableKind.FILTERED,
    Finish.BROKEN: UnusableKind.MALFORMED,
}


def read_reply(raw: RawReply, schema: type[BaseModel] | None, *, strict: bool) -> BaseModel | None:
    """Return the reply as an instance of ``schema``; None for a request without one.

    ``strict`` takes only values of the declared JSON types, as a verdict needs it: in the lax mode that
    extractions use, "yes" is a boolean and "2020" a number.

    Raises:
        LLMOutputUnusable: with the kind; its message never repeats what the model wrote.
    """
    kind = _UNUSABLE_FINISH.get(raw.finish)
    if kind is UnusableKind.TRUNCATED and schema is None and raw.text:
        return None  # free text that ends early is still text
    if kind is not None:
        raise LLMOutputUnusable(kind, f"the reply is {kind.value}{f': {raw.detail}' if raw.detail else ''}")
    text = raw.text.strip()
    if not text:
        raise LLMOutputUnusable(UnusableKind.EMPTY, "the reply is empty")
    if schema is None:
        return None
    if len(text) > MAX_REPLY_CHARS:
        raise LLMOutputUnusable(UnusableKind.MALFORMED, f"the reply is longer than {MAX_REPLY_CHARS} characters")
    fenced = _FENCE.fullmatch(text)
    try:
        # The class is a judge file's: its validators may raise anything over a value they did not foresee.
        with judge_code(f"a validator of {schema.__name__} raised"):
            return schema.model_validate_json(fenced["body"] if fenced else text, strict=strict)
    except JudgeBug as bug:
        cause = bug.__cause__
        if isinstance(cause, ValidationError):
            raise _translated(cause) from cause
        why = f"a validator of {schema.__name__} raised {type(cause).__name__}"
        raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"the reply does not fit the schema: {why}") from cause


def _translated(error: ValidationError) -> LLMOutputUnusable:
    first = error.errors(include_input=False, include_url=False)[0]
    if first["type"] == "json_invalid":
        return LLMOutputUnusable(UnusableKind.MALFORMED, "the reply is not one JSON object")
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    return LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"the reply does not fit the schema at {where}: {first['type']}")
