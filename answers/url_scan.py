"""Where a URL in an answer ends, and what URL is meant by what was written.

The scanners take the position where a URL begins. None reads further than a fixed length beyond what
it returns, so the work over a whole text stays proportional to its length, however hostile it is.
"""

from __future__ import annotations

import re

MAX_URL_CHARS = 4096
"""Longer than that is not a citation; no browser or server is bound to take it."""

URL_START = re.compile(r"https?://|(?<![\w.@/:-])www\.(?=[^\s./]+\.[^\s./])", re.IGNORECASE)
"""Where a URL begins: with its scheme, wherever that stands, or as ``www.`` at the start of a word."""

# Besides white space and what no URL may contain: typographic quotes and the full stops, commas and
# brackets of East Asian text, which often stand behind a URL without a space.
_NEVER = (
    r"\s\x00-\x1f\x7f<>\"`|{}\\\u00ab\u00bb\u2018-\u201f\u200b\u2060\ufeff"
    r"\u3001-\u3003\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
)
_NO_NEXT_URL = r"[,;](?!['\"]?(?:https?://|www\.))"
# Atomic groups, since Python before 3.11.5 gets possessively repeated ones wrong (gh-106052).
_PLAIN = re.compile(rf"(?>(?:[^{_NEVER}()\[\],;]++|{_NO_NEXT_URL})+)", re.IGNORECASE)
_PLAIN_IN_QUOTES = re.compile(rf"(?>(?:[^{_NEVER}()\[\],;']++|{_NO_NEXT_URL})+)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]")
_ENTITY_AT_END = re.compile(r"&[A-Za-z][A-Za-z0-9]{1,30}\Z")
_LOOSE_AT_END = ".,;:!?*_~'\\([\u2026"
_CLOSERS = {")": "(", "]": "["}

_PLAIN_IN_LINK = re.compile(r"[^\s\x00-\x1f\x7f<>\\()\]]++")
_END_OF_LINK = re.compile(r"[ \t]{0,99}\n?[ \t]{0,99}[)\"'(]")
_NO_MARKUP = re.compile(r"[^<>\n]+")

_HOST = re.compile(
    r"https?://(?:[^/?#@\\]*@)?"  # user and password
    r"(?P<host>\[[0-9a-f:.]+\]|(?![.-])[^\x00-\x2c/:-@\[-^`{-\x7f]+)"
    r"(?::\d{0,5})?(?=[/?#]|\Z)",
    re.IGNORECASE,
)


def bare_end(text: str, start: int) -> tuple[int, int]:
    """The end of a URL that stands in running text, and where to read on.

    It stops before a closing bracket that was not opened within the URL, and before a comma or semicolon
    with another URL behind it. What is loose at its end (full stop, emphasis, quote) is left out.
    """
    plain = _PLAIN_IN_QUOTES if text[start - 1 : start] == "'" else _PLAIN
    open_brackets: list[str] = []
    at = start
    while at < len(text) and at - start <= MAX_URL_CHARS:
        run = plain.match(text, at) or _ESCAPED.match(text, at)
        if run is not None:
            at = run.end()
            continue
        here = text[at]
        if here in "([":
            open_brackets.append(here)
        elif here not in _CLOSERS or not open_brackets or open_brackets.pop() != _CLOSERS[here]:
            break
        at += 1
    return _without_loose_end(text, start, at), at


def _without_loose_end(text: str, start: int, end: int) -> int:
    if end - start > MAX_URL_CHARS:
        return end
    url = text[start:end]
    while True:
        kept = url.rstrip(_LOOSE_AT_END)
        if url[len(kept) : len(kept) + 1] == ";":
            kept = _ENTITY_AT_END.sub("", kept)
        kept = kept.removesuffix("'s")
        if kept == url:
            return start + len(url)
        url = kept


def link_end(text: str, start: int) -> int | None:
    """The end of a URL inside ``[label](...)``, as written; None where that link is not well formed.

    Brackets have to balance, and a title may follow.
    """
    depth = 0
    at = start
    while at < len(text) and at - start <= MAX_URL_CHARS:
        run = _PLAIN_IN_LINK.match(text, at) or _ESCAPED.match(text, at)
        if run is not None:
            at = run.end()
            continue
        here = text[at]
        if here == "(":
            depth += 1
        elif here == ")" and depth:
            depth -= 1
        elif here != "]" or text[at + 1 : at + 2] == "(":  # the next link begins: this one was never closed
            break
        at += 1
    return at if depth == 0 and _END_OF_LINK.match(text, at) else None


def enclosed_end(text: str, start: int, closer: str) -> int | None:
    """The end of a URL within ``<...>`` or a quoted attribute, on one line; None where it is not closed."""
    end = text.find(closer, start, start + MAX_URL_CHARS + 1)
    return end if end > start and _NO_MARKUP.fullmatch(text, start, end) else None


def clean(written: str) -> str | None:
    r"""The URL meant by what was written, or None where it is none.

    Markdown escapes and ``&amp;`` are undone, ``www.`` gets its scheme. Nothing else changes: case,
    percent-encoding and names in other scripts stay as they are.

    >>> clean(r"www.example.org/a\_b?x=1&amp;y=2")
    'https://www.example.org/a_b?x=1&y=2'
    >>> clean("https://...") is None
    True
    """
    if len(written) > MAX_URL_CHARS:
        return None
    url = _ESCAPED.sub(lambda found: found[0][1], written).replace("&amp;", "&")
    if url[:4].lower() == "www.":
        url = f"https://{url}"
    found = _HOST.match(url)
    return url if found is not None and any(map(str.isalnum, found["host"])) else None
