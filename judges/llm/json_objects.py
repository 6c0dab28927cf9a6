"""Find the one JSON object in what a model wrote.

Models put thinking, prose, Markdown fences or a Python ``dict`` around or in place of the object they were asked for.
``one_object`` accepts all of these if they leave exactly one reading. Work is linear in the length of the text.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final

MAX_PYTHON_CHARS: Final = 256_000
"""Longest object that is read as Python or with trailing commas; JSON proper has no limit here."""
MAX_OBJECTS: Final = 200
"""Maximum number of equal objects and of broken drafts in one text."""
MAX_DEPTH: Final = 200
MAX_ENCODINGS: Final = 3
"""How often the object may have been encoded as a JSON string again."""

_NAMES = r"(?:think|thinking|thoughts?|reasoning|reflection|seed:think)"
_OPEN = (
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|START_THINKING)\|>"
    r"|<\|channel\|>\s*(?:analysis|commentary)\b[^<]{0,80}<\|message\|>"
)
_CLOSE = rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|(?:end_of_thought|END_THINKING)\|>|<\|channel\|>\s*final\b"
_OBJECT = r"""\{\s*(?:\}|"(?:[^"\\\n]|\\.){0,200}"\s*:|'(?:[^'\\\n]|\\.){0,200}'\s*:)"""
"""Where an object begins: a brace with a quoted key, or an empty object. Other braces are prose."""
_MARK = re.compile(f"(?P<open>{_OPEN})|(?P<close>{_CLOSE})|(?P<object>{_OBJECT})", re.IGNORECASE)
_CLOSING = re.compile(_CLOSE, re.IGNORECASE)
_BEGINNING = re.compile(_OBJECT)
_PYTHON = re.compile(
    r"""(?P<double>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*')|(?P<word>\b(?:True|False|None)\b)"""
    r"""|(?P<comma>,(?=\s*[}\]]))|(?P<open>[{\[])|(?P<close>[}\]])""",
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_LEAKED = re.compile(r"\A(?:assistant)?(?:analysis|commentary).*?assistantfinal(?=\s*[{`])", re.DOTALL)
"""Harmony channels (gpt-oss) that a server wrote as plain words: everything up to the final one."""
_TO_THE_END = re.compile(r"[\s`~]*\Z")
_LINE_START = re.compile(r"(?:\A|\n)[ \t]*\Z")
_NOT_JSON: Final = object()


class NoSingleObject(ValueError):
    """The text has no JSON object, a broken one, or several that differ."""


def one_object(text: str) -> Any:
    """Return the one JSON object in ``text``; if all of ``text`` is JSON, its value of any type.

    Text between thinking tags is skipped, and so is everything before a closing tag that was never opened. Behind an
    opening tag that is never closed, an object counts only if it is the only one, begins a line and ends the text.

    Raises:
        NoSingleObject: there is none, or more than one reading.
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


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; a key that is given twice with different values has no single reading."""
    found = dict(pairs)
    if len(found) != len(pairs) and any(found[key] != value for key, value in pairs):
        raise NoSingleObject
    return found


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
    """Whether two JSON values are equal; unlike in Python ``1`` is not ``true``."""
    return bool(left == right) and json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _objects(text: str) -> list[dict[str, Any]]:
    """The objects in ``text`` outside of thinking.

    Raises:
        NoSingleObject: one begins there and is broken.
    """
    found: list[dict[str, Any]] = []
    at = drafts = 0
    while (mark := _MARK.search(text, at)) is not None:
        if mark["close"]:
            found.clear()  # what stands before it is thinking that began outside of the reply
            at = mark.end()
        elif mark["open"]:
            closing = _CLOSING.search(text, mark.end())
            if closing is None:
                return [*found, *_after_unclosed(text[mark.end() :])]
            at = closing.end()
        else:
            value, at = _object_at(text, mark.start())
            if value is None:
                # A draft in thinking ("I must write {"result": true/false}") if a closing tag follows, else broken.
                closing = _CLOSING.search(text, mark.end())
                if closing is None:
                    raise NoSingleObject
                found.clear()
                at, drafts = closing.end(), drafts + 1
            else:
                found.append(value)
        if drafts + len(found) > MAX_OBJECTS:
            raise NoSingleObject
    return found


def _after_unclosed(text: str) -> list[dict[str, Any]]:
    """The objects behind an opening tag without a closing one, if the last ends the text and begins a line."""
    found: list[dict[str, Any]] = []
    at = start = drafts = 0
    while (mark := _BEGINNING.search(text, at)) is not None:
        value, at = _object_at(text, mark.start())
        if value is None:
            at, drafts = mark.end(), drafts + 1
        else:
            found.append(value)
            start = mark.start()
        if drafts + len(found) > MAX_OBJECTS:
            raise NoSingleObject
    if drafts > 0 and found:
        # A broken draft may have hidden the beginning of a larger object.
        found = found if _BEGINNING.match(text, start) else []
    ends = found and _TO_THE_END.match(text, at) and _LINE_START.search(text[max(0, start - 200) : start])
    return found if ends else []


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The object that begins at ``start`` and the place behind it; None if it is broken."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except NoSingleObject:
        raise
    except (ValueError, RecursionError):
        return _python_object_at(text, start)
    return value, end


def _python_object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The same for an object with Python's words and quotes, or with trailing commas."""
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
