"""Parser for replies: validates the text of a model against the requested class. Pure.

It is lenient about syntax (see ``json_objects``) and the letter case of keys, and strict about content. It rejects a
truncated object, two objects that differ, an object with other fields only, and a word instead of a boolean. ``{}`` is
an extraction that finds nothing, which is not a fault.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import AliasChoices, BaseModel, PydanticUserError, RootModel, ValidationError

from judges.errors import JudgeBug, LLMOutputUnusable, UnusableKind
from judges.llm.client import Purpose
from judges.llm.json_objects import NoSingleObject, is_unfinished_reasoning, parse_single_object
from judges.llm.json_schema import (
    MAX_DEPTH,
    JSONSchema,
    ReplySchema,
    ReplyType,
    json_schema_of,
    options,
    properties,
    resolve,
    schema_name,
)
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.source_code import judge_code

S = TypeVar("S", bound=BaseModel)

MAX_REPLY_CHARS: Final = 2**19
MAX_WRAPPINGS: Final = 3
"""Maximum number of nested objects with a single key around the requested object."""
_CALL_ARGUMENTS: Final = ("arguments", "parameters", "input")
_CALL_KEYS: Final = frozenset({*_CALL_ARGUMENTS, "name", "id", "type"})
_BOOLEANS: Final = {"true": True, "false": False}
_UNUSABLE_FINISH = {
    FinishReason.LENGTH: UnusableKind.TRUNCATED,
    FinishReason.REFUSAL: UnusableKind.REFUSED,
    FinishReason.FILTER: UnusableKind.FILTERED,
    FinishReason.BROKEN: UnusableKind.MALFORMED,
}


def read_reply(raw: RawReply, schema: ReplyType | None, *, purpose: Purpose) -> BaseModel | None:
    """Return the reply as an instance of ``schema``; None for a request without a class in this process.

    For verdicts, only values of the declared JSON types are accepted, and the strings "true" and "false" as booleans.
    Otherwise, "yes" is a boolean and "2020" is a number. Only for extractions, ``{}`` finds nothing.

    Raises:
        LLMOutputUnusable: with the kind. Its message never contains text of the model.
    """
    kind = _UNUSABLE_FINISH.get(raw.finish)
    text = raw.text.strip()
    if kind is UnusableKind.TRUNCATED and schema is None and text and not is_unfinished_reasoning(text):
        return None  # truncated free text is usable
    if kind is not None:
        raise LLMOutputUnusable(kind, f"the reply is {kind.value}{f': {raw.detail}' if raw.detail else ''}")
    if not text:
        raise LLMOutputUnusable(UnusableKind.EMPTY, "the reply is empty")
    if schema is None:
        return None
    if len(text) > MAX_REPLY_CHARS:
        raise LLMOutputUnusable(UnusableKind.MALFORMED, f"the reply is longer than {MAX_REPLY_CHARS} characters")
    try:
        value = parse_single_object(text)
    except NoSingleObject:
        raise LLMOutputUnusable(UnusableKind.MALFORMED, "the reply is not one JSON object") from None
    unusable = LLMOutputUnusable(
        UnusableKind.OFF_SCHEMA, f"the reply does not fit the schema: it has no field of {schema_name(schema)}"
    )
    for candidate in _unwrapped(value, schema):
        try:
            return _fitted(candidate, schema, strict=purpose == "verify")
        except LLMOutputUnusable as error:
            unusable = error
            if candidate == {} and purpose == "extract" and not isinstance(schema, ReplySchema):
                return empty_extraction(schema)
    raise unusable


def empty_extraction(schema: type[S]) -> S:
    """Return an instance with the default of each field, and None for required fields. It is not validated.

    The extraction of an answer that says nothing: its leaves fail, as for wrong values.
    """
    construct: Any = BaseModel.model_construct.__func__  # type: ignore[attr-defined]  # that of RootModel needs a value
    empty: S = construct(schema)
    required = (name for name, field in schema.model_fields.items() if field.is_required())
    empty.__dict__.update(dict.fromkeys(required))
    return empty


def _unwrapped(value: Any, schema: ReplyType) -> Iterator[Any]:
    """Yield the value and the values nested in it that have a field of ``schema``, or no field at all."""
    fields = _fields(schema)
    if fields is None:
        yield value
        return
    may_be_empty = True
    for _ in range(MAX_WRAPPINGS + 1):
        arguments = _call_arguments(value, schema, fields)
        if arguments is None and isinstance(value, dict):
            if fields & _renamed(value, fields).keys() or (not value and may_be_empty):
                yield value
            may_be_empty = value.keys() == {schema_name(schema)}  # an empty object in another field is no extraction
        value = _wrapped_in(value) if arguments is None else arguments


def with_exact_keys(value: Any, schema: type[BaseModel]) -> Any:
    """Return a JSON value in which keys that differ from a field of ``schema`` only in letter case have its name.

    A key is kept if several fields or several keys differ only in letter case, if the class reads values itself, or if
    it has no JSON Schema.
    """
    try:
        fields, described = _fields(schema), json_schema_of(schema)
    except PydanticUserError:
        return value
    if fields is None or not isinstance(value, dict):
        return value
    return _exact(_renamed(value, fields), described, described)


def _exact(value: Any, schema: JSONSchema, root: JSONSchema, depth: int = 0) -> Any:
    if not isinstance(value, list | dict) or depth > MAX_DEPTH:
        return value
    keyword = "items" if isinstance(value, list) else "properties"
    fitting = [option for option in options(schema, root) if isinstance(option.get(keyword), Mapping)]
    if len(fitting) != 1:  # only the class knows which alternative fits
        return value
    if isinstance(value, list):
        return [_exact(each, fitting[0]["items"], root, depth + 1) for each in value]
    known = properties(fitting[0])
    return {
        key: _exact(each, known.get(key, {}), root, depth + 1) for key, each in _renamed(value, known.keys()).items()
    }


def _renamed(value: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return an object with each key under the name that differs only in letter case, if that is unambiguous."""
    if value.keys() <= set(names):
        return value
    by_folded = {name.casefold(): name for name in names}
    uses = Counter(name.casefold() for name in names)
    keys = Counter(key.casefold() for key in value)
    return {
        by_folded[folded] if uses[folded := key.casefold()] == keys[folded] == 1 else key: each
        for key, each in value.items()
    }


def _wrapped_in(value: Any) -> Any:
    """Return the only item of a list, or the only value of an object; None otherwise."""
    if isinstance(value, list | dict) and len(value) == 1:
        [inner] = value.values() if isinstance(value, dict) else value
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            try:
                return parse_single_object(inner)
            except NoSingleObject:
                return None
        return inner
    return None


def _call_arguments(value: Any, schema: ReplyType, fields: frozenset[str]) -> Any:
    """Return the arguments of a tool call that the model wrote as text; None if the value is no tool call."""
    if not isinstance(value, dict) or "name" not in value or not value.keys() <= _CALL_KEYS:
        return None
    arguments = {key: value[key] for key in _CALL_ARGUMENTS if key in value}
    if "name" in fields and value["name"] != schema_name(schema):
        return None  # a field of the class, not the name of a tool
    return _wrapped_in(arguments)


@lru_cache(maxsize=256)
def _fields(schema: ReplyType) -> frozenset[str] | None:
    """Return the keys that ``schema`` reads; None if it accepts values other than objects with named fields."""
    described = json_schema_of(schema)
    names = set(properties(resolve(described, described)))
    if isinstance(schema, ReplySchema):
        return frozenset(names) or None
    validators = schema.__pydantic_decorators__.model_validators.values()
    if not names or issubclass(schema, RootModel) or any(validator.info.mode != "after" for validator in validators):
        return None
    for name, field in schema.model_fields.items():
        alias = field.validation_alias
        if alias is None or schema.model_config.get("populate_by_name"):
            names.add(name)
        names |= (
            {choice for choice in alias.choices if isinstance(choice, str)}
            if isinstance(alias, AliasChoices)
            else set()
        )
    return frozenset(names)


def _fitted(value: Any, schema: ReplyType, *, strict: bool) -> BaseModel | None:
    if isinstance(schema, ReplySchema):
        return None
    value = with_exact_keys(value, schema)
    if strict and isinstance(value, dict):
        value = {key: _as_boolean(each) if _is_boolean(schema, key) else each for key, each in value.items()}
    try:
        # The class comes from a judge file, and its validators may raise any exception for an unexpected value.
        with judge_code(f"a validator of {schema.__name__} raised"):
            model = schema.model_validate_json(json.dumps(value), strict=strict)
    except JudgeBug as bug:
        cause = bug.__cause__
        if isinstance(cause, ValidationError):
            raise _translated(cause) from cause
        problem = f"a validator of {schema.__name__} raised {type(cause).__name__}"
        raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"the reply does not fit the schema: {problem}") from cause
    if value != {} and _fields(schema) is None and schema.model_fields and not model.model_fields_set:
        raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"the reply sets no field of {schema.__name__}")
    return model


def _is_boolean(schema: type[BaseModel], name: str) -> bool:
    field = schema.model_fields.get(name)
    return field is not None and field.annotation is bool


def _as_boolean(value: Any) -> Any:
    return _BOOLEANS.get(value.strip().lower(), value) if isinstance(value, str) else value


def _translated(error: ValidationError) -> LLMOutputUnusable:
    first = error.errors(include_input=False, include_url=False)[0]
    if first["type"] == "json_invalid":
        return LLMOutputUnusable(UnusableKind.MALFORMED, "the reply is not one JSON object")
    location = ".".join(str(part) for part in first["loc"]) or "the whole"
    return LLMOutputUnusable(
        UnusableKind.OFF_SCHEMA, f"the reply does not fit the schema at {location}: {first['type']}"
    )
