"""Conversion of a checked report to safe HTML in which each statement is marked with its outcome.

Markdown parsers give no positions of inline text. Two punctuation characters that the report does not contain are
therefore inserted around each statement before parsing, and replaced by elements afterwards.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from answers.binding import without_product_marks
from answers.markdown import MAX_CHARS, linked, plain_text, render_markdown
from app.dashboard.answer_renderer import answer_child

_CANDIDATES = tuple(char for char in map(chr, range(0x2E30, 0x2E50)) if unicodedata.category(char).startswith("P"))
_BLOCK_START = re.compile(r"[ \t]*(?:(?:#{1,6}|>|[-*+]|\d{1,9}[.)])[ \t]+)*")
_CELL = re.compile(r"(?:[^|\\\n]|\\.)+")
_TEXT = re.compile(r'<span data-statement="(\d+)">')
_END = re.compile(r'<span data-end="(\d+)"></span>')


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """Statement of the report: ``text[start:end]``. Its number is its index."""

    start: int
    end: int
    is_row: bool = False


def report_html(text: str, statements: Sequence[MarkedSpan]) -> str | None:
    """Return the report as HTML; None if it contains all characters that can mark statements, or is too long.

    A statement is one or more ``<span data-statement="N">``, followed by ``<span data-end="N"></span>``. Raw HTML of
    the report is shown as text. Blocks for 10 ms per 100 kB of usual text, and up to minutes for hostile text.
    """
    free = [char for char in _CANDIDATES if char not in text][:2]
    if len(free) < 2 or len(text) > MAX_CHARS:
        return None
    opener, closer = free
    signs = re.compile(f"{opener}(\\d+){opener}|{closer}")

    def mark_statements(tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.type == "inline":
                token.children = list(_elements(linked(list(_split(token.children or [], signs)))))
            else:
                token.content = signs.sub("", token.content)

    return render_markdown(_with_signs(text, statements, opener, closer), mark_statements, keep_lines=True)


def plain_report(text: str, statements: Sequence[MarkedSpan]) -> str:
    """Return the report as unformatted HTML with marked statements, for reports that ``report_html`` refuses."""
    parts: list[str] = []
    at = 0
    for number, each in enumerate(statements):
        if each.start < at:
            continue
        parts.append(html.escape(without_product_marks(text[at : each.start])))
        inner = html.escape(without_product_marks(text[each.start : each.end]))
        parts.append(f'<span data-statement="{number}">{inner}</span><span data-end="{number}"></span>')
        at = each.end
    return f'<pre class="plain">{"".join(parts)}{html.escape(without_product_marks(text[at:]))}</pre>'


def decorated(report: str, classes: Sequence[str], buttons: Sequence[str]) -> str:
    """Add the class of each statement to its spans, and put its button (trusted HTML) behind its first part."""
    left = dict(enumerate(buttons))
    report = _TEXT.sub(lambda match: f'{match[0][:-1]} class="{classes[int(match[1])]}">', report)
    return _END.sub(lambda match: left.pop(int(match[1]), ""), report)


def _with_signs(text: str, statements: Sequence[MarkedSpan], opener: str, closer: str) -> str:
    parts: list[str] = []
    at = 0
    for number, each in enumerate(statements):
        for start, end in _cells(text, each) if each.is_row else [(each.start, each.end)]:
            line_start = text.rfind("\n", max(0, start - 200), start) + 1
            before = _BLOCK_START.match(text, line_start, end)
            start = max(start, before.end()) if before is not None and line_start <= start else start
            if at <= start < end:
                parts += (text[at:start], opener, str(number), opener, text[start:end], closer)
                at = end
    return "".join([*parts, text[at:]])


def _cells(text: str, row: MarkedSpan) -> Iterator[tuple[int, int]]:
    for cell in _CELL.finditer(text, row.start, row.end):
        content = cell[0]
        if content.strip():
            yield cell.start() + len(content) - len(content.lstrip()), cell.start() + len(content.rstrip())


def _split(tokens: Iterable[Token], signs: re.Pattern[str]) -> Iterator[Token]:
    """Replace the inserted characters in text by ``statement_open`` and ``statement_close``; remove all others."""
    for token in tokens:
        if token.type != "text":
            token.content = signs.sub("", token.content)
            token.attrs = {
                name: signs.sub("", value) if isinstance(value, str) else value for name, value in token.attrs.items()
            }
            yield token
            continue
        at = 0
        for match in signs.finditer(token.content):
            if match.start() > at:
                yield plain_text(token.content[at : match.start()])
            kind = "statement_open" if match[1] else "statement_close"
            yield Token(kind, "", 0, meta={"number": int(match[1] or 0)})
            at = match.end()
        if at < len(token.content):
            yield plain_text(token.content[at:])


def _elements(tokens: Iterable[Token]) -> Iterator[Token]:
    """Put a span around each text of a statement, so that spans never overlap emphasis and links."""
    number: int | None = None
    ended: list[int] = []
    depth = 0
    for token in tokens:
        depth += token.nesting
        if token.type == "statement_open":
            number = int(token.meta["number"])
        elif token.type == "statement_close":
            ended += [] if number is None else [number]
            number = None
        elif number is not None and token.type in {"text", "code_inline"}:
            yield Token("statement_text_open", "span", 1, attrs={"data-statement": str(number)})
            yield token
            yield Token("statement_text_close", "span", -1)
        else:
            yield token
        if depth == 0:
            yield from _ends(ended)
            ended = []
    yield from _ends(ended + ([] if number is None else [number]))


def _ends(numbers: Iterable[int]) -> Iterator[Token]:
    for number in numbers:
        yield Token("statement_end_open", "span", 1, attrs={"data-end": str(number)})
        yield Token("statement_end_close", "span", -1)


def main() -> None:
    """Render the report on stdin to stdout, both as JSON: ``[text, [[start, end, is_row], ...]]``."""
    answer_child(lambda value: report_html(value[0], [MarkedSpan(*each) for each in value[1]]))
