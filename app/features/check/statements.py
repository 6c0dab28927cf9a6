"""Statements of a report with their citations, and their claims.

Statements are grouped into sections. A model divides the statements of a section with one request; without a model,
rules do. Code checks the reply: a claim must quote its statement, and its numbers must occur in the section. Otherwise
the statement is one claim.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, Field

from answers.binding import LABELLED, Binding, LineKind, Mark, without_product_marks
from app.features.check.report import Span, StatementKind
from judges.errors import LLMError
from judges.llm.client import LLMClient, LLMRequest
from judges.prompting.blocks import BlockBuilder
from judges.prompting.rendering import render_texts

log = logging.getLogger(__name__)

MAX_SECTION_CHARS: Final = 6_000
MAX_SECTION_STATEMENTS: Final = 40
_MAX_HEADING_CHARS: Final = 200
_MIN_WORDS: Final = 4

_KINDS: Final = {LineKind.HEADING: StatementKind.HEADING, LineKind.TABLE: StatementKind.TABLE_ROW}
_SENTENCE = re.compile(r"[.!?。！？…][\W_]*\Z|(?:\S+ ){6}")  # noqa: RUF001
"""Statement that is not only a value."""
_LABEL = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\([^)\n]*\)")
_ONLY_A_NUMBER = re.compile(r"[\W\d_]*")
_EMPTY_BRACKETS = re.compile(r" ?[(\[（【][\s,;.、，]*[)\]）】]")  # noqa: RUF001 - brackets of other scripts
_MARKUP = re.compile(r"\*\*|__|`|^[#>\s]+|</?[A-Za-z][^<>\n]{0,80}>")
_BEFORE_STOP = re.compile(r" (?=[.,;:!?])")
_DELIMITER_ROW = re.compile(r"[\s|:-]+")
LABEL_LINE = re.compile(
    r"(?:[\s*_#]*[*_#]|[\s*_#]*+[^\s:：.]{1,30}(?: [^\s:：.]{1,30}){0,3}[*_]*)[:：][*_]*"  # noqa: RUF001
)
"""Title of a list, such as ``References:``."""
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE_END = re.compile(r";\s|,\s(?:and|but|while|whereas)\s")
MAX_CLAIMS_PER_STATEMENT: Final = 12
MAX_CLAIM_CHARS: Final = 1_000
MAX_QUOTED_CHARS: Final = 4 * MAX_SECTION_CHARS
"""Maximum length of all quotes of a reply. Each quote is searched for with a pattern."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MAX_PIECES: Final = 400
_GAP: Final = r"(?>[\s*_`|]|\[[^\[\]\n]{0,40}\])+"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStatement:
    """Sentence, heading or table row. ``plain`` is its text without marks and markup."""

    start: int
    end: int
    kind: StatementKind
    marks: tuple[Mark, ...]
    plain: str
    context: str = ""
    """Titles of the columns, or the title of the list: ``columns: Name, Height`` or ``under: Eiffel Tower``."""
    subject: str = ""
    """What a statement such as ``Height: 330 m`` is about: the title of its list, the heading, or both."""

    def claim(self, plain: str) -> str:
        """Return a part of the statement as a claim that can be understood without the report."""
        return (f"{self.subject}: {plain}" if self.subject else plain)[:MAX_CLAIM_CHARS]

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
            line = binding.text[binding.text.rfind("\n", 0, statement.start) + 1 : statement.start]
            level = line.count("#") or 1
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
        if starts and mark.start < binding.sentences[place].end:
            inside.setdefault(starts[place], []).append(mark)
    titles = heading = ""
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
        lead = "" if sentence.lead is None else plain_text(text, *sentence.lead, ()).rstrip(" :：")  # noqa: RUF001
        context = f"columns: {titles}" if is_row and titles else f"under: {lead[:_MAX_HEADING_CHARS]}" if lead else ""
        if kind is StatementKind.HEADING:
            heading = plain
        yield ReportStatement(
            start=sentence.start,
            end=sentence.end,
            kind=kind,
            marks=marks,
            plain=_plain_row(plain) if is_row else plain,
            context=context,
            subject="" if is_row else _subject(plain, lead, heading)[:_MAX_HEADING_CHARS],
        )


def _subject(plain: str, lead: str, heading: str) -> str:
    """Return what a statement is about, if it is a value with a label, or a value below its label."""
    if LABELLED.match(plain):
        return lead or heading
    return ": ".join(filter(None, (heading, lead))) if lead and not _SENTENCE.search(plain) else ""


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
    plain = " ".join(without_product_marks("".join(pieces)).split())  # the patterns are quadratic in white space
    plain = _MARKUP.sub("", _EMPTY_BRACKETS.sub("", plain))
    return _BEFORE_STOP.sub("", " ".join(plain.split()))


def readable_mark(mark: str) -> str:
    """Return a citation mark without private-use characters."""
    return without_product_marks(mark) or "internal mark of a product"


def looks_factual(statement: ReportStatement) -> bool:
    """Return whether a statement probably states a fact that needs a source. Used without a model."""
    plain = statement.plain
    if statement.kind is StatementKind.HEADING or plain.endswith(("?", ":", "？", "：")):  # noqa: RUF001
        return False
    has_digit = any(map(str.isdigit, plain))
    if _CJK.search(plain):
        return has_digit
    words = _WORD.findall(plain)
    if has_digit and LABELLED.match(plain):
        return True
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


class SplitClaim(BaseModel):
    claim: str
    quotes: list[str] = Field(default_factory=list)


class SplitStatement(BaseModel):
    number: int
    claims: list[SplitClaim] = Field(default_factory=list)


class SplitReply(BaseModel):
    """Reply to the prompt ``split_claims``."""

    statements: list[SplitStatement] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Claim of a statement. ``spans`` are its words in the report."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedStatement:
    """Statement with its claims. ``factual`` is whether it states something that needs a source."""

    statement: ReportStatement
    claims: tuple[Claim, ...]
    factual: bool
    by_rules: bool = False
    """Whether it was divided without a model, or because the reply of the model was not usable."""


def split_by_rules(section: Section, text: str) -> list[ClaimedStatement]:
    """Divide the statements of a section without a model."""
    return [_by_rules(statement, text) for statement in section.statements]


def _by_rules(statement: ReportStatement, text: str) -> ClaimedStatement:
    claims = tuple(
        Claim(text=statement.claim(plain), spans=(Span(start=start, end=end),))
        for plain, start, end in clauses(statement, text)
    )
    return ClaimedStatement(
        statement=statement, claims=claims, factual=bool(statement.marks) or looks_factual(statement), by_rules=True
    )


def _whole(statement: ReportStatement, *, factual: bool) -> ClaimedStatement:
    claim = Claim(text=statement.claim(statement.plain), spans=(Span(start=statement.start, end=statement.end),))
    return ClaimedStatement(statement=statement, claims=(claim,), factual=factual, by_rules=True)


def split_request(section: Section, model: str, block_builder: BlockBuilder) -> LLMRequest:
    """Return the request that divides the statements of a section."""
    texts = [("context", section.context), ("statements", _numbered(section))]
    return render_texts("split_claims", texts, block_builder).request(model, SplitReply, purpose="extract")


def _numbered(section: Section) -> str:
    lines = []
    for number, statement in enumerate(section.statements, start=1):
        lines.append(f"{number}. {statement.plain}" + (f" ({statement.context})" if statement.context else ""))
    return "\n".join(lines)


async def split_with_model(
    section: Section, text: str, llm: LLMClient, model: str, block_builder: BlockBuilder
) -> list[ClaimedStatement]:
    """Divide the statements of a section with one request. If it fails, divide them by rules."""
    try:
        reply = await llm.complete(split_request(section, model, block_builder))
    except LLMError as error:
        log.warning("statements not divided by the model", extra={"reason": error.reason, "error": str(error)})
        return split_by_rules(section, text)
    parsed = reply.parsed
    if not isinstance(parsed, SplitReply):
        return split_by_rules(section, text)
    by_number = {one.number: one.claims for one in parsed.statements}
    return list(check_division(section, text, by_number))


def check_division(section: Section, text: str, by_number: dict[int, list[SplitClaim]]) -> Iterator[ClaimedStatement]:
    """Yield the statements of a section with the claims of a model's reply, which need not be usable."""
    shown = f"{section.context}\n{_numbered(section)}"
    known_numbers = set(_NUMBER.findall(shown))
    quoted = 0
    for number, statement in enumerate(section.statements, start=1):
        written = by_number.get(number)
        if written is None:
            yield _by_rules(statement, text)
            continue
        quoted += sum(len(quote) for one in written for quote in one.quotes)
        if quoted > MAX_QUOTED_CHARS:
            yield _whole(statement, factual=True)
            continue
        claims = [_claim(one, statement, text, known_numbers) for one in written[: MAX_CLAIMS_PER_STATEMENT + 1]]
        kept = [claim for claim in claims if claim is not None]
        if not written:
            # The model says that it states no fact. If it has a source, it is checked as it is.
            yield _whole(statement, factual=False)
        elif len(kept) < len(claims) or len(written) > MAX_CLAIMS_PER_STATEMENT:
            yield _whole(statement, factual=True)
        else:
            yield ClaimedStatement(statement=statement, claims=tuple(kept), factual=True)


def _claim(one: SplitClaim, statement: ReportStatement, text: str, known_numbers: set[str]) -> Claim | None:
    """Return a claim of the reply with its spans; None if it does not quote its statement or has other numbers."""
    words = " ".join(one.claim.split())
    if not words or len(words) > MAX_CLAIM_CHARS or not set(_NUMBER.findall(words)) <= known_numbers:
        return None
    spans = [find_words(text, quote, statement.start, statement.end) for quote in one.quotes if quote.strip()]
    if any(span is None for span in spans):
        return None
    found = tuple(sorted((span for span in spans if span is not None), key=lambda span: (span.start, span.end)))
    return Claim(text=words, spans=found or (Span(start=statement.start, end=statement.end),))


def find_words(text: str, words: str, start: int, end: int) -> Span | None:
    """Return the span of ``words`` within ``text[start:end]``, ignoring white space, marks in brackets and markup."""
    words = words.strip(" \t\r\n\"'“”.,;:|*_")
    at = text.find(words, start, end) if words else -1
    if at >= 0:
        return Span(start=at, end=at + len(words))
    pieces = words.split()
    if not pieces or len(pieces) > _MAX_PIECES:
        return None
    pattern = re.compile(_GAP.join(map(re.escape, pieces)))
    match = pattern.search(text, start, end)
    return None if match is None else Span(start=match.start(), end=match.end())


def statements_in_order(parts: Sequence[Sequence[ClaimedStatement]]) -> list[ClaimedStatement]:
    """Return the statements of all sections that have a source or state a fact."""
    return [one for part in parts for one in part if one.statement.marks or one.factual]
