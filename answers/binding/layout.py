# ruff: noqa: RUF001 - punctuation and digits of other scripts
"""Line structure of a Markdown report: headings, list items, table rows, paragraphs, and what is code or mathematics.

One pass over the lines. Offsets are characters of the original text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from answers.errors import TooManyParts

MAX_LINES = 60_000


_LABELS = (
    r"(?:[^\W\d_]{2,12}[ ]){0,2}?(?:sources?|references?|links?|quellen?)|refs?\.?|via|urls?|citations?|cited from"
    r"|read more|more info(?:rmation)?|see(?: also)?|further reading|retrieved from|archived"
    r"|available (?:at|from|online)|based on|according to|belege?|nachweise?|siehe|fuentes?|fontes?|fonti"
    r"|bron(?:nen)?|källor?|kilder?|lähteet|źródł[oa]|zdroje|источник(?:и)?|ссылк[аи]|المصدر|المصادر|출처|참고"
    r"|[一-龥]{0,4}(?:来源|來源|出处|出處|出典|参考|參考|参照|引用元?|链接|連結|网址|網址|见|參見)|参考(?:文献|资料|链接)|情報源"
)
SOURCE_LABEL = re.compile(
    rf"(?:[^\w<\n]|_|<[^<>\n]{{1,80}}>){{0,12}}(?:{_LABELS})"
    r"(?:\(s\)|\(n\))?(?:[ ]?(?:\d{1,3}|\([^()\n\ue000-\ue002]{0,40}\)|for [^\n:：\ue000-\ue002]{1,30}))?[*_ \t]{0,6}"
    r"(?:[:：]|[–—-][ ](?=.{0,80}(?:https?:|[\ue000-\ue002]))|(?=<?https?://))",
    re.I,
)
"""Start of a line that names the sources of the statements near it, such as ``**Source:**``."""
_LINK_LINE = re.compile(r"\W{0,6}(?:https?:|www\.)|[ \t]*\[")


class LineKind(StrEnum):
    """Role of a line."""

    HEADING = "heading"
    TABLE = "table"
    """Row of a table, also the delimiter row."""
    ITEM = "item"
    """First line of a list item."""
    TEXT = "text"
    CODE = "code"
    RULE = "rule"
    """Thematic break, or underline of a heading."""


class Line(NamedTuple):
    """Line that is not blank. ``content`` is the offset after quote, list and heading markers.

    A block is the first line of a paragraph, list item, heading or table row with the ``end`` of the last one. Its
    ``start`` is its ``content``.
    """

    start: int
    end: int
    content: int
    kind: LineKind
    level: int
    """Level of a heading, else 0."""
    after_blank: bool
    indent: int
    """Columns before the content or the list marker."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines and blocks of a text. ``masked[i]`` is 1 if character ``i`` is code or mathematics."""

    lines: list[Line]
    blocks: list[Line]
    masked: bytearray


_LINE = re.compile(r"[^\n]+")
_QUOTE = re.compile(r"(?>(?:[ \t]{0,8}>)*)[ \t]*+")
_ITEM = re.compile(r"(?:[-*+•‣◦·▪:][ \t]+|\d{1,4}(?:[.)][ \t]+|[、．]))(?:\[[ xX]\][ \t]+)?")
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^\s`]{0,40})[^`]*\Z")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+|\Z)")
_RULE = re.compile(r"(?:={3,}|-{3,}|\*{3,}|_{3,}|(?:[-*_][ \t]+){2,40}[-*_])\s*")
_DELIMITER = frozenset("|:- \t\r")
_MARKDOWN_FENCE = {"markdown", "md"}


def read_layout(text: str) -> Layout:
    """Return the line structure of a report.

    Raises:
        TooManyParts: There are more than ``MAX_LINES`` lines that are not blank.
    """
    lines = _lines(text)
    masked = bytearray(len(text))
    for line in lines:
        if line.kind is LineKind.CODE:
            _mask(masked, line.start, line.end)
    blocks = _blocks(text, lines)
    for block in blocks:
        for span in _CODE_SPAN.finditer(text, block.start, block.end):
            if not _ONLY_URL.fullmatch(span[2]):
                _mask(masked, *span.span())
    _mask_mathematics(text, masked)
    return Layout(lines, blocks, masked)


def _mask(masked: bytearray, start: int, end: int) -> None:
    masked[start:end] = b"\1" * (end - start)


def _lines(text: str) -> list[Line]:
    """Return the lines. A fence around a whole report (```` ```markdown ````) is not code."""
    lines: list[Line] = []
    fence, in_list, in_table, end_before, indent = "", False, False, -1, 0
    for match in _LINE.finditer(text):
        start, end = match.span()
        quote = _QUOTE.match(text, start, end)
        content = quote.end() if quote is not None else start
        if content == end or text[content:end].isspace():
            continue
        after_blank = start > end_before + 1
        end_before = end
        opened = _FENCE.match(text[content : min(end, content + 200)]) if text[content] in "`~" else None
        kind, level = LineKind.CODE, 0
        if fence:
            is_end = opened is not None and opened[1].startswith(fence) and not opened[2]
            fence = "" if is_end else fence
        elif opened is not None:
            fence = "" if opened[2].lower() in _MARKDOWN_FENCE else opened[1]
        else:
            row = text[content] == "|" or (in_table and not after_blank and "|" in text[content:end])
            delimiter = bool(lines) and not after_blank and is_delimiter(text, content, end)
            if delimiter and lines[-1].kind is LineKind.TEXT:
                lines[-1] = lines[-1]._replace(kind=LineKind.TABLE)
            in_table = row or delimiter
            quoted, _, before = text[start:content].rpartition(">")
            indent = len(before.expandtabs(4)) - bool(quoted)
            content, kind, level = _kind(text, content, end, is_row=in_table)
            if kind is LineKind.TEXT and after_blank and indent >= 4 and not in_list:
                kind = LineKind.CODE
            elif kind is LineKind.RULE and lines and not after_blank and _is_underlined(text, lines[-1], content):
                lines[-1] = lines[-1]._replace(kind=LineKind.HEADING, level=1 if text[content] == "=" else 2)
            in_list = kind is LineKind.ITEM or (in_list and (indent > 0 or not after_blank))
        lines.append(Line(start, end, content, kind, level, after_blank, indent))
        if len(lines) > MAX_LINES:
            raise TooManyParts(MAX_LINES, "lines")
    return lines


def _kind(text: str, content: int, end: int, *, is_row: bool) -> tuple[int, LineKind, int]:
    if is_row:
        return content, LineKind.TABLE, 0
    if _RULE.fullmatch(text, content, end):
        return content, LineKind.RULE, 0
    heading = _HEADING.match(text, content, end)
    if heading is not None:
        return heading.end(), LineKind.HEADING, len(heading[1])
    item = _ITEM.match(text, content, end)
    if item is not None:
        return item.end(), LineKind.ITEM, 0
    return content, LineKind.TEXT, 0


def is_delimiter(text: str, content: int, end: int) -> bool:
    """Return whether a line is the row between the titles and the body of a table."""
    if text[content] not in _DELIMITER or end - content > 2_000:
        return False
    row = text[content:end]
    return "|" in row and "-" in row and set(row) <= _DELIMITER


def _is_underlined(text: str, line: Line, rule: int) -> bool:
    """Return whether a line above a rule is a heading. Agents also write a break directly below a sentence."""
    written = text[line.content : line.end].rstrip() if line.end - line.content <= 120 else ""
    return text[rule] in "=-" and line.kind is LineKind.TEXT and written[-1:].isalnum() and "://" not in written


def _blocks(text: str, lines: list[Line]) -> list[Line]:
    """Return the blocks. A line that begins with "Source:" is a block of its own."""
    blocks: list[Line] = []
    is_open, in_source = False, False
    for line, following in zip(lines, [*lines, None][1:], strict=True):
        is_text = line.kind is LineKind.TEXT
        is_source = SOURCE_LABEL.match(text, line.content, line.end) is not None
        is_term = following is not None and text[following.start + following.indent : following.content][:1] == ":"
        continues = not (is_source or is_term or (in_source and not _LINK_LINE.match(text, line.content, line.end)))
        if is_open and is_text and not line.after_blank and continues:
            blocks[-1] = blocks[-1]._replace(end=line.end)
        elif line.kind not in {LineKind.CODE, LineKind.RULE}:
            blocks.append(line._replace(start=line.content))
            in_source = is_source
        is_open = is_text or line.kind is LineKind.ITEM
    return blocks


_ONLY_URL = re.compile(r"\s?https?://[^\s`]{1,2000}\s?")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)([\s\S]{1,4000}?)(?<!`)\1(?!`)")


_MATHEMATICS = re.compile(
    r"\$\$(?:(?!\$\$)[\s\S]){0,4000}\$\$|(?<![\w$\\])\$(?![\s$])(?P<dollars>[^$\n]{1,300})(?<![\s\\])\$(?![\w$])"
    r"|\\\((?:[^\\\n]|\\[^()\n]){1,300}\\\)"
    r"|\\\[(?![\d\s,;^–-]{0,40}\\\])(?:(?!\\[\[\]])[\s\S]){0,4000}\\\]"  # but \[1\] is an escaped mark
)
_AMOUNT = re.compile(r"[\d.,]+(?![\d.,]*[\w\s]*[\\^_=+{}<>*/])")


def _mask_mathematics(text: str, masked: bytearray) -> None:
    r"""Mask ``$x$``, ``\(x\)``, ``$$x$$`` and ``\[x\]``. Two amounts in dollars are not a formula."""
    for match in _MATHEMATICS.finditer(text):
        if not masked[match.start()] and (match["dollars"] is None or not _AMOUNT.match(match["dollars"])):
            _mask(masked, *match.span())
