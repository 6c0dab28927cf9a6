"""Edits of extracted values and of the answer: every field, every citation and every list item. Pure.

Fields of extracted values have a path, a value and a declaring class.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel

from answers.citations import Citation, CitationKind, citations, unique_urls
from judges.analysis.task_tests.judge_file import Extracted

Path: TypeAlias = tuple[str | int, ...]
REMOVED = object()
"""New value that removes a list entry or empties a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Extracted value: a string, number or boolean, or an entry of a list of these.

    ``owner`` is the path of the object that contains it, ``declared`` the class and the name of the field.
    """

    extraction: str
    path: Path
    owner: Path
    value: Any
    declared: tuple[str, str]

    @property
    def urls(self) -> tuple[str, ...]:
        """Return the URLs in the value. A field with a URL is a citation."""
        return tuple(unique_urls(self.value)) if isinstance(self.value, str) else ()

    @property
    def is_empty(self) -> bool:
        return self.value is None or self.value == ""

    @property
    def name(self) -> str:
        return format_path(self.path)

    @property
    def shape(self) -> Path:
        """Return the path with ``*`` for every index, which is equal for the same field of all list items."""
        return shape_of(self.path)


def shape_of(path: Path) -> Path:
    return tuple("*" if isinstance(part, int) else part for part in path)


def format_path(path: Path) -> str:
    """Format a path as ``directors[0].name``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def value_at(value: Any, path: Path) -> Any:
    """Return the value at a path."""
    for part in path:
        value = value[part]
    return value


def with_value(value: Any, path: Path, by: Any) -> Any:
    """Return a copy with another value at a path. ``REMOVED`` removes a list entry and empties a field."""
    if not path:
        return empty_value(value) if by is REMOVED else by
    edited = copy.deepcopy(value)
    holder = value_at(edited, path[:-1])
    last = path[-1]
    if by is not REMOVED:
        holder[last] = by
    elif isinstance(last, int):
        del holder[last]
    else:
        holder[last] = empty_value(holder[last])
    return edited


def empty_value(value: Any) -> Any:
    """Return the empty value of the same type: empty lists and strings, None for numbers and booleans."""
    if isinstance(value, dict):
        return {name: empty_value(each) for name, each in value.items()}
    if isinstance(value, list):
        return []
    return "" if isinstance(value, str) else None


def validate_value(schema: type[BaseModel], value: Any) -> Any:
    """Return the value validated by the class, or None if it is invalid. "" is also tried as None, and vice versa."""
    for candidate in (value, _swapped(value, "", None), _swapped(value, None, "")):
        try:
            return schema.model_validate(candidate, by_name=True, by_alias=True).model_dump(mode="json")
        except ValueError:
            continue
    return None


def _swapped(value: Any, old: Any, new: Any) -> Any:
    if isinstance(value, dict):
        return {name: _swapped(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [_swapped(each, old, new) for each in value]
    return new if value is old or (isinstance(value, str) and value == old) else value


def _walk(
    value: Any, path: Path, owner: Path, schema: type[BaseModel] | None, declared: tuple[str, str], key: str
) -> Iterator[Field]:
    if isinstance(value, dict):
        for name, each in value.items():
            field = None if schema is None else schema.model_fields.get(name)
            inner = None if field is None else _model_in(field.annotation)
            declared_at = (schema.__name__, name) if schema is not None and field is not None else declared
            yield from _walk(each, (*path, name), path, inner, declared_at, key)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _walk(each, (*path, number), owner, schema, declared, key)
    else:
        yield Field(extraction=key, path=path, owner=owner, value=value, declared=declared)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model class in a type such as ``list[Director] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for each in get_args(annotation) if (model := _model_in(each)) is not None), None)


def _containers(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        yield path
        for name, each in value.items():
            yield from _containers(each, (*path, name))
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        yield path
        for number, each in enumerate(value):
            yield from _containers(each, (*path, number))


_WORD = re.compile(r"\w+")


def new_words(by: Any, instead_of: Any) -> frozenset[str]:
    """Return the words of a value that the previous value does not contain."""
    before = {word.casefold() for word in _WORD.findall(str(instead_of))}
    return frozenset(word.casefold() for word in _WORD.findall(str(by))) - before


def has_words(text: str, words: frozenset[str]) -> bool:
    """Return whether a text contains one of the words."""
    return not words.isdisjoint(word.casefold() for word in _WORD.findall(text))


_MAX_WRONG = 3


class EditKind(StrEnum):
    """Kind of an edit."""

    WRONG = "wrong"
    REMOVED = "removed"
    LONGER = "longer"
    LONGER_AT_START = "longer_at_start"
    SHORTER = "shorter"
    OTHER_URL = "other_url"
    """Another page is cited."""
    CONSTANT = "constant"
    """The value is a constant of the task file."""
    ITEM = "item"
    """An object or a list entry is emptied, removed or duplicated."""
    NO_CITATIONS = "no_citations"
    """All citations are removed from the answer and the extracted values."""
    EMPTY = "empty"
    """All extracted values are emptied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One edit. ``values`` are the edited extractions by key, ``text`` is the edited answer.

    ``by`` is the new value and ``words`` are the words that it adds.
    """

    kind: EditKind
    title: str
    values: Mapping[str, Any]
    text: str
    field: Field | None = None
    by: Any = None
    words: frozenset[str] = frozenset()


class Edits:
    """Generator of the edits of one answer. ``known_text`` is the text of the answer and its pages."""

    def __init__(self, answer: str, extracted: Mapping[str, Extracted], known_text: str) -> None:
        self._answer = answer
        self._extracted = extracted
        self._known_text = known_text
        self.fields = tuple(
            field for one in extracted.values() for field in _walk(one.value, (), (), one.schema, ("", ""), one.key)
        )

    def all(self) -> Iterator[Edit]:
        """Yield the edits that test every leaf and field."""
        for number, each in enumerate(self.fields):
            if each.is_empty:
                continue
            yield from self._of_urls(each, number) if each.urls else self._of_value(each)
        for one in self._extracted.values():
            yield from self._of_items(one)
        yield from self._of_everything()

    def near(self, each: Field) -> Iterator[Edit]:
        """Yield edits with values that a partial comparison accepts instead of the field's value."""
        longer = longer_values(each.value)
        if longer is not None:
            yield from self._set(EditKind.LONGER, each, longer[0])
            yield from self._set(EditKind.LONGER_AT_START, each, longer[1])
        shorter = shorter_value(each.value)
        if shorter is not None:
            yield from self._set(EditKind.SHORTER, each, shorter)

    def constants(self, values: Iterable[Any]) -> Iterator[Edit]:
        """Yield edits that put constants of the task file into every field of the same type."""
        for field in self.fields:
            for value in values:
                if not field.urls and isinstance(value, type(field.value)) and value != field.value:
                    yield from self._set(EditKind.CONSTANT, field, value)

    def _of_value(self, each: Field) -> Iterator[Edit]:
        count = 0
        values = wrong_values(each.value, self._known_text, self._choices(each))
        for number, value in enumerate([*values, *fallback_values(each.value)]):
            if count and number >= len(values):
                break
            for edit in self._set(EditKind.WRONG, each, value):
                count += 1
                yield edit
            if count == _MAX_WRONG:
                break
        yield from self._set(EditKind.REMOVED, each, REMOVED)

    def _of_urls(self, each: Field, number: int) -> Iterator[Edit]:
        for other in other_urls(each.urls[0], number):
            text = str(each.value)
            for url in each.urls:
                text = text.replace(url, other)
            yield from self._set(EditKind.OTHER_URL, each, text if other in text else other)
        yield from self._set(EditKind.REMOVED, each, REMOVED)

    def _of_items(self, one: Extracted) -> Iterator[Edit]:
        for path in list(_containers(one.value, ())):
            name = format_path(path) or "all values"
            yield from self._edit(
                EditKind.ITEM,
                f"{name} emptied",
                {one.key: with_value(one.value, path, empty_value(value_at(one.value, path)))},
            )
            if path and isinstance(path[-1], int):
                yield from self._edit(EditKind.ITEM, f"{name} removed", {one.key: with_value(one.value, path, REMOVED)})
                doubled = copy.deepcopy(one.value)
                value_at(doubled, path[:-1]).append(copy.deepcopy(value_at(one.value, path)))
                yield from self._edit(EditKind.ITEM, f"{name} doubled", {one.key: doubled})

    def _of_everything(self) -> Iterator[Edit]:
        text = without_citations(self._answer)
        stripped = {one.key: _without_urls(one.value) for one in self._extracted.values()}
        yield from self._edit(EditKind.NO_CITATIONS, "all citations removed", stripped, text=text)
        empty = {one.key: empty_value(one.value) for one in self._extracted.values()}
        yield from self._edit(EditKind.EMPTY, "all extracted values emptied", empty, text="I could not find this out.")

    def _set(self, kind: EditKind, each: Field, by: Any) -> Iterator[Edit]:
        """Yield the edit that changes one field, if its class accepts the value. The answer is changed accordingly."""
        value = with_value(self._extracted[each.extraction].value, each.path, by)
        text = self._answer
        if by is REMOVED:
            title = f"{each.name} removed"
        else:
            title = f"{each.name}: {each.value!r} replaced by {by!r}"
            old, new = str(each.value), str(by)
            if not each.urls:
                text = replace_value(text, old, new)
            if new not in text:  # the extractor drops values that the answer does not contain
                text += f"\n\n{new}\n"
        words = frozenset() if by is REMOVED else new_words(by, each.value)
        yield from self._edit(kind, title, {each.extraction: value}, text=text, field=each, by=by, words=words)

    def _edit(
        self,
        kind: EditKind,
        title: str,
        values: Mapping[str, Any],
        *,
        text: str | None = None,
        field: Field | None = None,
        by: Any = None,
        words: frozenset[str] = frozenset(),
    ) -> Iterator[Edit]:
        fit = {key: validate_value(self._extracted[key].schema, value) for key, value in values.items()}
        if any(value is None for value in fit.values()) or all(
            value == self._extracted[key].value for key, value in fit.items()
        ):
            if not (kind is EditKind.NO_CITATIONS and text != self._answer):
                return
            fit = {key: value for key, value in fit.items() if value is not None}
        yield Edit(
            kind=kind,
            title=title,
            values=fit,
            text=self._answer if text is None else text,
            field=field,
            by=None if by is REMOVED else by,
            words=words,
        )

    def _choices(self, each: Field) -> list[Any]:
        """Return the values that enumerations of the schema allow."""
        return list(_enumerated(self._extracted[each.extraction].schema.model_json_schema()))


def _enumerated(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        yield from schema.get("enum") or ()
        for each in schema.values():
            yield from _enumerated(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _enumerated(each)


def _without_urls(value: Any) -> Any:
    """Return the values without URLs: list entries are removed, fields become empty."""
    if isinstance(value, dict):
        return {name: _without_urls(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_urls(each) for each in value if not (isinstance(each, str) and unique_urls(each))]
    return "" if isinstance(value, str) and unique_urls(value) else value


_RUN = re.compile(r"\d+")
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
_WRONG_NAMES = (
    "Orsolya Bexmoor", "Thaddeus Wrenfeld", "Quillon Abersoe", "Ysolde Marchbank",
    "Zephyrine Tolland", "Ignatius Farrowe", "Wilhelmina Vosk", "Barnaby Quorndon",
)  # fmt: skip
_OTHER_HOST = "https://elsewhere.invalid"


def wrong_values(value: Any, known_text: str, choices: Iterable[Any] = ()) -> list[Any]:
    """Return wrong values in the order in which to try them: a low one, a high one, and for mixed texts a name.

    New numbers and names do not occur in ``known_text``, the text of the answer and the pages. ``choices`` are the
    values of enumerations in the schema, for fields that allow no others.
    """
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        kind = type(value)
        return [kind(-abs(value) * 7 - 13), kind(abs(value) * 7 + 13)]
    text = str(value)
    values: list[Any] = []
    if _RUN.search(text):
        values += [_other_digits(text, known_text, low=True), _other_digits(text, known_text, low=False)]
    letters = re.search(r"[^\W\d_]{2}", text)
    if letters or not values:
        folded = known_text.casefold()
        unknown = (name for name in _WRONG_NAMES if not any(word in folded for word in name.casefold().split()))
        names = list(unknown) or list(_WRONG_NAMES)
        values += [names[0]] if values else [names[0], names[-1]]
    return [*values, *(choice for choice in choices if choice != value)]


def fallback_values(value: Any) -> list[Any]:
    """Return wrong values close to ``value``, for fields with a limited range."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value - 1, value + 1]
    if isinstance(value, str) and value.isdigit():
        return [str(int(value) - 1), str(int(value) + 1)]
    return []


def longer_values(value: Any) -> tuple[str, str] | None:
    """Return the value extended at its end and at its start; only a partial comparison accepts these."""
    if not isinstance(value, str) or not value.strip():
        return None
    text = value.strip()
    if not _RUN.search(text):
        return f"{text}qua", f"Qua{text}"
    if text[-1].isdigit():
        return f"{text}{_digit_after(text)}", re.sub(r"\d+", lambda run: f"9{run[0]}", text, count=1)
    first = _NUMBER.search(text)
    if first is None:
        return None
    return (
        f"{text[: first.end()]}{_digit_after(first[0])}{text[first.end() :]}",
        f"{text[: first.start()]}9{text[first.start() :]}",
    )


def shorter_value(value: Any) -> str | None:
    """Return the first half of the value's first word or number; None if it is a single character."""
    if not isinstance(value, str):
        return None
    word = _WORD.search(value)
    return None if word is None or len(word[0]) < 2 else word[0][: len(word[0]) // 2]


def has_digits(value: Any) -> bool:
    return bool(_RUN.search(str(value)))


def other_urls(url: str, number: int) -> tuple[str, str]:
    """Return two URLs that the answer does not cite: one on the same host, one on another."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    return f"{parts.scheme}://{parts.netloc}/unrelated-{number}", f"{_OTHER_HOST}/unrelated-{number}"


def _other_digits(text: str, known_text: str, *, low: bool) -> str:
    known = _numbers_of(known_text)
    for candidate in _digit_candidates(text, low=low):
        if candidate != text and not any(len(run) > 1 and run in known for run in _RUN.findall(candidate)):
            return candidate
    return next(iter(_digit_candidates(text, low=low)))


@lru_cache(maxsize=2)
def _numbers_of(text: str) -> frozenset[str]:
    return frozenset(_RUN.findall(text))


def _digit_candidates(text: str, *, low: bool) -> Iterator[str]:
    """Yield the text with other numbers: of the same length if low, with at least two digits if high."""
    clock = bool(_CLOCK.search(text))
    for step in range(1, 60):
        if clock:
            hour, minute = ("0", f"{step:02}") if low else ("23", f"{60 - step:02}")
            yield _CLOCK.sub(f"{hour}:{minute}", text)
            continue

        def other(run: re.Match[str], step: int = step) -> str:
            digits = len(run[0])
            if low:
                return str(10 ** (digits - 1) + step)[:digits] if digits > 1 else str(step % 10)
            return str(10 ** max(digits, 2) - 2 - step)

        yield _RUN.sub(other, text)


def _digit_after(text: str) -> str:
    return "5" if text[-1] != "5" else "7"


def replace_value(text: str, value: str, by: str) -> str:
    """Return the text with every occurrence of a value replaced, except in URLs."""
    spans = [(each.start, each.end) for each in citations(text) if each.kind is not CitationKind.REFERENCE]
    whole, out, at = _whole(value), [], 0
    for start, end in sorted(spans):
        out += [whole.sub(lambda _: by, text[at:start]), text[start:end]]
        at = end
    return "".join([*out, whole.sub(lambda _: by, text[at:])])


def without_citations(text: str) -> str:
    """Return the text without its citations, but with the link texts."""
    after: list[str] = []  # from the end; joined at the end, because copying the text each time takes quadratic time
    last = len(text)
    for each in sorted(citations(text), key=lambda each: -each.start):
        start, end, words = _markup(text, each)
        if end <= last:  # otherwise the markup of the previous one encloses it
            after += [text[end:last], words]
            last = start
    stripped = text[:last] + "".join(reversed(after))
    return stripped if len(stripped) == len(text) else without_citations(stripped)


def _markup(text: str, cited: Citation) -> tuple[int, int, str]:
    """Return start and end of a citation with its markup, and the text that replaces it."""
    start, end = cited.start, cited.end
    if cited.kind is CitationKind.REFERENCE:
        return start, end, cited.label
    if cited.kind in (CitationKind.LINK, CitationKind.IMAGE):
        close, opening = text.find(")", end), text.rfind("](", 0, start)
        opened = opening - len(cited.label) - 1
        if close >= 0 and opening >= 0 and text[opened : opened + 1] == "[":
            image = cited.kind is CitationKind.IMAGE
            return opened - image, close + 1, "" if image else cited.label
    if cited.kind is CitationKind.DEFINITION:
        line = text.rfind("\n", 0, start) + 1
        after = text.find("\n", end)
        return line, len(text) if after < 0 else after + 1, ""
    if text[start - 1 : start] == "<" and text[end : end + 1] == ">":
        return start - 1, end + 1, ""
    return start, end, ""


def _whole(value: str) -> re.Pattern[str]:
    edge = r"(?<![\w.,:]){}(?![\w]|[.,:]\d)" if value[:1].isdigit() else r"(?<!\w){}(?!\w)"
    return re.compile(edge.format(re.escape(value)))
