"""Division of statements into claims: one model request per section, and by rules without a model.

Code checks the reply. A claim must quote its statement, and its numbers must occur in the section. Otherwise the
statement is one claim.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, Field

from app.features.check.report import Span
from app.features.check.statements import MAX_SECTION_CHARS, ReportStatement, Section, clauses, looks_factual
from judges.errors import LLMError
from judges.llm.client import LLMClient, LLMRequest
from judges.prompting.blocks import BlockBuilder
from judges.prompting.rendering import render_texts

log = logging.getLogger(__name__)

MAX_CLAIMS_PER_STATEMENT: Final = 12
MAX_CLAIM_CHARS: Final = 1_000
MAX_QUOTED_CHARS: Final = 4 * MAX_SECTION_CHARS
"""Maximum length of all quotes of a reply. Each quote is searched for with a pattern."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


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
        Claim(text=plain[:MAX_CLAIM_CHARS], spans=(Span(start=start, end=end),))
        for plain, start, end in clauses(statement, text)
    )
    return ClaimedStatement(
        statement=statement, claims=claims, factual=bool(statement.marks) or looks_factual(statement), by_rules=True
    )


def _whole(statement: ReportStatement, *, factual: bool) -> ClaimedStatement:
    claim = Claim(text=statement.plain[:MAX_CLAIM_CHARS], spans=(Span(start=statement.start, end=statement.end),))
    return ClaimedStatement(statement=statement, claims=(claim,), factual=factual, by_rules=True)


def split_request(section: Section, model: str, block_builder: BlockBuilder) -> LLMRequest:
    """Return the request that divides the statements of a section."""
    texts = [("context", section.context), ("statements", _numbered(section))]
    return render_texts("split_claims", texts, block_builder).request(model, SplitReply, purpose="extract")


def _numbered(section: Section) -> str:
    lines = []
    for number, statement in enumerate(section.statements, start=1):
        titles = f" (columns: {statement.column_titles})" if statement.column_titles else ""
        lines.append(f"{number}. {statement.plain}{titles}")
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


_MAX_PIECES: Final = 400
_GAP: Final = r"(?>[\s*_`|]|\[[^\[\]\n]{0,40}\])+"


def statements_in_order(parts: Sequence[Sequence[ClaimedStatement]]) -> list[ClaimedStatement]:
    """Return the statements of all sections that have a source or state a fact."""
    return [one for part in parts for one in part if one.statement.marks or one.factual]
