"""Scanners that find the end of a URL in an answer, and normalization of the URL as written.

A scanner takes the position at which a URL starts. It reads at most a fixed length beyond the position that it returns,
so the time for a whole text is linear even if the text is hostile.
"""

from __future__ import annotations

import re

MAX_URL_CHARS = 4096
"""Longer URLs are not citations. Browsers and servers need not accept them."""

URL_START = re.compile(r"https?://|(?<![\w.@/:-])www\.(?=[^\s./]+\.[^\s./])", re.IGNORECASE)
"""Start of a URL: a scheme at any position, or ``www.`` at the start of a word."""

# White space, characters that are invalid in URLs, and the quotes, brackets, full stops and commas of other scripts,
# which often follow a URL without a space. Characters that also occur in page titles, such as the middle dot, are not
# listed here. They are removed only at the end of a URL.
_NEVER = (
    r"\s\x00-\x1f\x7f<>\"`|{}\\\u00ab\u00bb\u2014\u2018-\u201f\u2039\u203a\u200b\u2060\ufeff"
    r"\u060c\u061b\u061f\u0964\u0965"  # Arabic and Devanagari
    r"\u3001-\u3003\u3008-\u3011\u3014-\u301b\u301d-\u301f"  # Chinese, Japanese and Korean
    r"\uff01\uff02\uff07-\uff09\uff0c\uff0e\uff1a-\uff1c\uff1e\uff1f\uff3b\uff3d\uff5b-\uff5d\uff5f-\uff64"
)
_NO_NEXT_URL = r"[,;](?!['\"]?(?:https?://|www\.))"
# Atomic groups, because Python before 3.11.5 has a bug in possessive quantifiers on groups (gh-106052).
_PLAIN = re.compile(rf"(?>(?:[^{_NEVER}()\[\],;*]++|\*(?!\*)|{_NO_NEXT_URL})+)", re.IGNORECASE)
_PLAIN_IN_QUOTES = re.compile(rf"(?>(?:[^{_NEVER}()\[\],;*']++|\*(?!\*)|{_NO_NEXT_URL})+)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]")
_ENTITY_AT_END = re.compile(r"&[A-Za-z][A-Za-z0-9]{1,30}\Z")
_TRAILING_PUNCTUATION = ".,;:!?*'\\([\u2013\u2026\u301c\u30fb\uff5e"
_EMPHASIS_AT_END = re.compile(r"_+\Z|~~+\Z|==+\Z")
# Characters that open or close emphasis, depending on the neighbouring characters.
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
    """Return the end of a URL in running text, and the position at which to continue.

    The URL ends before a closing bracket without an opening one in the URL, before a bracket that is closed only after
    white space, before two asterisks, and before a comma or semicolon that another URL follows. Trailing punctuation
    (full stops, quotes, emphasis that was opened before the URL) is not part of it.
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
    return _without_trailing_punctuation(text, start, end), at


def _before_remark(text: str, bracket: int, end: int) -> int:
    """Return the end of a URL with an open bracket. A remark ends the URL: ``https://a.example/x(in Dutch)``."""
    closer = ")" if text[bracket] == "(" else "]"
    rest_of_line = text[end : end + _BRACKET_LOOK_AHEAD].partition("\n")[0]
    return bracket if rest_of_line[:1].isspace() and closer in rest_of_line else end


def _without_trailing_punctuation(text: str, start: int, end: int) -> int:
    if end - start > MAX_URL_CHARS:
        return end
    url = text[start:end]
    emphasis: int | None = None
    while True:
        kept = url.rstrip(_TRAILING_PUNCTUATION)
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
    """Return the number of ``mark`` characters that opened the emphasis around a URL; 0 if there is no emphasis."""
    line = text[max(0, start - _EMPHASIS_LOOK_BACK) : start].rpartition("\n")[2]
    directly = len(line) - len(line.rstrip(mark))
    if directly:
        return directly
    opened = 0
    for found in _EMPHASIS[mark].finditer(line):
        opened = len(found[0]) if found["opens"] else 0
    return opened


def link_end(text: str, start: int) -> int | None:
    """Return the end of a URL in ``[label](...)``; None if the link is not well formed.

    Brackets must be balanced. A title may follow.
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
        elif here != "]" or text[at + 1 : at + 2] == "(":  # "](" starts the next link, so this link is not closed
            break
        at += 1
    return at if depth == 0 and _END_OF_LINK.match(text, at) else None


def enclosed_end(text: str, start: int, closer: str) -> int | None:
    """Return the end of a URL in ``<...>`` or in a quoted attribute on one line; None if it is not closed."""
    end = text.find(closer, start, start + MAX_URL_CHARS + 1)
    return end if end > start and _NO_MARKUP.fullmatch(text, start, end) else None


def clean(written: str) -> str | None:
    r"""Return the URL for a text as written, or None if it is not a URL.

    Removes Markdown escapes, replaces ``&amp;`` and adds a scheme to ``www.``. Case, percent-encoding and non-ASCII
    names do not change.

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
