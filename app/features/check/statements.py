"""Statements of a report with their citations, grouped into sections for the model. Pure functions on a binding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from answers.binding import Binding, LineKind, Mark
from app.features.check.report import StatementKind

MAX_SECTION_CHARS: Final = 6_000
MAX_SECTION_STATEMENTS: Final = 40
_MAX_HEADING_CHARS: Final = 200
_MIN_WORDS: Final = 4

_KINDS: Final = {LineKind.HEADING: StatementKind.HEADING, LineKind.TABLE: StatementKind.TABLE_ROW}
_LABEL = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\([^)\n]*\)")
_ONLY_A_NUMBER = re.compile(r"[\W\d_]*")
_EMPTY_BRACKETS = re.compile(r" ?[(\[（【][\s,;.、，]*[)\]）】]")  # noqa: RUF001 - brackets of other scripts
_MARKUP = re.compile(r"\*\*|__|`|^[#>\s]+|<br ?/?>")
_BEFORE_STOP = re.compile(r" (?=[.,;:!?])")
_DELIMITER_ROW = re.compile(r"[\s|:-]+")
LABEL_LINE = re.compile(
    r"(?:[\s*_#]*[*_#]|[\s*_#]*+[^\s:：.]{1,30}(?: [^\s:：.]{1,30}){0,3}[*_]*)[:：][*_]*"  # noqa: RUF001
)
"""Title of a list, such as ``References:``."""
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE_END = re.compile(r";\s|,\s(?:and|but|while|whereas)\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStatement:
    """Sentence, heading or table row. ``plain`` is its text without marks and markup."""

    start: int
    end: int
    kind: StatementKind
    marks: tuple[Mark, ...]
    plain: str
    column_titles: str = ""
    """Titles of the columns, if it is a table row."""

    @property
    def sources(self) -> tuple[int, ...]:
        """Indices of its sources, without repetition, in text order."""
        return tuple(dict.fromkeys(mark.source for mark in self.marks if mark.source is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Statements below one heading, or a part of them if they are too long for one request."""

    context: str
    """Title of the report and the headings above the statements, one per line."""
    statements: tuple[ReportStatement, ...]


def sections_of(binding: Binding) -> list[Section]:
    """Return the statements of a report by section. Headings are statements only if they have a mark."""
    sections: list[Section] = []
    trail: list[tuple[int, str]] = []
    collected: list[ReportStatement] = []
    chars = 0

    def finish() -> None:
        nonlocal chars
        if collected:
            sections.append(Section(context="\n".join(title for _, title in trail), statements=tuple(collected)))
        collected.clear()
        chars = 0

    for statement in _statements(binding):
        if statement.kind is StatementKind.HEADING and not statement.marks:
            finish()
            level = _heading_level(binding.text, statement.start)
            trail = [title for title in trail if title[0] < level]
            trail.append((level, statement.plain[:_MAX_HEADING_CHARS]))
            continue
        size = statement.end - statement.start
        if chars + size > MAX_SECTION_CHARS or len(collected) == MAX_SECTION_STATEMENTS:
            finish()
        collected.append(statement)
        chars += size
    finish()
    return sections


def _statements(binding: Binding) -> Iterator[ReportStatement]:
    text = binding.text
    by_start: dict[int, list[Mark]] = {}
    inside: dict[int, list[Mark]] = {}
    starts = [sentence.start for sentence in binding.sentences]
    place = 0
    for mark in binding.marks:
        by_start.setdefault(mark.statement_start, []).append(mark)
        while place + 1 < len(starts) and starts[place + 1] <= mark.start:
            place += 1
        if starts:
            inside.setdefault(starts[place], []).append(mark)
    titles = ""
    previous_end = -1
    for index, sentence in enumerate(binding.sentences):
        marks = tuple(by_start.get(sentence.start, ()))
        is_row = sentence.kind is LineKind.TABLE
        if is_row:
            row = text[sentence.start : sentence.end]
            if _DELIMITER_ROW.fullmatch(row):
                previous_end = sentence.end
                continue
            following = binding.sentences[index + 1] if index + 1 < len(binding.sentences) else None
            is_header = following is not None and _DELIMITER_ROW.fullmatch(text[following.start : following.end])
            if is_header and not marks:
                titles, previous_end = _plain_row(row), sentence.end
                continue
            if text.count("\n", previous_end, sentence.start) > 1:
                titles = ""
            previous_end = sentence.end
        elif not marks and sentence.start in inside:
            continue  # a line that consists of marks
        elif not marks and LABEL_LINE.fullmatch(text, sentence.start, sentence.end):
            continue
        kind = _KINDS.get(sentence.kind, StatementKind.SENTENCE)
        plain = plain_text(text, sentence.start, sentence.end, [*inside.get(sentence.start, ()), *marks])
        yield ReportStatement(
            start=sentence.start,
            end=sentence.end,
            kind=kind,
            marks=marks,
            plain=_plain_row(plain) if is_row else plain,
            column_titles=titles if is_row else "",
        )


def _heading_level(text: str, start: int) -> int:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line.count("#") or 1


def _plain_row(row: str) -> str:
    return ", ".join(cell for each in row.split("|") if (cell := each.strip()))


def plain_text(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    """Return a statement on one line without its marks. Labels of links stay, unless they are numbers or bracketed."""
    pieces: list[str] = []
    at = start
    within = sorted({(mark.start, mark.end) for mark in marks if start <= mark.start < end}) if marks else ()
    for mark_start, mark_end in within:
        if mark_start < at:
            continue
        pieces.append(text[at:mark_start])
        link = _LABEL.fullmatch(text, mark_start, mark_end)
        before = text[max(start, mark_start - 1) : mark_start]
        if link is not None and before not in {"(", "（"} and not _ONLY_A_NUMBER.fullmatch(link["label"]):  # noqa: RUF001
            pieces.append(link["label"])
        at = min(mark_end, end)
    pieces.append(text[at:end])
    plain = " ".join("".join(pieces).split())  # the patterns are quadratic in white space
    plain = _MARKUP.sub("", _EMPTY_BRACKETS.sub("", plain))
    return _BEFORE_STOP.sub("", " ".join(plain.split()))


def looks_factual(statement: ReportStatement) -> bool:
    """Return whether a statement probably states a fact that needs a source. Used without a model."""
    plain = statement.plain
    if statement.kind is StatementKind.HEADING or plain.endswith(("?", ":", "？", "：")):  # noqa: RUF001
        return False
    has_digit = any(map(str.isdigit, plain))
    if _CJK.search(plain):
        return has_digit
    words = _WORD.findall(plain)
    if len(words) < _MIN_WORDS and statement.kind is not StatementKind.TABLE_ROW:
        return False
    return has_digit or any(word[0].isupper() and len(word) > 1 for word in words[1:])


def clauses(statement: ReportStatement, text: str) -> list[tuple[str, int, int]]:
    """Divide a statement at semicolons and at ``, and``: (plain text, start, end) of each clause.

    Used without a model. Clauses of fewer than three words are not separate.
    """
    if statement.kind is not StatementKind.SENTENCE:
        return [(statement.plain, statement.start, statement.end)]
    spans: list[tuple[int, int]] = []
    start = statement.start
    for end in _CLAUSE_END.finditer(text, statement.start, statement.end):
        spans.append((start, end.start()))
        start = end.end()
    if not spans:
        return [(statement.plain, statement.start, statement.end)]
    spans.append((start, statement.end))
    parts = [(plain_text(text, *span, statement.marks), *span) for span in spans]
    if any(len(_WORD.findall(plain)) < _MIN_WORDS - 1 for plain, _, _ in parts):
        return [(statement.plain, statement.start, statement.end)]
    return parts
