"""Parser for replies: validates the text of a model against the requested class. Pure.

It is lenient about syntax and the letter case of keys, and strict about content. It rejects a truncated object, two
objects that differ, an object with other fields only, and a word instead of a boolean. ``{}`` is an extraction that
finds nothing, which is not a fault.

Models wrap the requested object in reasoning, prose or Markdown fences, or write a Python ``dict`` instead.
``parse_single_object`` accepts all of these if the result is unambiguous. Its running time is linear in the length of
the text.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import AliasChoices, BaseModel, PydanticUserError, RootModel, ValidationError

from judges.errors import JudgeBug, LLMOutputUnusable, UnusableKind
from judges.llm.client import Purpose
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

MAX_PYTHON_CHARS: Final = 256_000
"""Maximum length of an object with Python syntax or trailing commas. Valid JSON has no limit here."""
MAX_OBJECTS: Final = 200
"""Maximum number of equal objects plus invalid drafts in one text."""
MAX_BRACKETS: Final = 200
MAX_ENCODINGS: Final = 3
"""Maximum number of times that the object may be encoded as a JSON string."""

_NAMES = r"(?:think|thinking|thoughts?|reasoning|reflection|seed:think)"
_OPEN = (
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|START_THINKING)\|>"
    r"|<\|channel\|>\s*(?:analysis|commentary)\b[^<]{0,80}<\|message\|>"
)
_CLOSE = rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|(?:end_of_thought|END_THINKING)\|>|<\|channel\|>\s*final\b"
_OBJECT = r"""\{\s*(?:\}|"(?:[^"\\\n]|\\.){0,200}"\s*:|'(?:[^'\\\n]|\\.){0,200}'\s*:)"""
"""Start of an object: a brace with a quoted key, or an empty object. Other braces are prose."""
_MARK = re.compile(f"(?P<open>{_OPEN})|(?P<close>{_CLOSE})|(?P<object>{_OBJECT})", re.IGNORECASE)
_OPENING = re.compile(_OPEN, re.IGNORECASE)
_CLOSING = re.compile(_CLOSE, re.IGNORECASE)
_BEGINNING = re.compile(_OBJECT)
_PYTHON = re.compile(
    r"""(?P<double>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*')|(?P<word>\b(?:True|False|None)\b)"""
    r"""|(?P<comma>,(?=\s*[}\]]))|(?P<open>[{\[])|(?P<close>[}\]])""",
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_LEAKED = re.compile(r"\A(?:assistant)?(?:analysis|commentary).*?assistantfinal(?=\s*[{`])", re.DOTALL)
"""Harmony channels (gpt-oss) that a server wrote as plain text: everything before the final channel."""
_TO_THE_END = re.compile(r"[\s`~]*\Z")
_LINE_START = re.compile(r"(?:\A|\n)[ \t]*\Z")
_NOT_JSON: Final = object()


class NoSingleObject(ValueError):
    """The text has no JSON object, an invalid one, or several that differ."""


def parse_single_object(text: str) -> Any:
    """Return the one JSON object in ``text``. If all of ``text`` is JSON, return its value, of any type.

    Text between reasoning tags is skipped, and so is text before a closing tag without an opening tag. After an opening
    tag without a closing tag, an object counts only if it is the only one, starts a line and ends the text.

    Raises:
        NoSingleObject: there is no object, or the text is ambiguous.
    """
    text = _LEAKED.sub("", text.replace("\ufeff", "").strip(), count=1)
    value: Any = text
    for _ in range(MAX_ENCODINGS):
        value = _whole(value)
        if not isinstance(value, str):
            break
        value = value.strip()
    if isinstance(value, str):
        raise NoSingleObject
    return value if value is not _NOT_JSON else _single(_objects(text))


def is_unfinished_reasoning(text: str) -> bool:
    """Return whether a reply ends within the reasoning that it starts with.

    >>> is_unfinished_reasoning("<think>I look"), is_unfinished_reasoning("<think>I look</think> B")
    (True, False)
    """
    opening = _OPENING.match(text.lstrip())
    return opening is not None and _CLOSING.search(text) is None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object. A key with two different values is ambiguous."""
    unique = dict(pairs)
    if len(unique) != len(pairs) and any(unique[key] != value for key, value in pairs):
        raise NoSingleObject
    return unique


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, strict=False)


def _whole(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except NoSingleObject:
        raise
    except (ValueError, RecursionError):
        return _NOT_JSON


def _single(objects: list[dict[str, Any]]) -> dict[str, Any]:
    if not objects or any(not _same(each, objects[0]) for each in objects[1:]):
        raise NoSingleObject
    return objects[0]


def _same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal. Unlike in Python, ``1`` does not equal ``true``."""
    return bool(left == right) and json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the objects in ``text`` outside of reasoning.

    Raises:
        NoSingleObject: one of them is invalid.
    """
    objects: list[dict[str, Any]] = []
    at = drafts = 0
    while (mark := _MARK.search(text, at)) is not None:
        if mark["close"]:
            objects.clear()  # text before the tag is reasoning whose opening tag is not part of the reply
            at = mark.end()
        elif mark["open"]:
            closing = _CLOSING.search(text, mark.end())
            if closing is None:
                return [*objects, *_after_unclosed(text[mark.end() :])]
            at = closing.end()
        else:
            value, at = _object_at(text, mark.start())
            if value is None:
                # If a closing tag follows, it is a draft in the reasoning: "I must write {"result": true/false}".
                closing = _CLOSING.search(text, mark.end())
                if closing is None:
                    raise NoSingleObject
                objects.clear()
                at, drafts = closing.end(), drafts + 1
            else:
                objects.append(value)
        if drafts + len(objects) > MAX_OBJECTS:
            raise NoSingleObject
    return objects


def _after_unclosed(text: str) -> list[dict[str, Any]]:
    """Return the objects after an unclosed opening tag, if the last one starts a line and ends the text."""
    objects: list[dict[str, Any]] = []
    at = start = drafts = 0
    while (mark := _BEGINNING.search(text, at)) is not None:
        value, at = _object_at(text, mark.start())
        if value is None:
            at, drafts = mark.end(), drafts + 1
        else:
            objects.append(value)
            start = mark.start()
        if drafts + len(objects) > MAX_OBJECTS:
            raise NoSingleObject
    if drafts > 0 and objects:
        # An invalid draft may have hidden the start of a larger object.
        objects = objects if _BEGINNING.match(text, start) else []
    ends = objects and _TO_THE_END.match(text, at) and _LINE_START.search(text[max(0, start - 200) : start])
    return objects if ends else []


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """Return the object that starts at ``start`` and the position after it. The object is None if it is invalid."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except NoSingleObject:
        raise
    except (ValueError, RecursionError):
        return _python_object_at(text, start)
    return value, end


def _python_object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """Like ``_object_at``, for an object with Python literals and quotes, or with trailing commas."""
    pieces: list[str] = []
    depth, at = 0, start
    for token in _PYTHON.finditer(text, start, start + MAX_PYTHON_CHARS):
        pieces.append(text[at : token.start()])
        at = token.end()
        try:
            pieces.append(_as_json(token))
        except (ValueError, SyntaxError):
            return None, start
        depth += bool(token["open"]) - bool(token["close"])
        if depth == 0 or depth > MAX_BRACKETS:
            break
    if depth != 0:
        return None, start
    try:
        value = _DECODER.decode("".join(pieces))
    except NoSingleObject:
        raise
    except (ValueError, RecursionError):
        return None, start
    return value, at


def _as_json(token: re.Match[str]) -> str:
    if token["single"]:
        return json.dumps(ast.literal_eval(token["single"].replace("\n", "\\n")))
    if token["word"]:
        return _WORDS[token["word"]]
    return "" if token["comma"] else token[0]


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
        # The class comes from a task file, and its validators may raise any exception for an unexpected value.
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
