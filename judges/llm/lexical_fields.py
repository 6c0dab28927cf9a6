"""How the lexical judge extracts: labels, headings, lists, tables and links of a text are read into a schema's fields.

Every value is a stretch of the text, at most without its emphasis marks. What is not found is left to the schema's
default; a required number that is not there is a fault, never a guess.
"""

from __future__ import annotations

import re
import types
from bisect import bisect_left
from collections.abc import Sequence
from datetime import date, datetime
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from answers.citations import citations
from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.lexical_outline import ITEM, LINK, MORE, TEXT, Labelled, Node, clean, labelled, lead, outline
from judges.llm.lexical_words import MONTHS, STOP, key, keys, tokens

_LINKISH = keys("url link source citation reference href website")
_TITLISH = keys("name title item person product label")
_NOTE = re.compile(r"^[ \t>*-]*\[\^?(\w{1,20})\]:?[ \t][^\n]*", re.MULTILINE)
_NOTE_USE = re.compile(r"\[\^?(\w{1,20})\](?![(:])")
_MONTH_NAME = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*", re.IGNORECASE)
_SHAPES = {
    "date": r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2} [A-Z][a-z]+ \d{4}\b|\b[A-Z][a-z]+ \d{1,2}, \d{4}\b",
    "year": r"\b[12]\d{3}\b",
    "time": r"\b\d{1,2}:\d\d\b",
}
Links = Sequence[tuple[int, str]]
"""The place and target of each link of a text, in order."""
Outer = tuple[type[BaseModel], ...]
"""The classes that are being filled around a field."""


def fill(schema: type[BaseModel], text: str, page_links: str = "") -> BaseModel:
    """An instance of ``schema`` with what ``text`` says.

    ``page_links`` has a line ``words<TAB>target`` for each link of a page; an answer's links are read from its text.

    Raises:
        LLMOutputUnusable: the text lacks a value that the schema requires.
    """
    return build(schema, outline(text), links_of(text, page_links))[0]


def links_of(text: str, page_links: str) -> list[tuple[int, str]]:
    """Every link with the place where it is cited; a note such as ``[2]`` cites what its line at the end has."""
    links = sorted((one.start, one.url) for one in citations(text))
    notes: dict[str, str] = {}
    for line in _NOTE.finditer(text):
        if urls := between(links, *line.span()):
            notes[line[1]] = urls[0]
    links += [(use.start(), notes[use[1]]) for use in _NOTE_USE.finditer(text) if use[1] in notes]
    for words, _, target in (line.rpartition("\t") for line in page_links.splitlines()):
        if words and target and words in text:
            links.append((text.find(words), target))
    return sorted(links)


def between(links: Links, start: int, end: int) -> list[str]:
    """The targets of the links that are cited in ``text[start:end]``, each once."""
    found = links[bisect_left(links, (start, "")) : bisect_left(links, (end, ""))]
    return list(dict.fromkeys(url for _, url in found))


def core(annotation: Any) -> tuple[Any, Any]:
    """The type behind Optional, and the item type where it is a list."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next((a for a in get_args(annotation) if a is not type(None)), str)
    if get_origin(annotation) in (list, tuple, set, frozenset):
        return list, core((get_args(annotation) or (str,))[0])[0]
    return annotation, None


@lru_cache(maxsize=4096)
def stems(label: str) -> frozenset[str]:
    spaced = re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", label)
    return keys(spaced) - STOP


def affinity(name: str, info: FieldInfo, label: str) -> int:
    """How surely a label means a field: 4 the same words, 3 some of them, 2 words of its description, 0 not at all."""
    spoken = stems(label)
    wanted = [w for called in (name, info.alias, info.title) if called and (w := stems(called))]
    if not spoken:
        return 0
    if spoken in wanted:
        return 4
    return 3 if any(spoken < w or w < spoken for w in wanted) else 2 if spoken <= stems(info.description or "") else 0


def build(schema: type[BaseModel], node: Node, links: Links, outer: Outer = ()) -> tuple[BaseModel, int]:
    """An instance of ``schema`` and how many of its fields were found. Raises as ``fill``."""
    values: dict[str, Any] = {}
    outer = (*outer, schema)
    for name, info in schema.model_fields.items():
        if (value := value_of(name, info, node, links, outer)) is not None:
            values[name] = value
    named = [n for n, f in schema.model_fields.items() if core(f.annotation)[0] is str and not stems(n) & _LINKISH]
    first = min(named, key=lambda n: not stems(n) & _TITLISH, default=None)
    if node.level and first and first not in values:
        kind = stems(schema.__name__)
        called = (clean(v.text) for v in labelled(node) if {k for k in stems(v.label) if not k.isdigit()} == kind)
        values |= {first: title} if (title := next(called, "") or lead(node)) else {}
    found = len(values)
    for _ in range(2):
        try:
            return schema.model_validate(values, by_name=True), found
        except ValidationError as error:
            faulty = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
            for name in [n for n, info in schema.model_fields.items() if faulty & {n, info.alias}]:
                values.pop(name, None)
                kind = core(schema.model_fields[name].annotation)[0]
                if schema.model_fields[name].is_required() and kind in (str, list):
                    values[name] = kind()
    raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"the text does not hold what {schema.__name__} requires")


def value_of(name: str, info: FieldInfo, node: Node, links: Links, outer: Outer) -> Any:
    """What the text under ``node`` says for one field, or None."""
    kind, inner = core(info.annotation)
    sort = inner or kind
    best = max(labelled(node), key=lambda one: affinity(name, info, one.label), default=None)
    if best and not affinity(name, info, best.label):
        best = None
    if isinstance(sort, type) and issubclass(sort, BaseModel):
        if inner:
            titled = best and best.node.children and affinity(name, info, best.label) == 4
            return records(inner, best.node if best and titled else node, links) or None
        if kind in outer:
            return None  # a class within itself can go on without end on the same lines
        made, found = build(kind, best.node if best else node, links, outer)
        return made if found else None
    if stems(name) & _LINKISH or "Url" in getattr(sort, "__name__", ""):
        near = between(links, best.start, best.start + len(best.text)) if best else []
        urls = near or between(links, node.start, node.end)
        return urls if inner else next(iter(urls), None)
    if inner:
        return [v for entry in several(best) if (v := convert(inner, entry)) is not None] if best else None
    return convert(kind, best.text) if best else unlabelled(name, kind, node)


def several(best: Labelled) -> list[str]:
    """The entries of a list value: the items below its label, or its text at commas."""
    items = [lead(child) for child in best.node.children if child.level >= ITEM]
    return items or re.split(r"\s*[,;]\s+(?:and\s)?|\sand\s", best.text)


def unlabelled(name: str, kind: Any, node: Node) -> Any:
    """A value without a label: what follows the field's own word in a line, or the first year, date or time."""
    wanted = stems(name)
    for line in node.walk():
        text = LINK.sub(lambda m: "\n" * len(m.group()), line.text)  # no value reaches over a link
        words = tokens(text)
        for n, word in enumerate(words):
            after = next((t for t in words[n + 1 : n + 5] if t.key not in STOP | wanted), None)
            if word.key in wanted - _TITLISH and after and (after.capital or after.digits):
                return convert(kind, re.split(r"[;()\n]|[,.]\s|\s(?:and|who|in|from|to)\s", text[after.start :])[0])
        shape = next((pattern for key, pattern in _SHAPES.items() if key in wanted), None)
        if node.level and shape and (match := re.search(shape, text)):
            return convert(kind, match.group())
    return None


def records(schema: type[BaseModel], node: Node, links: Links) -> list[BaseModel]:
    """The run of sections, rows or items under ``node`` that fills the most fields of ``schema`` per entry."""
    best: tuple[float, int, list[BaseModel]] = (0.0, 0, [])
    for parent in node.walk():
        for level, run in groupby(parent.children, key=lambda child: child.level):
            entries = [child for child in run if child.cells != child.columns]
            made = [built for entry in entries if (built := attempt(schema, entry, links))]
            most = max((found for _, found in made), default=0)
            kept = [(one, found) for one, found in made if 2 * found > most]
            mean = sum(found for _, found in kept) / max(len(kept), 1)
            if (level not in (TEXT, MORE) or len(kept) > 1) and (mean, len(kept)) > best[:2]:
                best = (mean, len(kept), [one for one, _ in kept])
    return best[2]


def attempt(schema: type[BaseModel], entry: Node, links: Links) -> tuple[BaseModel, int] | None:
    """One record, or None where the entry says nothing of it."""
    try:
        built = build(schema, entry, links)
    except LLMOutputUnusable:
        return None
    return built if built[1] else None


def convert(kind: Any, raw: str) -> Any:
    """``raw`` as the type wants it, or None where it does not hold such a value."""
    if kind in (int, float):
        figure = re.search(r"-?\d+(?:[.,]\d+)*", raw)
        return key(figure[0]) if figure else None
    if kind is bool:
        return {"yes": True, "true": True, "no": False, "false": False}.get(clean(raw).casefold())
    if (isinstance(kind, type) and issubclass(kind, Enum)) or get_origin(kind) is Literal:
        options = [one.value for one in kind] if isinstance(kind, type) else get_args(kind)
        return next((one for one in options if str(one).casefold() in raw.casefold()), None)
    if kind in (date, datetime):
        year, month, day = (re.search(form, raw) for form in (r"\b\d{4}\b", _MONTH_NAME, r"\b\d{1,2}\b"))
        if year and month and day:
            return f"{year[0]}-{MONTHS.index(key(month[0])) + 1:02}-{int(day[0]):02}"
    return clean(raw) or None
