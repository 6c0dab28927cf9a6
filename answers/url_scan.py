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

# White space, what no URL may contain, and the quotes, brackets, full stops and commas of other scripts, which often
# stand behind a URL without a space. Marks that page titles contain, too, as the middle dot, are left out at its end.
_NEVER = (
    r"\s\x00-\x1f\x7f<>\"`|{}\\\u00ab\u00bb\u2014\u2018-\u201f\u2039\u203a\u200b\u2060\ufeff"
    r"\u060c\u061b\u061f\u0964\u0965"  # Arabic and Devanagari
    r"\u3001-\u3003\u3008-\u3011\u3014-\u301b\u301d-\u301f"  # Chinese, Japanese and Korean
    r"\uff01\uff02\uff07-\uff09\uff0c\uff0e\uff1a-\uff1c\uff1e\uff1f\uff3b\uff3d\uff5b-\uff5d\uff5f-\uff64"
)
_NO_NEXT_URL = r"[,;](?!['\"]?(?:https?://|www\.))"
# Atomic groups, since Python before 3.11.5 gets possessively repeated ones wrong (gh-106052).
_PLAIN = re.compile(rf"(?>(?:[^{_NEVER}()\[\],;*]++|\*(?!\*)|{_NO_NEXT_URL})+)", re.IGNORECASE)
_PLAIN_IN_QUOTES = re.compile(rf"(?>(?:[^{_NEVER}()\[\],;*']++|\*(?!\*)|{_NO_NEXT_URL})+)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]")
_ENTITY_AT_END = re.compile(r"&[A-Za-z][A-Za-z0-9]{1,30}\Z")
_LOOSE_AT_END = ".,;:!?*'\\([\u2013\u2026\u301c\u30fb\uff5e"
_EMPHASIS_AT_END = re.compile(r"_+\Z|~~+\Z|==+\Z")
# Marks that open or close emphasis, by their place between words.
_EMPHASIS = {
    mark: re.compile(rf"(?P<opens>(?<!\w){run}(?=[^\s{mark}]))|(?<=[^\s{mark}]){run}(?!\w)")
    for mark, run in (("_", "_+"), ("~", "~~+"), ("=", "==+"))
}
_EMPHASIS_LOOK_BACK = 200
_BRACKET_LOOK_AHEAD = 100
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

    It stops before a closing bracket that was not opened within the URL, before a bracket that is closed only behind
    white space, before two asterisks, and before a comma or semicolon with another URL behind it. What is loose at its
    end (full stop, quote, emphasis that was opened before the URL) is left out.
    """
    plain = _PLAIN_IN_QUOTES if text[start - 1 : start] == "'" else _PLAIN
    open_brackets: list[int] = []
    at = start
    while at < len(text) and at - start <= MAX_URL_CHARS:
        run = plain.match(text, at) or _ESCAPED.match(text, at)
        if run is not None:
            at = run.end()
            continue
        here = text[at]
        if here in "([":
            open_brackets.append(at)
        elif here not in _CLOSERS or not open_brackets or text[open_brackets.pop()] != _CLOSERS[here]:
            break
        at += 1
    end = _before_remark(text, open_brackets[0], at) if open_brackets else at
    return _without_loose_end(text, start, end), at


def _before_remark(text: str, bracket: int, end: int) -> int:
    """The end of a URL with an open bracket: before it if a remark begins there: ``https://a.example/x(in Dutch)``."""
    closer = ")" if text[bracket] == "(" else "]"
    rest_of_line = text[end : end + _BRACKET_LOOK_AHEAD].partition("\n")[0]
    return bracket if rest_of_line[:1].isspace() and closer in rest_of_line else end


def _without_loose_end(text: str, start: int, end: int) -> int:
    if end - start > MAX_URL_CHARS:
        return end
    url = text[start:end]
    emphasis: int | None = None
    while True:
        kept = url.rstrip(_LOOSE_AT_END)
        if url[len(kept) : len(kept) + 1] == ";":
            kept = _ENTITY_AT_END.sub("", kept)
        kept = kept.removesuffix("'s")
        closing = _EMPHASIS_AT_END.search(kept)
        if closing is not None:
            emphasis = _emphasis_before(text, start, closing[0][0]) if emphasis is None else emphasis
            length = min(len(closing[0]), emphasis)
            emphasis -= length
            kept = kept[: len(kept) - length]
        if kept == url:
            return start + len(url)
        url = kept


def _emphasis_before(text: str, start: int, mark: str) -> int:
    """How many of these marks opened the emphasis in which a URL stands; 0 if there is none."""
    line = text[max(0, start - _EMPHASIS_LOOK_BACK) : start].rpartition("\n")[2]
    directly = len(line) - len(line.rstrip(mark))
    if directly:
        return directly
    opened = 0
    for found in _EMPHASIS[mark].finditer(line):
        opened = len(found[0]) if found["opens"] else 0
    return opened


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
