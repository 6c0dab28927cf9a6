"""Conversion of extracted texts: numbers, dates, clock times, regular expressions. Pure, and linear in the text."""

from __future__ import annotations

import calendar
import datetime
import math
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pydantic_core import SchemaError, SchemaValidator, core_schema

from cache.unicode_forms import nfc

MAX_CHARS: Final = 10_000
"""Characters of a text that comparisons and conversions read; a longer text matches no pattern."""
MAX_PATTERN_CHARS: Final = 200

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = r"(?P<name>jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?!\d)",
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s{{1,3}}{_MONTH},?\s{{1,3}}(?P<year>\d{{4}})(?!\d)",
        rf"(?<![a-z]){_MONTH}\s{{1,3}}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s{{1,3}}(?P<year>\d{{4}})(?!\d)",
        rf"(?<![a-z]){_MONTH},?\s{{1,3}}(?P<year>\d{{4}})(?!\d)",
        r"(?<!\d)(?P<year>\d{4})-(?P<month>\d\d)(?![\d-])",
        r"(?<![\d.,-])(?P<year>\d{4})(?![\d.,-]*\d)",
    )
)
_WORD = re.compile(r"\w+|[^\w\s]")
_DIGITS = re.compile(r"-?\d(?:[\d.,]*\d)?", re.ASCII)
_PLAIN_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
_CLOCK = re.compile(r"(?<![\d:])(\d{1,2}):([0-5]\d)(?!\d)(?:\s{0,2}([ap])\.?m\b)?", re.IGNORECASE | re.ASCII)


class Interval(NamedTuple):
    """Days of a date, both included. A year is the interval from 1 January to 31 December."""

    first: datetime.date
    last: datetime.date


def normalized(text: str) -> str:
    """Return a text for comparison: Unicode compatibility forms, case and spaces do not count."""
    return " ".join(unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold().split())


def spaced_words(text: str) -> str:
    """Return the words and signs of a whole text in the form of ``normalized``, each between two spaces."""
    return _spaced_words(text) if len(text) <= MAX_CHARS else _spaced_words_of_long(text)


def word_count(text: str) -> int:
    """Return the number of words, separated by spaces, in a whole text."""
    return len(text.split()) if len(text) <= MAX_CHARS else _word_count_of_long(text)


def _spaced_words(text: str) -> str:
    # Not `findall`, which would keep other threads waiting.
    words = (word[0] for word in _WORD.finditer(unicodedata.normalize("NFKC", nfc(text)).casefold()))
    return f" {' '.join(words)} "


# The checks of a task ask for the same long text, the answer, again and again.
_spaced_words_of_long = lru_cache(maxsize=4)(_spaced_words)
_word_count_of_long = lru_cache(maxsize=4)(lambda text: len(text.split()))


def is_missing(value: Any) -> bool:
    """Return whether the answer gives no value: None, blank text, an empty list, or a record of such values."""
    if isinstance(value, dict):
        return all(map(is_missing, value.values()))
    if isinstance(value, str):
        return not value.strip()
    return value is None or value == []


def as_text(value: Any) -> str:
    """Return a value as a claim shows it. Whole numbers have no decimal places; lists are joined with commas."""
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return "" if value is None else str(value)


def first_number(text: str) -> float | None:
    """Return the first number of a text such as ``1,250.5 kg``; None if there is none or its form is ambiguous."""
    found = _DIGITS.search(unicodedata.normalize("NFKC", text[:MAX_CHARS]).replace("\u2212", "-"))
    if found is None or not _PLAIN_NUMBER.fullmatch(found[0]):
        return None
    number = float(found[0].replace(",", ""))
    return number if math.isfinite(number) else None


def clock_minutes(text: str) -> float | None:
    """Return the minutes after midnight of the first clock time, such as ``9:25`` or ``9:25 pm``."""
    found = _CLOCK.search(text[:MAX_CHARS])
    if found is None:
        return None
    hour, half = int(found[1]), (found[3] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return float(hour * 60 + int(found[2])) if hour < 24 else None


def date_interval(text: Any) -> Interval | None:
    """Return the days of the first date in an English text: ``2025-08-16``, ``16 August 2025``, ``Aug 2025``, ``2025``.

    A form with a day takes precedence over one without.
    """
    if not isinstance(text, str):
        return None
    for pattern in _DATES:
        if found := pattern.search(text[:MAX_CHARS]):
            return _interval(found.groupdict())
    return None


def _interval(parts: dict[str, str | None]) -> Interval | None:
    year, name = int(parts["year"] or 0), (parts.get("name") or "").lower()
    month = next((n for n, each in enumerate(_MONTHS, start=1) if name and each.startswith(name[:3])), None)
    month = month or (int(parts["month"] or 0) if "month" in parts else None)
    day = int(parts.get("day") or 0)
    try:
        if month is None:
            return Interval(datetime.date(year, 1, 1), datetime.date(year, 12, 31))
        last = calendar.monthrange(year, month)[1] if 1 <= month <= 12 and year else 0
        return Interval(datetime.date(year, month, day or 1), datetime.date(year, month, day or last))
    except ValueError:
        return None


def regex_matcher(pattern: str) -> Callable[[Any], bool]:
    """Return a function that tells whether a whole text, without spaces around it, matches a pattern.

    The engine is that of pydantic: it has no look-around and no back-references, and takes linear time.

    Raises:
        ValueError: the pattern is invalid or too long.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"the pattern is longer than {MAX_PATTERN_CHARS} characters; use several checks")
    _validator(pattern)  # alone: `a)(b` is valid only inside the group
    validator = _validator(rf"\A(?:{pattern})\z")
    return lambda text: isinstance(text, str) and len(text) <= MAX_CHARS and validator.isinstance_python(text.strip())


def _validator(pattern: str) -> SchemaValidator:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise ValueError(f"the pattern is invalid: {reason.removeprefix('error: ')}") from None
