"""Encodings of a text that people, models and filters read differently."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable


def plain(text: str) -> str:
    return text


def zero_width(text: str) -> str:
    """Insert a zero-width character into every word."""
    return " ".join(f"{word[:2]}\u200b{word[2:]}" if len(word) > 3 else word for word in text.split(" "))


def tags(text: str) -> str:
    """Encode ASCII text in invisible tag characters."""
    return "".join(chr(0xE0000 + ord(char)) for char in text if char.isascii())


def reversed_by_mark(text: str) -> str:
    """Reverse the text behind a mark that displays it forwards."""
    return f"\u202e{text[::-1]}\u202c"


def variation_selectors(text: str) -> str:
    """Encode each byte as a variation selector after one letter."""
    return "a" + "".join(chr(0xFE00 + byte) if byte < 16 else chr(0xE0100 + byte - 16) for byte in text.encode())


def homoglyphs(text: str) -> str:
    """Replace letters by similar letters of other alphabets."""
    return text.translate(str.maketrans("aceopxyi", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456"))


def soft_hyphens(text: str) -> str:
    return " ".join("\u00ad".join(word) for word in text.split(" "))


def combining_flood(text: str) -> str:
    """Add thirty combining marks to every third letter."""
    return "".join(char + "\u0301\u0323\u0308" * 10 if char.isalpha() and place % 3 == 0 else char
                   for place, char in enumerate(text))  # fmt: skip


def encoded(text: str) -> str:
    """Encode the text in Base64 and, on a second line, in ROT13."""
    return f"{base64.b64encode(text.encode()).decode()}\n{codecs.encode(text, 'rot13')}"


DISGUISES: dict[str, Callable[[str], str]] = {
    "plain": plain,
    "zero_width": zero_width,
    "tags": tags,
    "reversed": reversed_by_mark,
    "variation_selectors": variation_selectors,
    "homoglyphs": homoglyphs,
    "soft_hyphens": soft_hyphens,
    "combining_flood": combining_flood,
    "encoded": encoded,
}
