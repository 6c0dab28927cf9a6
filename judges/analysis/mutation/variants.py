"""Alternative values for an extracted field: wrong ones, and similar ones that a partial comparison accepts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

_RUN = re.compile(r"\d+")
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
_WORD = re.compile(r"\w+")
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
    found: list[Any] = []
    if _RUN.search(text):
        found += [_other_digits(text, known_text, low=True), _other_digits(text, known_text, low=False)]
    letters = re.search(r"[^\W\d_]{2}", text)
    if letters or not found:
        names = [name for name in _WRONG_NAMES if not _any_word(name, known_text)] or list(_WRONG_NAMES)
        found += [names[0]] if found else [names[0], names[-1]]
    return [*found, *(choice for choice in choices if choice != value)]


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
    for candidate in _digit_candidates(text, low=low):
        if candidate != text and not any(
            len(run) > 1 and re.search(rf"(?<!\d){run}(?!\d)", known_text) for run in _RUN.findall(candidate)
        ):
            return candidate
    return next(iter(_digit_candidates(text, low=low)))


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


def _any_word(name: str, known_text: str) -> bool:
    folded = known_text.casefold()
    return any(word in folded for word in name.casefold().split())
