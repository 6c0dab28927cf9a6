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

# Characters that texts use for the same signs. A hyphen joins, a dash can also mean "to", and each can be a minus.
_SIGNS: Final = {
    **dict.fromkeys("\u00ad\u2010\u2011\ufe63\uff0d", "-"),
    **dict.fromkeys("\u2043\u02d7\u2212\u2796", "\u2013"),
    **dict.fromkeys("\u2018\u2019\u201b\u02b9\u02bb\u02bc\u00b4\u2032\uff07\ua78c\u066c", "'"),
    **dict.fromkeys("\u060c\u201a\u3001\ufe50\ufe51", ","),
    "\u066b": ".",
    **dict.fromkeys("\u207a\u207b\u208a\u208b", "^"),
}
_FRACTIONS: Final = "\u00bc-\u00be\u2150-\u215e\u2189"
_SUPERSCRIPTS: Final = "\u00b9\u00b2\u00b3\u2070\u2074-\u2079"
_NUMERAL: Final = "\u24ea"
"""Stands for the other numerals, such as Roman, Chinese and circled ones, which are not read."""
_DIGITS: Final = rf"0-9{_FRACTIONS}{_SUPERSCRIPTS}\u2080-\u2089{_NUMERAL}"
_CURRENCY: Final = r"$\u00a2-\u00a5\u0e3f\u20a0-\u20c0"
# `72[1]` and `72\u00b9` have a footnote. `10\u00b2`, `5\u00b2` and `2.5\u00b2` may be powers.
_FOOTNOTE = re.compile(
    rf"(?<=[^\s\[0-9])\[[0-9]{{1,3}}\](?![0-9])|(?<=[0-9])\[[0-9]{{1,3}}\](?! ?[0-9])"
    rf"|(?<=[^\W\d_])[{_SUPERSCRIPTS}]++|(?<=[0-9])\u00b9(?! ?[0-9^{_SUPERSCRIPTS}])"
    rf"|(?<=[0-9][0-9])(?<!\b10)[{_SUPERSCRIPTS}]++(?! ?[0-9^])"
)

_WORD = re.compile(
    r"(?:(?<![\w)\]])[-\u2013\u2212](?=\d))?"
    r"\w+(?:(?<=\d)(?:[.,'\u2019^\u2044](?=\d)\w+| \d{3}(?!\d)\w*| \d+\u2044\d+))*|[^\w\s]"
)
"""Word or sign, or words that are joined as in a number."""
_NUMBER_WORD = re.compile(
    r"\W?[^\W\d]*(?:\d+[.,'\u2019^]\d+|\d{1,3}([ .,'\u2019])\d{3}(?:\1\d{3})*(?:[.,]\d+)?"
    r"|(?:\d+[ ^])?\d+\u2044\d+)[^\W\d]*"
)
_NUMBERS_APART = re.compile(r"(?<=[0-9])(?:\s{2,}|[^\S ])(?=[0-9])")
"""Space that is no thousands mark."""

_NUMBER = re.compile(
    rf"(?P<before>[^0-9{_FRACTIONS}{_NUMERAL}]*?)"
    rf"(?P<whole>[1-9][0-9]{{0,2}}(?P<mark>[ ,'])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*|[0-9]+)?(?P<part>\.[0-9]+)?"
    rf" ?(?P<fraction>[{_FRACTIONS}])?(?<=[0-9{_FRACTIONS}])"
)
_AMOUNT_SIGN: Final = rf"(?:[A-Z]{{0,3}}[{_CURRENCY}] ?|[A-Z]{{2,3}} )?"
_SEPARATE: Final = rf"(?:\A|[\s(\[{{<>=\u2264\u2265\u2248~\u00b1+:;#*|\"`\u201c-\u201f\u00ab\u00bb{_CURRENCY}])"
_PLUS_BEFORE = re.compile(rf"{_SEPARATE}\Z")
_MINUS_BEFORE = re.compile(rf"{_SEPARATE}(?:[-\u2013]|(?i:minus|negative) ){_AMOUNT_SIGN}\Z")
_PERHAPS_MINUS_BEFORE = re.compile(rf"(?:[-\u2013] ?|\b(?i:minus|negative) ){_AMOUNT_SIGN}\Z")
_UNIT: Final = r" ?[\u00b0%]?[^\W\d_]{0,20}\.?"
_NEXT: Final = rf" ?[-\u2013+]?{_AMOUNT_SIGN}[{_DIGITS}]"
_NUMBER_GOES_ON = re.compile(
    "|".join(
        (
            rf" ?[{_DIGITS}_]",  # 2019 500, 10\u00b2
            rf"[^\w\s]{{1,3}}[{_DIGITS}]",  # 12,5 kg, 9:25
            rf" ?[/\u2044\u2215\u00d7x*\u00b7\u00f7^:'\u2033\"\u00b0|\]]{_NEXT}",  # 5 x 10, 5' 10"
            rf"{_UNIT} ?(?:[-\u2013]|\b(?:to|or|till?|until|through)\b){_NEXT}",  # 5 km\u201310 km, 5 to 10
            r"[^\W\d_]{1,20}[-\u2013+]?[0-9]",  # 1e-6
            r"[BDEGHIKMOPQRSTUXYZ](?![^\W\d_])",  # 3D, 5G: names. Other letters are units: 12V
            r" ?[kKMBT](?!\w)|[ -]?(?i:bn|tn|mn|mln|mio|mrd|dozen|score|lakhs?|crores?)\b",
            r"[ -]?(?i:hundred|thousand|tausend|mill?i(?:on|ard)|bill?i(?:on|ard)|trillion|quadrillion)",
            rf"{_UNIT} and (?:an?|one|two|three|[0-9]+) ?(?:/|hal(?:f|ves)|thirds?|quarters?)",
        )
    )
)
"""What follows a number that is a part of another number, of a range, of a multiple or of a name."""
_MILLIONS = re.compile(r" ?[mM]\b")
"""After an amount of money. Elsewhere ``m`` is the metre."""

_CLOCK = re.compile(
    r"(?:(?<![\w:.,+/\u2013-])|(?<=[0-9]T))(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
    r"(?:[ ,(-]{0,2}(?P<half>[ap])\.? ?m\b\.?)?",
    re.IGNORECASE,
)
_TIME_OF_DAY: Final = r"(?:afternoon|evening|night|tonight|midnight)"
_CLOCK_BEFORE = re.compile(rf"(?:\b[ap]\.? ?m\b\.?:? ?|\b{_TIME_OF_DAY}\b[^.;0-9]{{0,20}})\Z", re.IGNORECASE)
_CLOCK_GOES_ON = re.compile(
    rf"[:.,']?[{_DIGITS}]|_|(?!h\b|hrs?\b|hours?\b|z\b)[^\W\d_]"
    rf"| ?(?:[-\u2013+/]|\b(?:to|till?|until|and|or)\b) ?(?:[{_DIGITS}]|[ap]\.?m)| [ap]\.?(?:\Z|[,;)])"
    rf"|,? (?:(?:in|at|the|this|on|o'clock) ){{0,3}}{_TIME_OF_DAY}\b",
    re.IGNORECASE,
)

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?<!\w)(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?!\w)\.?"
)
_YEAR: Final = r"(?P<year>[0-9]{4})(?!\w)"
_DATES: Final = tuple(  # by precision: days, months, years
    tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    for patterns in (
        (
            r"(?<![\w\u2013-])(?P<year>[0-9]{4})[-\u2013](?P<month>[0-9]{2})[-\u2013](?P<day>[0-9]{2})(?![0-9])",
            rf"(?<!\w)(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? {_MONTH},?(?: of)? {_YEAR}",
            rf"{_MONTH} (?:the )?(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,?(?: of)? {_YEAR}",
        ),
        # Not with a dash, which means "to": seasons such as `2011\u201312`.
        (rf"{_MONTH},?(?: of)? {_YEAR}", r"(?<![\w\u2013-])(?P<year>[0-9]{4})-(?P<month>[0-9]{2})(?![\w\u2013-])"),
        (
            rf"(?<![\w.,/#\u2013{_CURRENCY}-])(?<![0-9] )(?<![0-9] \| )(?P<year>[12][0-9]{{3}})"
            rf"(?![\w%\u00b0{_CURRENCY}]|[.,']?[0-9]|[/\u2013-]\w| (?:\| )?[{_DIGITS}])",
        ),
    )
)
_ANY_MONTH = re.compile(_MONTH, re.IGNORECASE)
_JOIN: Final = r" ?(?:[-\u2013/&+]|\b(?:to|and|or|till?|until|through|thru)\b) ?"
_DATE_BEFORE = re.compile(
    rf"(?:[{_DIGITS}](?:st|nd|rd|th)?|{_MONTH.replace('?P<name>', '?:')}){_JOIN}\Z", re.IGNORECASE
)
_DATE_GOES_ON = re.compile(
    rf"{_JOIN}(?:[{_DIGITS}]|{_MONTH.replace('?P<name>', '?:')})| ?(?:b\. ?c\b|bce?\b)", re.IGNORECASE
)
_NEAR: Final = 12
"""Characters around a year or month in which a month or day shows that the date is more precise."""


class Interval(NamedTuple):
    """Days of a date, both included. A year is the interval from 1 January to 31 December."""

    first: datetime.date
    last: datetime.date


def normalized(text: str) -> str:
    """Return a text for comparison: Unicode compatibility forms, case and spaces do not count."""
    return " ".join(_compatible(text[:MAX_CHARS]).casefold().split())


def spaced_words(text: str) -> str:
    """Return the words and signs of a whole text in the form of ``normalized``, each between two spaces."""
    return _spaced_words(text) if len(text) <= MAX_CHARS else _spaced_words_of_long(text)


def word_count(text: str) -> int:
    """Return the number of words, separated by spaces, in a whole text."""
    return len(text.split()) if len(text) <= MAX_CHARS else _word_count_of_long(text)


def _spaced_words(text: str) -> str:
    # Not `findall`, which would keep other threads waiting.
    words = (_word(found[0]) for found in _WORD.finditer(_compatible(nfc(text)).casefold()))
    return f" {' '.join(words)} "


def _word(found: str) -> str:
    """Return a number as one word without marks of thousands, so that ``5 km`` is not in ``3.5 km``; else its words."""
    if len(found) == 1 or found.isalnum():
        return found
    if _NUMBER_WORD.fullmatch(found) or found[1:].isalnum():
        return re.sub("['\u2019]", "", found).replace(" ", "^" if "\u2044" in found else "")
    return " ".join(re.findall(r"\w+|[^\w\s]", found))


def _compatible(text: str) -> str:
    """Return a text in NFKC, in which superscripts and fractions do not become digits of the number beside them."""
    if text.isascii():
        return text
    raised = "".join(char for char in set(text) if char.isnumeric() and not char.isdecimal())
    if raised:
        text = re.sub(rf"(?<=\d)(?=[{raised}])|(?<=[{raised}])(?=\d)", "^", text)
    return unicodedata.normalize("NFKC", text)


# The checks of a task ask for the same long text, the answer, again and again.
_spaced_words_of_long = lru_cache(maxsize=4)(_spaced_words)
_word_count_of_long = lru_cache(maxsize=4)(lambda text: len(text.split()))


def is_missing(value: Any) -> bool:
    """Return whether the answer gives no value: None, blank text, an empty list, or a record of such values."""
    if isinstance(value, dict):
        return all(map(is_missing, value.values()))
    if isinstance(value, str):
        return not any(char.isprintable() and char != " " for char in value)
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
    """Return the first number of an English text such as ``1,250.5 kg`` or ``2\u00bd hours``.

    None if there is none, or if it is not certain to be the value: a decimal comma, a range, a power, a part of a name
    such as ``COVID-19``, a multiple such as ``2 million``.
    """
    text = _plain(text)
    found = _NUMBER.match(text)
    if found is None or _NUMBER_GOES_ON.match(text, found.end()) or (found["part"] and found["fraction"]):
        return None
    before = found["before"]
    is_negative = _MINUS_BEFORE.search(before) is not None
    if not is_negative and (_PERHAPS_MINUS_BEFORE.search(before) or not _PLUS_BEFORE.search(before)):
        return None
    if re.search(rf"[{_CURRENCY}] ?\Z", before) and _MILLIONS.match(text, found.end()):
        return None
    whole = re.sub("[ ,']", "", found["whole"] or "0")
    number = float(whole + (found["part"] or "")) + (unicodedata.numeric(found["fraction"]) if found["fraction"] else 0)
    return (-number if is_negative else number) if math.isfinite(number) else None


def clock_minutes(text: str) -> float | None:
    """Return the minutes after midnight of the first clock time, such as ``9:25`` or ``9:25 pm``.

    None if there is none, or if it is not certain: ranges, times outside of the clock, ``9:25 in the evening``.
    """
    text = _plain(text)
    found, first = _CLOCK.search(text), re.search("[0-9]:[0-9]", text)
    if found is None or first is None or found.start() > first.start():
        return None
    if _CLOCK_GOES_ON.match(text, found.end()) or _CLOCK_BEFORE.search(text[: found.start()]):
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] in "pP" else 0)
    return hour * 60 + minute + second / 60 if hour < 24 and minute < 60 and second < 60 else None


def date_interval(text: Any) -> Interval | None:
    """Return the days of the date in an English text: ``2025-08-16``, ``16 August 2025``, ``Aug 2025``, ``2025``.

    A form with a day takes precedence over one without. None if there is no date, if it is a range, or if dates of the
    same precision differ.
    """
    if not isinstance(text, str):
        return None
    text = _plain(text)
    for level, patterns in enumerate(_DATES):
        found = [match for pattern in patterns for match in pattern.finditer(text)]
        if found:
            dates = {_interval(match) if _is_whole_date(text, match, level) else None for match in found}
            return dates.pop() if len(dates) == 1 else None
    return None


def is_date(text: str) -> bool:
    """Return whether a text is a date in one of the forms of ``date_interval``, without other words."""
    plain = _plain(text)
    is_form = any(pattern.fullmatch(plain) for patterns in _DATES for pattern in patterns)
    return is_form and date_interval(text) is not None


def _is_whole_date(text: str, match: re.Match[str], level: int) -> bool:
    """Return whether a date is not a part of a range or of a more precise date in another form."""
    before, after = text[max(0, match.start() - 2 * _NEAR) : match.start()], text[match.end() : match.end() + _NEAR]
    if _DATE_BEFORE.search(before) or _DATE_GOES_ON.match(after):
        return False
    if level == 1:
        return match.group(0)[0].isdigit() or re.search(rf"[{_DIGITS}].{{0,{_NEAR}}}\Z", before) is None
    return level == 0 or not (_ANY_MONTH.search(before) or _ANY_MONTH.search(after))


def _interval(match: re.Match[str]) -> Interval | None:
    parts = match.groupdict()
    year, name = int(parts["year"]), (parts.get("name") or "").lower()
    month = _MONTHS.index(name[:3]) + 1 if name else int(parts.get("month") or 0)
    day = int(parts.get("day") or 0)
    try:
        if "name" not in parts and "month" not in parts:
            return Interval(datetime.date(year, 1, 1), datetime.date(year, 12, 31))
        last = calendar.monthrange(year, month)[1] if 1 <= month <= 12 and year else 0
        return Interval(datetime.date(year, month, day or 1), datetime.date(year, month, day or last))
    except ValueError:
        return None


def _plain(text: str) -> str:
    """Return a text without footnote marks, with ASCII digits and with one form of each space, dash and apostrophe."""
    text = text[:MAX_CHARS]
    if not text.isascii():
        text = "".join(map(_plain_character, text))
    text = _NUMBERS_APART.sub(" | ", text)
    return _FOOTNOTE.sub("", " ".join(text.split()))


@lru_cache(maxsize=4096)
def _plain_character(char: str) -> str:
    category = unicodedata.category(char)
    if char in _SIGNS:
        return _SIGNS[char]
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category in ("Zs", "Cf"):
        return " "
    if category == "Pd":
        return "\u2013" if char != "-" else char
    if char.isnumeric():
        return char if re.match(rf"[{_DIGITS}]", char) else _NUMERAL
    compatible = unicodedata.normalize("NFKC", char)
    return char if any(map(str.isnumeric, compatible)) else compatible


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
