"""JSON Schemas of replies: references, optional values, and the value that a text stands for.

Covers the schemas that pydantic generates. Unknown keywords are ignored, because the class itself validates the reply.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

from pydantic import AnyUrl, BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

from judges.errors import JudgeBug

JSONSchema: TypeAlias = Mapping[str, Any]
MAX_DEPTH: Final = 48
MAX_STEPS: Final = 10_000
MAX_SCHEMA_CHARS: Final = 1_000_000
_FORMATS: Final[Mapping[str, Any]] = {
    "date": datetime.date,
    "date-time": datetime.datetime,
    "time": datetime.time,
    "uri": AnyUrl,
    "uuid": uuid.UUID,
}
_LAX_TYPES: Final[Mapping[str, Any]] = {"integer": int, "number": float, "boolean": bool}


@dataclass(frozen=True, slots=True)
class ReplySchema:
    """Name and JSON Schema (as JSON text) of a reply class that exists only in a task file's process.

    That process parses the replies into the class. Here they are only checked to be an object with a field of it.
    """

    name: str
    text: str


ReplyType: TypeAlias = type[BaseModel] | ReplySchema


def schema_name(reply_type: ReplyType) -> str:
    return reply_type.name if isinstance(reply_type, ReplySchema) else reply_type.__name__


@lru_cache(maxsize=256)
def json_schema_of(reply_type: ReplyType) -> JSONSchema:
    """Return the JSON Schema of a class. Do not modify the returned value; it is cached.

    Raises:
        JudgeBug: the text of a ``ReplySchema`` is not a JSON object, or too long.
    """
    if not isinstance(reply_type, ReplySchema):
        return reply_type.model_json_schema()
    name, text = reply_type.name, reply_type.text
    if len(text) > MAX_SCHEMA_CHARS:
        raise JudgeBug(f"the schema of {name} has {len(text)} characters (max {MAX_SCHEMA_CHARS})")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JudgeBug(f"the schema of {name} is not valid JSON: {error}") from error
    if not isinstance(schema, dict):
        raise JudgeBug(f"the schema of {name} is not a JSON object")
    return schema


def as_reply(values: Any, reply_type: ReplyType) -> tuple[str, BaseModel | None]:
    """Return values as the text of a reply and as an instance of the class, if it exists in this process.

    Raises:
        ValidationError: they do not match the class.
    """
    if isinstance(reply_type, ReplySchema):
        return to_json(values).decode(), None
    parsed = reply_type.model_validate(values, by_alias=True, by_name=True)
    return parsed.model_dump_json(by_alias=True), parsed


def resolve(schema: JSONSchema, root: JSONSchema) -> JSONSchema:
    """Follow ``$ref`` to the definition in ``root``; an unknown or circular reference allows every value."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema.get("$ref"), str):
            return schema
        definitions = root.get("$defs")
        name = schema["$ref"].rpartition("/")[2]
        definition = definitions.get(name) if isinstance(definitions, Mapping) else None
        schema = definition if isinstance(definition, Mapping) else {}
    return {}


def options(schema: JSONSchema, root: JSONSchema) -> list[JSONSchema]:
    """Return the alternatives of a schema, resolved, without null. A schema without alternatives is the only one."""
    schema = resolve(schema, root)
    for keyword in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(keyword)
        if isinstance(choices, list) and choices:
            resolved = [resolve(choice, root) for choice in choices if isinstance(choice, Mapping)]
            return [choice for choice in resolved if choice.get("type") != "null"]
    return [schema]


def properties(schema: JSONSchema) -> dict[str, JSONSchema]:
    """Return the schemas of an object's fields by name."""
    fields = schema.get("properties")
    return {
        str(name): field if isinstance(field, Mapping) else {}
        for name, field in (fields.items() if isinstance(fields, Mapping) else ())
    }


def object_in(schema: JSONSchema, root: JSONSchema) -> tuple[JSONSchema | None, bool]:
    """Return the schema of the objects in a field such as ``list[Director] | None``, and whether it is a list."""
    pending, seen = deque((option, False) for option in options(schema, root)), set[int]()
    while pending:
        option, is_list = pending.popleft()
        if properties(option):
            return option, is_list
        items = option.get("items")
        if isinstance(items, Mapping) and id(option) not in seen:
            seen.add(id(option))  # lists can contain themselves
            pending.extendleft((inner, True) for inner in reversed(options(items, root)))
    return None, False


class Misfit(ValueError):
    """A value does not fit a schema."""


def fit(value: Any, schema: JSONSchema, root: JSONSchema) -> Any:
    """Return ``value`` as the schema requires it: the text "87" becomes a number if only a number fits.

    ``pattern`` is not checked, because the regular expression of an untrusted schema may never end.

    Raises:
        Misfit: the value does not fit, or the schema has too many alternatives.
    """
    return _Fit(root).fit(value, schema)


class _Fit:
    """Comparison of one value with a schema. Its depth and steps are limited: alternatives may refer to each other."""

    def __init__(self, root: JSONSchema) -> None:
        self._root = root
        self._steps = 0

    def fit(self, value: Any, schema: JSONSchema, depth: int = 0) -> Any:
        self._steps += 1
        if self._steps > MAX_STEPS or depth > MAX_DEPTH:
            raise Misfit("the schema or the value is nested too deeply")
        schema = resolve(schema, self._root)
        choices = options(schema, self._root)
        has_alternatives = choices != [schema]
        if value is None and (has_alternatives or schema.get("type") in ("null", None)):
            return None
        if not has_alternatives:
            return self._fit_one(value, schema, depth + 1)
        # A text stays a text if that is allowed.
        for choice in sorted(choices, key=lambda choice: isinstance(value, str) and choice.get("type") != "string"):
            try:
                return self.fit(value, choice, depth + 1)
            except Misfit:
                continue
        raise Misfit("no alternative fits")

    def _fit_one(self, value: Any, schema: JSONSchema, depth: int) -> Any:
        if "const" in schema or isinstance(schema.get("enum"), list):
            if value in (schema["enum"] if "enum" in schema else [schema["const"]]):
                return value
            raise Misfit("not one of the values allowed")
        match schema.get("type"), value:
            case None, _:
                return value
            case "object", Mapping():
                return self._fit_object(value, schema, depth)
            case "array", list() | tuple():
                items = schema.get("items")
                return [self.fit(each, items if isinstance(items, Mapping) else {}, depth) for each in value]
            case "string", str():
                return _fit_text(value, schema)
            case ("integer" | "number" | "boolean") as kind, _:
                return _fit_range(_converted(value, _LAX_TYPES[kind]), schema)
            case kind, _:
                raise Misfit(f"not of type {kind}")

    def _fit_object(self, value: Mapping[str, Any], schema: JSONSchema, depth: int) -> dict[str, Any]:
        fields, required = properties(schema), schema.get("required")
        if not set(map(str, required if isinstance(required, list) else ())) <= value.keys():
            raise Misfit("a required value is missing")
        return {name: self.fit(each, fields[name], depth) if name in fields else each for name, each in value.items()}


def _fit_text(value: str, schema: JSONSchema) -> str:
    _fit_range(len(value), schema, "minLength", "maxLength")
    format_type = _FORMATS.get(str(schema.get("format")))
    if format_type is not None:
        _converted(value, format_type)
    return value


def _fit_range(value: Any, schema: JSONSchema, least: str = "minimum", greatest: str = "maximum") -> Any:
    bounds = [schema.get(name) for name in (least, greatest)]
    low, high = (bound if isinstance(bound, int | float) else value for bound in bounds)
    if not low <= value <= high:
        raise Misfit("out of range")
    return value


def _converted(value: Any, kind: Any) -> Any:
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        raise Misfit(f"not a valid {kind.__name__}") from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
