# ruff: noqa: RUF001 - punctuation of other scripts
"""Statements that each citation mark supports, from the structure of the report.

A mark supports the sentence that contains it. A line without a statement of its own, such as ``Source: URL``, supports
the nearest statements without a mark: the list item that contains it, or the list, table, paragraphs or section above
it; if there are none, those below it. A list of sources that no mark refers to is such a line for its section.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from answers.binding.layout import SOURCE_LABEL, Line, LineKind, is_delimiter
from answers.binding.marks import LINK, MARKS, NUMBER, URL
from answers.binding.references import FoundMark
from answers.binding.sentences import Span
from answers.citations import HTML_TAG

_MAX_SOURCES = 8
"""A longer list of sources is a bibliography of the report."""
_MAX_GROUP = 60
"""Most statements that share sources."""
_LABEL_WORDS = re.compile(
    r"(?:[\W\d_]|(?<![^\W_])(?:sources?|see(?: also)?|via|from|references?|refs?|citations?|links?|urls?|and|quellen?"
    r"|und|fuentes?|y|et)(?![^\W_])"
    r"|来源|來源|出处|出典|参考|引用|资料|参见|见|和)*",
    re.I,
)
_SOURCE_LINE = re.compile(
    rf"(?:{SOURCE_LABEL.pattern}).*[{MARKS}](?!.*?(?:[.!?。！？]\W*(?:\w+\W+){{3}}|(?:\w+\W+){{9}}))[^{MARKS}]*",
    re.I | re.S,
)
"""Line of sources. At most a remark, such as the date of access, is behind the last mark."""
_TITLE_WORD = r"[^\s.!?。！？:：\d|]+"
_TITLE = re.compile(
    rf"[^\n]{{0,160}}[:：]\W*|[*_#\s]*{_TITLE_WORD}(?: {_TITLE_WORD}){{0,7}}\s*"
    r"|(?:\*\*|__)(?:[^*_\n]{1,80}(?<![.!?。！？])|[^\s*_]+(?: [^\s*_]+){0,3})(?:\*\*|__)"
)
_LIST, _ITEM = -1, -2


@dataclass(slots=True, eq=False)
class Statement:
    """Sentence, heading or table row. ``lead`` is the title of its list, or the item that contains it."""

    span: Span
    kind: LineKind
    lead: Span | None = None
    is_title: bool = False
    """Whether it supports nothing if its group has other statements."""
    is_cited: bool = False
    """Whether it contains a mark with a source."""


@dataclass(slots=True, eq=False)
class _Frame:
    """Section, list or list item that is being read."""

    level: Final[int]
    """Level of the heading, ``_LIST`` or ``_ITEM``."""
    indent: Final[int] = 0
    owner: list[Statement] = field(default_factory=list)
    """Statements without a mark in the first lines of the item."""
    open: list[Statement] = field(default_factory=list)
    """Statements without a source below them so far."""
    below: list[Statement] = field(default_factory=list)
    """Those of subsections."""
    last: list[Statement] = field(default_factory=list)
    """The last statement, or those of the last source."""
    sources: list[int] = field(default_factory=list)
    """Marks for statements that no other source follows."""
    begins_with_source: bool = False
    title: Span | None = None


class Scopes:
    """Reads the blocks of a report in order. ``of_mark`` has the statements of each mark."""

    def __init__(self, text: str, marks: Sequence[FoundMark]) -> None:
        self._text = text
        self._marks = marks
        self.statements: list[Statement] = []
        self.of_mark: list[list[Statement]] = [[] for _ in marks]
        self._frames = [_Frame(0)]
        self._before: Statement | None = None
        self._paragraph: list[Statement] = []
        """Statements of the last block, if it is a paragraph."""
        self._lead: Sequence[int] = ()
        """Marks of the last block, if it introduces a list."""
        self._levels: list[int] = []
        self._has_closed = False

    def read(self, block: Line, spans: Sequence[Span], marks: Sequence[int]) -> None:
        """Read a block with its sentences and the indices of its marks."""
        if block.kind is LineKind.HEADING:
            if _SOURCE_LINE.fullmatch(self._text, block.start, block.end):
                self.read_list(block, marks, is_only=False)
                return
            self._close(block.level)
            self._frames.append(_Frame(block.level))
            self._levels.append(block.level)
        frame = self._place(block)
        if block.kind is not LineKind.HEADING and self._is_source(block, has_marks=bool(marks)):
            if marks:
                self._bind(marks, block)
            return
        own: list[Statement] = []
        free: list[Statement] = []
        at = 0
        for span in spans:
            first = at
            while at < len(marks) and self._marks[marks[at]].start < span[1]:
                at += 1
            inside = marks[first:at]
            statement = Statement(span, block.kind, frame.title, self._is_title(span))
            targets = [statement]
            if inside and self._before is not None and self._is_only_marks(block, span):
                targets = free if free and SOURCE_LABEL.match(self._text, *span) else [self._before]
                own += targets
                free = [each for each in free if each not in targets]
            else:
                self.statements.append(statement)
                statement.is_cited = any(any(self._marks[mark].targets) for mark in inside)
                (own if statement.is_cited else free).append(statement)
                self._before = statement if block.kind is not LineKind.HEADING else self._before
            self._support(inside, targets)
        self._add(block, frame, own, free, marks)

    def _add(
        self, block: Line, frame: _Frame, own: list[Statement], free: list[Statement], marks: Sequence[int]
    ) -> None:
        """Record the statements of a block for the sources that follow."""
        found = sorted(own + free, key=lambda each: each.span)
        gives = marks if own and (found[-1].is_title or self._is_empty(found[-1].span)) else ()
        self._paragraph, self._lead = [], ()
        for each in found[1:] if found[0].is_title else ():
            each.lead = found[0].span
        if block.kind is LineKind.HEADING:
            frame.sources += gives
        elif block.kind is LineKind.ITEM:
            frame.last = found
            item = _Frame(_ITEM, block.indent, free, last=found, sources=[*gives], title=found[0].span)
            self._frames.append(item)
        elif is_delimiter(self._text, block.start, block.end):
            del frame.open[-1:]  # the titles of the columns
        else:
            if block.kind is LineKind.TEXT:
                titles = [each.span for each in found if each.is_title]
                if frame.level >= 0:
                    frame.title = titles[0] if titles else None
                if own:
                    frame.open, free = [], []
                self._paragraph, self._lead = free, gives
            frame.open += free
            frame.last = found[-1:]

    def read_list(self, title: Line, marks: Sequence[int], *, is_only: bool) -> None:
        """Read a list of sources that no mark refers to.

        ``is_only``: no other part of the report has such a list, and the report ends with it.
        """
        if title.kind is LineKind.HEADING:
            self._close(title.level)
            frame = self._frames[-1]
            is_part = self._levels.count(frame.level) > 1 or (frame.level > 1 and not frame.below)
            frame.open += frame.below
        else:
            frame = self._place(title)
            is_part = not (is_only and self._has_closed)
        is_part = is_part and (frame.level < 0 or bool(frame.open) or not frame.last)
        if is_part and len(marks) <= _MAX_SOURCES:
            self._bind(marks, title)

    def close(self) -> None:
        """End the report."""
        self._close(1)
        self._support(self._frames[0].sources, self._frames[0].open)

    def _place(self, block: Line) -> _Frame:
        """Close the lists and items that do not contain a block, and return the frame that does."""
        while (top := self._frames[-1]).level < 0:
            is_next = top.level == _LIST and block.kind is LineKind.ITEM and block.indent > top.indent - 2
            if is_next or block.indent >= top.indent + 2:
                break
            self._pop()
        if block.kind is LineKind.ITEM and top.level != _LIST:
            self._frames.append(_Frame(_LIST, block.indent, sources=[*self._lead], title=top.title))
        return self._frames[-1]

    def _close(self, level: int) -> None:
        while self._frames[-1].level < 0 or self._frames[-1].level >= level:
            self._pop()

    def _pop(self) -> None:
        frame = self._frames.pop()
        parent = self._frames[-1]
        if frame.level == _ITEM and not frame.open:
            for each in frame.owner:
                each.is_title = False
        if frame.open:
            frame.open = [] if self._support(frame.sources, frame.open) else frame.open
        elif frame.begins_with_source and not frame.last:  # a list of sources only
            self._bind(frame.sources)
        rest = frame.owner + frame.open
        if frame.level > 0:
            parent.below += rest
            self._has_closed = self._has_closed or bool(rest)
        else:
            parent.open += rest
            parent.last = frame.last or parent.last

    def _bind(self, marks: Sequence[int], block: Line | None = None) -> None:
        """Bind sources that have no statement of their own."""
        frame = holder = self._frames[-1]
        if frame.level == _LIST and self._frames[-2].level == _ITEM:
            holder = self._frames[-2]
            holder.open, frame.open = holder.open + frame.open, []
            holder.last = frame.last or holder.last
        scope = holder.owner + holder.open
        if block is not None and block.kind is LineKind.TABLE:
            scope = [each for each in scope if each.kind is block.kind]
        is_near = holder.level == _ITEM
        if block is not None and not block.after_blank:
            is_text = block.kind is LineKind.TEXT
            scope = self._paragraph if is_text and self._paragraph else scope
            is_near |= is_text or SOURCE_LABEL.match(self._text, block.start, block.end) is not None
        # Statements with a source of their own have another one only in a line directly below them.
        last = [each for each in holder.last if is_near or not each.is_cited]
        targets = [each for each in scope if not each.is_title] or last
        if holder.last and not targets:
            return
        if holder.begins_with_source or not targets:
            self._support(holder.sources, holder.open)
            holder.sources = [*marks] if holder.open else [*holder.sources, *marks]
            holder.begins_with_source = True
        elif len(targets) <= _MAX_GROUP:
            self._support(marks, targets)
            if holder.level == _ITEM:  # also for the details below
                holder.sources = [*marks] if scope else [*holder.sources, *marks]
        holder.owner, holder.open, holder.last = [], [], targets

    def _support(self, marks: Iterable[int], statements: Sequence[Statement]) -> bool:
        for mark in marks:
            self.of_mark[mark] += [each for each in statements if each not in self.of_mark[mark]]
        return bool(marks)

    def _is_source(self, block: Line, *, has_marks: bool) -> bool:
        """Return whether a block names sources, and has no statement of its own."""
        span = (block.start, block.end)
        text = self._text[slice(*span)]
        if not has_marks:
            is_label = self._is_empty(span) and any(map(str.isalpha, text))
            return block.kind is not LineKind.TABLE and (is_label or SOURCE_LABEL.match(text) is not None)
        if block.kind is LineKind.TABLE:  # a row of sources
            return self._is_empty(span) and any(map(str.isalpha, re.split(f"[{MARKS}]", text, maxsplit=1)[0]))
        if _SOURCE_LINE.fullmatch(text):
            return True
        is_nested = block.kind is LineKind.TEXT or self._frames[-2].level == _ITEM
        return self._is_empty(span) and not set(text).isdisjoint(LINK + URL) and (is_nested or text[0] != LINK)

    def _is_only_marks(self, block: Line, span: Span) -> bool:
        """Return whether a sentence has only marks. An item of a list that is a link is a statement."""
        is_link = block.kind is LineKind.ITEM and span[0] == block.start and self._text[span[0]] != NUMBER
        return block.kind in {LineKind.TEXT, LineKind.ITEM} and (
            (self._is_empty(span) and not is_link) or _SOURCE_LINE.fullmatch(self._text, *span) is not None
        )

    def _is_empty(self, span: Span) -> bool:
        """Return whether a sentence has no words besides its marks."""
        return _LABEL_WORDS.fullmatch(HTML_TAG.sub("", self._text[slice(*span)])) is not None

    def _is_title(self, span: Span) -> bool:
        return _TITLE.fullmatch(HTML_TAG.sub("", self._text[slice(*span)])) is not None
