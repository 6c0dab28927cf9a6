"""Extraction of the one JSON object from a model's reply.

Models wrap the requested object in reasoning, prose or Markdown fences, or write a Python ``dict`` instead.
``parse_single_object`` accepts all of these if the result is unambiguous. Its running time is linear in the length of
the text.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final

MAX_PYTHON_CHARS: Final = 256_000
"""Maximum length of an object with Python syntax or trailing commas. Valid JSON has no limit here."""
MAX_OBJECTS: Final = 200
"""Maximum number of equal objects plus invalid drafts in one text."""
MAX_DEPTH: Final = 200
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
        if depth == 0 or depth > MAX_DEPTH:
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
