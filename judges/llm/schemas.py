"""Conversion of a pydantic class to the ``response_format`` parameter. Cached by class."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from openai import pydantic_function_tool
from pydantic import BaseModel

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


@lru_cache(maxsize=256)
def response_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the ``response_format`` parameter of a chat completion.

    The schema is strict if the provider can enforce it. A schema with arbitrary keys (``dict[str, int]``) cannot be
    strict. Replies are validated in both cases.
    """
    plain = schema.model_json_schema()
    if _has_free_keys(plain):
        return _json_schema(schema.__name__, plain, strict=False)
    tightened = pydantic_function_tool(schema)["function"].get("parameters", {})
    return _json_schema(schema.__name__, dict(tightened), strict=True)


def _json_schema(name: str, schema: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": _NOT_IN_NAMES.sub("_", name)[:64], "schema": schema, "strict": strict},
    }


def _has_free_keys(schema: Any) -> bool:
    """Return whether an object in a JSON schema accepts keys that it does not name."""
    if isinstance(schema, list):
        return any(_has_free_keys(each) for each in schema)
    if not isinstance(schema, dict):
        return False
    is_open_object = schema.get("type") == "object" and "properties" not in schema
    return is_open_object or bool(schema.get("additionalProperties")) or any(map(_has_free_keys, schema.values()))
