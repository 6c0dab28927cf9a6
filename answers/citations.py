# ruff: noqa: RUF001 - punctuation of other scripts
"""Citations of an answer: links, references, footnotes and bare URLs with their positions.

Runs in linear time, about 0.1 s per MiB, so untrusted text is safe. In an event loop, run it in a thread.

This is not a Markdown parser. Each function makes one pass. The syntax is lenient, as agents are: a definition may be
inside a list or a block quote.

A scanner takes the position at which a URL starts. It reads at most a fixed length beyond the position that it returns,
so the time for a whole text is linear even if the text is hostile.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

MAX_LABEL_CHARS = 300

HTML_TAG = re.compile(r"</?[A-Za-z][\w-]{0,20}(?:\s[^<>\n]{0,300})?/?>")
_BRACKET = re.compile(r"\\.|[\[\]]|\n[ \t]*+\n", re.DOTALL)
_LINE_START = r"^[ \t]{0,8}(?:[>*+-][ \t]{1,4}){0,3}"
_DEFINITION = re.compile(rf"{_LINE_START}\[([^\[\]\n]{{1,200}})\]:[ \t]{{0,8}}<?", re.MULTILINE)
_FOOTNOTE = re.compile(rf"{_LINE_START}\[\^([^\[\]\n]{{1,200}})\]:[^\n]*+(?>(?:\n(?: {{4}}|\t)[^\n]*+)*)", re.MULTILINE)
_REFERENCE = re.compile(r"(?<!\\)\[([^\[\]\n]{1,300})\](?:\[([^\[\]\n]{0,200})\])?(?![(:\[])")


def link_labels(text: str) -> dict[int, int]:
    """Map the position of each ``]`` that is followed by ``(`` to its ``[``. A label ends at a blank line."""
    pairs: dict[int, int] = {}
    open_at: list[int] = []
    for match in _BRACKET.finditer(text):
        mark = match[0]
        if mark == "[":
            open_at.append(match.start())
        elif mark == "]" and open_at:
            opened = open_at.pop()
            if text.startswith("(", match.end()):
                pairs[match.start()] = opened
        elif mark[0] == "\n":
            open_at.clear()
    return pairs


def reference_key(label: str) -> str:
    """Return the key of a label. Labels that differ only in case and spacing refer to the same definition."""
    return " ".join(label.casefold().split())


class CitationKind(StrEnum):
    """How a URL is written."""

    LINK = "link"
    """``[label](url)``"""
    IMAGE = "image"
    """``![label](url)``"""
    AUTOLINK = "autolink"
    """``<url>``"""
    BARE = "bare"
    """In running text, a table cell or code, with or without its scheme."""
    DEFINITION = "definition"
    """``[label]: url``, the target of references."""
    REFERENCE = "reference"
    """``[text][label]`` or ``[label]``, with the URL of the definition."""
    FOOTNOTE = "footnote"
    """A bare URL in ``[^label]: ...``."""
    HTML = "html"
    """The value of an attribute, as in ``<a href="url">``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """URL in an answer, with its position.

    ``text[start:end]`` (in characters) is the URL or identifier as written, or the whole reference for ``REFERENCE``.
    ``label`` is the text of the link (first 300 characters) or the name of the definition or footnote, else empty.
    """

    url: str
    start: int
    end: int
    kind: CitationKind
    label: str = ""
    truncated: bool = False
    """Whether the answer contains only a part of the URL: ``url`` is the part before the omission."""
    link: tuple[int, int] | None = None
    """Start and end of the whole link with its label and brackets; None for a definition or an attribute."""


def citations(text: str) -> tuple[Citation, ...]:
    """Return all citations of an answer, in text order.

    A URL that is cut off, such as ``https://a.example/annual-rep...``, becomes the only other one that completes it.
    """
    cited = _Finder(text).run()
    if any(each.truncated for each in cited):
        _complete(text, cited)
    targets: dict[str, str] = {}
    for each in cited:
        if each.kind is CitationKind.DEFINITION:
            targets.setdefault(reference_key(each.label), each.url)
    if targets:
        cited += _references(text, targets)
        cited.sort(key=lambda each: each.start)
    return tuple(cited)


CACHED_CHARS = 16_000
"""Shorter texts are searched for URLs only once, in up to 8 ms."""


def unique_urls(text: str) -> tuple[str, ...]:
    """Return the distinct URLs of an answer as it writes them, in the order of their first citation."""
    return _cached_urls(text) if len(text) < CACHED_CHARS else _urls(text)


def _urls(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.url for each in citations(text)))


_cached_urls = lru_cache(maxsize=1024)(_urls)
"""Cached URLs of answers of usual length: each step from the upload to the reward needs them."""


def _references(text: str, targets: dict[str, str]) -> Iterator[Citation]:
    """Yield each ``[text][label]``, ``[label][]`` or ``[label]`` that refers to a definition."""
    for match in _REFERENCE.finditer(text):
        url = targets.get(reference_key(match[2] or match[1]))
        if url is not None:
            start, end = match.span()
            kind = CitationKind.REFERENCE
            yield Citation(url=url, start=start, end=end, kind=kind, label=match[1], link=(start, end))


_MAX_COMPLETIONS = 50


def _complete(text: str, cited: list[Citation]) -> None:
    """Replace truncated URLs by the only other one that completes them."""
    complete = sorted({each.url for each in cited if not each.truncated})
    for index, each in enumerate(cited):
        if each.truncated:
            parts = _OMISSION.split(text[each.start : each.end])
            first = bisect_left(complete, each.url)
            ending = parts[-1] if len(parts) > 1 else ""
            near = complete[first : first + _MAX_COMPLETIONS]
            found = [url for url in near if url.startswith(each.url) and url.endswith(ending)]
            found = [url for url in found if url != each.url] or found
            if len(found) == 1:
                cited[index] = replace(each, url=found[0], truncated=False)


_LINK_BEFORE = re.compile(r"\]\(\s{0,4}<?\Z")
_AFTER_LINK = re.compile(r">?\s{0,9}(?:\"[^\n]{0,300}?\"|'[^\n]{0,300}?'|\([^()\n]{0,300}\))?\s{0,9}\)")
_HTML_LINK = re.compile(r"[^<>\n]{0,500}>((?:[^<>\n]|<(?!/?a[\s>])[^<>\n]{0,100}>){0,500})</a>", re.I)
_ATTRIBUTE_BEFORE = re.compile(r"[\w-]=[\"']\Z")
_LOOK_BACK = 8
_PART_CHARS = 50_000
"""Characters that are searched at once, in 4 ms."""
_SPACE = re.compile(r"(?<!doi:)(?<!xiv:)(?<!mid:)(?<!cid:)(?<!doi)(?<!mid)(?<!rfc)\s", re.IGNORECASE)
"""White space that is not within an identifier."""


class _Finder:
    """Scanner that finds the URLs of a text in one pass."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._last = len(text.rstrip())
        self._labels = link_labels(text)
        self._definitions = {each.end(): each[1] for each in _DEFINITION.finditer(text) if each[1][0] != "^"}
        """Labels by the start of their target."""
        self._footnotes = _FOOTNOTE.finditer(text)
        self._footnote = next(self._footnotes, None)
        self._found: list[Citation] = []
        self._spans: list[tuple[int, int]] = []

    def run(self) -> list[Citation]:
        """Return the citations that contain a URL (all kinds except references), in text order.

        Searches parts that end before white space, because other threads wait for the end of a search.
        """
        at = 0
        while at < len(self._text):
            space = _SPACE.search(self._text, at + _PART_CHARS)
            end = len(self._text) if space is None else space.start()
            while (begin := _START.search(self._text, at, end)) is not None:
                at = max(self._take(begin), begin.end())
            at = max(at, end)
        return self._found

    def _take(self, begin: re.Match[str]) -> int:
        """Record the URL or identifier that starts at ``begin``. Return the position at which to continue."""
        start = begin.start()
        before = self._text[max(0, start - _LOOK_BACK) : start]
        in_angles = enclosed_end(self._text, start, ">") if before.endswith("<") else None
        before_link = _LINK_BEFORE.search(before)
        close = None if before_link is None else start - len(before_link[0])
        end = None if close is None else in_angles or link_end(self._text, start)
        if end is not None and close is not None:
            return self._note_link(start, end, close)
        if in_angles is not None:
            kind, label = self._context(start, CitationKind.AUTOLINK)
            return self._note(start, in_angles, kind, label, (start - 1, in_angles + 1))
        end = enclosed_end(self._text, start, before[-1]) if _ATTRIBUTE_BEFORE.search(before) else None
        if end is not None:
            opened = self._text.rfind("<", max(0, start - 200), start)
            closed = _HTML_LINK.match(self._text, end) if self._text[opened : opened + 3].lower() == "<a " else None
            label = "" if closed is None else HTML_TAG.sub("", closed[1])[:MAX_LABEL_CHARS]
            return self._note(start, end, CitationKind.HTML, label, closed and (opened, closed.end()))
        end = resume = begin.end()
        if begin.lastgroup in {None, "doi"}:
            end, resume = bare_end(self._text, begin.start(begin.lastgroup or 0), self._spans)
        is_last = end == self._last and before[-1:] in {"(", "<"}
        if close is not None and self._text[end : end + 1] in {"", "\r", "\n"}:
            return self._note_link(start, end, close, is_cut=True)
        is_cut = is_last or self._text.count("(", start, end) > self._text.count(")", start, end)
        self._note(start, end, *self._context(start, CitationKind.BARE), (start, end), is_cut=is_cut)
        return resume

    def _context(self, start: int, kind: CitationKind) -> tuple[CitationKind, str]:
        """Return kind and label of a URL outside links: those of the surrounding definition or footnote, if any."""
        if start in self._definitions:
            return CitationKind.DEFINITION, self._definitions[start]
        while self._footnote is not None and self._footnote.end() <= start:
            self._footnote = next(self._footnotes, None)
        if self._footnote is not None and self._footnote.start() <= start:
            return CitationKind.FOOTNOTE, self._footnote[1]
        return kind, ""

    def _note_link(self, start: int, end: int, close: int, *, is_cut: bool = False) -> int:
        opened = self._labels.get(close, start)
        # A URL in the text of a link is not a citation. It is often shortened for display.
        while self._found and self._found[-1].start > opened and self._found[-1].kind is CitationKind.BARE:
            self._found.pop()
        after = _AFTER_LINK.match(self._text, end)
        label = self._text[opened + 1 : min(close, opened + 1 + MAX_LABEL_CHARS)]
        is_image = opened < start and self._text[opened - 1 : opened] == "!"
        link = (opened - is_image, end if after is None else after.end())
        return self._note(start, end, CitationKind.IMAGE if is_image else CitationKind.LINK, label, link, is_cut=is_cut)

    def _note(
        self,
        start: int,
        end: int,
        kind: CitationKind,
        label: str,
        link: tuple[int, int] | None,
        *,
        is_cut: bool = False,
    ) -> int:
        """Record a URL, if it is one. Return its end."""
        self._spans.append((start, end))
        written = self._text[start:end]
        shown = _OMISSION.split(written, 1)[0]
        is_cut = is_cut or shown != written or _ELLIPSIS.match(self._text, end) is not None
        url = clean(shown) or (None if "://" in shown else clean(f"https://{shown}"))
        link = None if kind is CitationKind.DEFINITION else link
        if url is not None:
            found = Citation(url=url, start=start, end=end, kind=kind, label=label, truncated=is_cut, link=link)
            self._found.append(found)
        return end


MAX_URL_CHARS = 4096
"""Longer URLs are not citations. Browsers and servers need not accept them."""

_TOP_LEVEL = (
    "com|org|net|edu|gov|int|mil|info|biz|name|pro|museum|coop|aero|io|ai|dev|app|tech|news|blog|shop|site|online|cloud"
    "|wiki|health|science|xyz|media|world|live|art|bank|law|page|report|agency|eu|uk|us|a[cdefgilmoqrtuwxz]"
    "|b[abdefghijmnorstvwyz]|c[adfghiklmnoruvwxyz]|d[ejkmoz]|e[cegrst]|f[ijkmor]|g[abdefghilmnpqrstuwy]|h[kmnrtu]"
    "|i[delmnqrst]|j[emop]|k[eghimnprwyz]|l[abcikrstuvy]|m[acegkhnopqrstuvwxyz]|n[acefgilopruz]|om|p[aefgkmnrtw]|qa"
    "|r[eouw]|s[abcdegiklmnrtuvxyz]|t[cdghjklmnortvwz]|u[agyz]|v[aceginu]|w[fs]|y[et]|z[amw]"
)
"""Top-level domains of addresses without a scheme, without those that are also suffixes of files, such as ``md``."""
_LANDING_PAGES = {
    "doi": "https://doi.org/{}",
    "arxiv": "https://arxiv.org/abs/{}",
    "pmid": "https://pubmed.ncbi.nlm.nih.gov/{}/",
    "pmcid": "https://pmc.ncbi.nlm.nih.gov/articles/PMC{}/",
    "rfc": "https://www.rfc-editor.org/rfc/rfc{}",
}
_START = re.compile(
    r"https?://|(?<![\w.@/:-])www\.(?=[^\s./]+\.[^\s./])"
    rf"|(?<![\w.@/:~#?=&%+-])(?-i:(?:[A-Za-z0-9][a-z0-9-]{{0,62}}\.){{1,6}}(?:{_TOP_LEVEL})/(?=[\w~@%]))"
    r"|(?:(?<=source: |quelle: )|(?<=sources: |quellen: )|(?<=source:\*\* )|(?<=来源：|出处：|出典：))"
    rf"(?-i:(?:[A-Za-z0-9][a-z0-9-]{{0,62}}\.){{1,6}}(?:{_TOP_LEVEL}))(?![\w-]|\.\w)"
    r"|(?<![A-Za-z0-9_/.:@-])(?:"
    r"(?:doi(?::\s?|\s)|(?<!version )(?=10\.\d{4,9}/\S{0,80}[a-z])(?=10\.\d{4,9}/\S{0,80}\d)(?=10\.\S{11}))"
    r"(?=10\.\d{4,9}[./])(?P<doi>)"
    r"|arxiv:\s?(?P<arxiv>\d{4}\.\d{4,5}(?:v\d{1,2})?|[a-z-]{2,12}(?:\.[a-z]{2})?/\d{7})(?![\w/])"
    r"|pmid(?::\s?|\s)(?P<pmid>\d{5,8})(?!\w)|(?:pmcid(?::\s?|\s))?pmc(?P<pmcid>\d{4,8})(?!\w)"
    r"|rfc[ -]?(?P<rfc>\d{2,4})(?!\w))",
    re.IGNORECASE,
)
"""Start of a URL (scheme, ``www.``, or a known top-level domain before a path or behind "Source:"), or identifier."""
_OMISSION = re.compile(r"[\[(](?:\.{3}|\u2026)[\])]|\u2026|\.{3,}(?=/|\[|\Z)")
_ELLIPSIS = re.compile(r"\u2026|\.{3}")

# White space, characters that are invalid in URLs, and the quotes, brackets, full stops and commas of other scripts,
# which often follow a URL without a space. Characters that also occur in page titles, such as the middle dot, are not
# listed here. They are removed only at the end of a URL. The apostrophe U+2019 is also a quote: see `bare_end`.
_NEVER = (
    r"\s\x00-\x1f\x7f<>\"`|{}\\\u00ab\u00bb\u2014\u2018-\u201f\u2039\u203a\u200b\u2060\ufeff"
    r"\u060c\u061b\u061f\u0964\u0965"  # Arabic and Devanagari
    r"\u3001-\u3003\u3008-\u3011\u3014-\u301b\u301d-\u301f"  # Chinese, Japanese and Korean
    r"\uff01\uff02\uff07-\uff09\uff0c\uff0e\uff1a-\uff1c\uff1e\uff1f\uff3b\uff3d\uff5b-\uff5d\uff5f-\uff64"
)
_NEXT_URL = r"['\"]?(?:https?://|www\.)"
_BETWEEN_URLS = r",;\u00b7\u2013\u2022\u2190-\u21ff\u2219\u22c5\u25a0-\u25ff\u30fb"
_NO_NEXT_URL = rf"[{_BETWEEN_URLS}](?!{_NEXT_URL})"
_LATIN = r"[0-9A-Za-z_\u00c0-\u024f]"
# Atomic groups, because Python before 3.11.5 has a bug in possessive quantifiers on groups (gh-106052).
_PLAIN = re.compile(rf"(?>(?:[^{_NEVER}()\[\]{_BETWEEN_URLS}*]++|\*(?!\*)|{_NO_NEXT_URL})+)", re.IGNORECASE)
_PLAIN_IN_QUOTES = re.compile(
    rf"(?>(?:[^{_NEVER}()\[\]{_BETWEEN_URLS}*']++|\*(?!\*)|{_NO_NEXT_URL}|'(?={_LATIN})(?!{_NEXT_URL}))+)",
    re.IGNORECASE,
)
_APOSTROPHE = re.compile(rf"\u2019(?={_LATIN})(?!{_NEXT_URL})", re.IGNORECASE)
_IN_PATH = re.compile(r"(?:https?://|www\.)[^/?#]+[/?#]", re.IGNORECASE)
_POSSESSIVE = re.compile(r"(?:https?://|www\.)[^/?#]+/?'s", re.IGNORECASE)
"""Possessive of a host. In a path, it is a part of a name such as ``McDonald's``."""
_ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]")
_ENTITY_AT_END = re.compile(r"&[A-Za-z][A-Za-z0-9]{1,30}\Z")
_TRAILING_PUNCTUATION = ".,;:!?*'\\([\u2013\u2026\u301c\u30fb\uff5e"
_TRAILING_SIGNS = re.compile(
    r"[\u00a6\u2190-\u21ff\u2212\u2219\u22c5\u2500-\u25ff\u2605\u2606\u2713-\u2718\u2794-\u27bf\u27f0-\u27ff\u2900-\u297f\u2b00-\u2bff]"
)
"""Arrows, bullets, lines and check marks. Other symbols, such as the sharp sign, end the titles of pages."""
_TITLE_ENDS = "\u0f0b\u0f0c"  # the Tibetan mark after each syllable
_CODE = re.compile(r"`[^`]*`")
_EMPHASIS_AT_END = re.compile(r"_+\Z|~~+\Z|==+\Z")
# Characters that open or close emphasis, depending on the neighbouring characters.
_EMPHASIS = {
    mark: re.compile(rf"(?P<opens>(?<![\w\\]){run}(?=[^\s{mark}]))|(?<=[^\s{mark}]){run}(?!\w)")
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


def bare_end(text: str, start: int, earlier: Sequence[tuple[int, int]] = ()) -> tuple[int, int]:
    """Return the end of a URL in running text, and the position at which to continue.

    The URL ends before a closing bracket without an opening one in the URL, before a bracket that is closed only after
    white space, before two asterisks, and before a comma or another separator that another URL follows. Trailing
    punctuation (full stops, quotes, bullets, emphasis that was opened before the URL) is not part of it. An apostrophe
    is part of a path if a Latin letter follows, and of a host never: ``https://a.example's page``.

    ``earlier`` are the starts and ends of the URLs before it. Their underscores are not emphasis.
    """
    plain = _PLAIN_IN_QUOTES if text[start - 1 : start] == "'" else _PLAIN
    open_brackets: list[int] = []
    at = start
    while at < len(text) and at - start <= MAX_URL_CHARS:
        run = plain.match(text, at) or _ESCAPED.match(text, at)
        if run is not None:
            at = run.end()
            continue
        char = text[at]
        if char in "([":
            open_brackets.append(at)
        elif char == "\u2019":
            if not (_APOSTROPHE.match(text, at) and _IN_PATH.match(text, start, at)):
                break
        elif char not in _CLOSERS or not open_brackets or text[open_brackets.pop()] != _CLOSERS[char]:
            break
        at += 1
    end = _before_remark(text, open_brackets[0], at) if open_brackets else at
    return _without_trailing_punctuation(text, start, end, earlier), at


def _before_remark(text: str, bracket: int, end: int) -> int:
    """Return the end of a URL with an open bracket. A remark ends the URL: ``https://a.example/x(in Dutch)``."""
    closer = ")" if text[bracket] == "(" else "]"
    rest_of_line = text[end : end + _BRACKET_LOOK_AHEAD].partition("\n")[0]
    return bracket if rest_of_line[:1].isspace() and closer in rest_of_line else end


def _without_trailing_punctuation(text: str, start: int, end: int, earlier: Sequence[tuple[int, int]]) -> int:
    if end - start > MAX_URL_CHARS:
        return end
    url = text[start:end]
    if url[-1:].isalnum() and not url.endswith("'s"):  # most URLs
        return end
    emphasis: dict[str, int] = {}
    while True:
        trimmed = _without_separators(url)
        if url[len(trimmed) : len(trimmed) + 1] == ";":
            trimmed = _ENTITY_AT_END.sub("", trimmed)
        if _POSSESSIVE.fullmatch(trimmed):
            trimmed = trimmed[:-2]
        closing = _EMPHASIS_AT_END.search(trimmed)
        if closing is not None:
            mark = closing[0][0]
            if mark not in emphasis:
                emphasis[mark] = _emphasis_before(text, start, mark, earlier)
            length = min(len(closing[0]), emphasis[mark])
            emphasis[mark] -= length
            trimmed = trimmed[: len(trimmed) - length]
        if trimmed == url:
            return start + len(url)
        url = trimmed


def _without_separators(url: str) -> str:
    """Return a URL without trailing punctuation and bullets of any script."""
    end = len(url)
    while end and (url[end - 1] in _TRAILING_PUNCTUATION or _is_separator(url[end - 1])):
        end -= 1
    return url[:end]


def _is_separator(char: str) -> bool:
    if char.isascii() or char in _TITLE_ENDS:
        return False
    return unicodedata.category(char).startswith("P") or _TRAILING_SIGNS.match(char) is not None


def _emphasis_before(text: str, start: int, mark: str, earlier: Sequence[tuple[int, int]]) -> int:
    """Return the number of ``mark`` characters that opened the emphasis around a URL; 0 if there is no emphasis."""
    first = max(0, start - _EMPHASIS_LOOK_BACK)
    line = text[first:start]
    for begin, end in reversed(earlier):
        if end <= first:
            break
        inside = max(0, begin - first), end - first
        line = line[: inside[0]] + "u" * (inside[1] - inside[0]) + line[inside[1] :]
    line = _CODE.sub(lambda code: "u" * len(code[0]), line.rpartition("\n")[2])
    directly = len(line) - len(line.rstrip(mark))
    if directly:
        return directly
    opened = 0
    for match in _EMPHASIS[mark].finditer(line):
        opened = len(match[0]) if match["opens"] else 0
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
        char = text[at]
        if char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif char != "]" or text[at + 1 : at + 2] == "(":  # "](" starts the next link, so this link is not closed
            break
        at += 1
    return at if depth == 0 and _END_OF_LINK.match(text, at) else None


def enclosed_end(text: str, start: int, closer: str) -> int | None:
    """Return the end of a URL in ``<...>`` or in a quoted attribute on one line; None if it is not closed."""
    end = text.find(closer, start, start + MAX_URL_CHARS + 1)
    return end if end > start and _NO_MARKUP.fullmatch(text, start, end) else None


def clean(written: str) -> str | None:
    r"""Return the URL for a text as written, or None if it is neither a URL nor an identifier of a publication.

    Removes Markdown escapes, replaces ``&amp;`` and adds a missing scheme. Case, percent-encoding and non-ASCII names
    do not change.

    >>> clean(r"www.example.org/a\_b?x=1&amp;y=2")
    'https://www.example.org/a_b?x=1&y=2'
    >>> clean("PMID: 12345678")
    'https://pubmed.ncbi.nlm.nih.gov/12345678/'
    >>> clean("https://...") is None
    True
    """
    begin = _START.match(written) if len(written) <= MAX_URL_CHARS else None
    if begin is None:
        return None
    url = _ESCAPED.sub(lambda match: match[0][1], written) if "\\" in written else written
    url = url.replace("&amp;", "&")
    if begin.lastgroup is not None:
        url = _LANDING_PAGES[begin.lastgroup].format(begin[begin.lastgroup] or url[begin.end() :])
    elif "://" not in begin[0]:
        url = f"https://{url}"
    match = _HOST.match(url)
    return url if match is not None and any(map(str.isalnum, match["host"])) else None
