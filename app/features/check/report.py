"""Document of a finished citation check, as returned by the API and read by the views.

All offsets are characters of ``report.text``, except those of quotes, which are characters of the text of the page.
Sources, statements and citations refer to each other by index. Figures exclude everything that could not be judged.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION: Final = 1
SCHEMA_PATH: Final = "/v1/schema/check.json"


class StatementOutcome(StrEnum):
    """Outcome of a statement of the report."""

    SUPPORTED = "supported"
    """Each of its claims is supported by one of its sources."""
    PARTLY_SUPPORTED = "partly_supported"
    """Its sources support a part of it. ``unsupported`` marks the other words."""
    CONTRADICTED = "contradicted"
    """A source states the opposite of a claim that no other source supports."""
    NOT_SUPPORTED = "not_supported"
    UNREADABLE = "unreadable"
    """Not judged: a source that could change the outcome could not be read (wall, failure, no URL)."""
    DEAD = "dead"
    """All of its sources are gone. If the archive has copies, the verdicts are about these."""
    UNCITED = "uncited"
    """It states a fact and has no source."""
    NOT_JUDGED = "not_judged"
    """The model did not answer, or the budget was spent."""


class ClaimOutcome(StrEnum):
    """Verdict on one claim and one source."""

    SUPPORTED = "supported"
    PARTLY_SUPPORTED = "partly_supported"
    CONTRADICTED = "contradicted"
    NOT_SUPPORTED = "not_supported"
    UNREADABLE = "unreadable"
    DEAD = "dead"
    NOT_JUDGED = "not_judged"


class StatementKind(StrEnum):
    """Form of a statement in the report."""

    SENTENCE = "sentence"
    HEADING = "heading"
    TABLE_ROW = "table_row"


class SourceState(StrEnum):
    """State of a source."""

    READABLE = "readable"
    UNREADABLE = "unreadable"
    """The page could not be captured, or its content is behind a wall."""
    DEAD = "dead"
    """The page is gone: HTTP 404 or 410, or the host does not exist. ``archived_url`` is its copy, if there is one."""
    FABRICATED = "fabricated"
    """The page is gone, and the archive answered that it has no copy: it probably never existed."""
    NO_URL = "no_url"
    """The entry of the reference list has no URL."""
    TRUNCATED = "truncated"
    """The report contains only the beginning of the URL, so no page was opened."""
    NOT_CHECKED = "not_checked"
    """The check stopped before it was captured."""


class CheckStatus(StrEnum):
    """Whether everything was judged."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    """Some claims could not be judged."""
    STOPPED = "stopped"
    """The budget was spent. Claims judged until then have their verdicts."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Span(_Part):
    """Part of the report: ``report.text[start:end]``."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)


class PageQuote(_Part):
    """Passage of a page that code found: ``[start:end]`` of its text, or 0 and 0 if ``origin`` is ``image``."""

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    origin: str = Field(default="text", description="`text`, or `image` if a model transcribed it from a screenshot")


class ClosestPassage(_Part):
    """Passage of a page that shares most words with a claim that the page does not support: ``[start:end]`` of its
    text. It shows a reader what the page says. The verdict does not rest on it."""

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    missing: list[str] = Field(description="Words, names and numbers of the claim, as written, that it lacks")


class MemberOutcome(_Part):
    """Verdict of one member of a jury on a claim and one of its sources."""

    model: str
    outcome: ClaimOutcome
    reason: str | None = None
    reasoning: str = ""


class ClaimVerdict(_Part):
    """Verdict on a claim and one of its sources."""

    source: int = Field(ge=0, description="Index in `sources`")
    outcome: ClaimOutcome
    reason: str | None = Field(default=None, description="Why it was not judged, or `source_gone`")
    reasoning: str = ""
    quotes: list[PageQuote] = Field(default_factory=list, description="Passages that support or contradict the claim")
    unsupported: list[Span] = Field(default_factory=list, description="Words of the report that the page lacks")
    closest: ClosestPassage | None = Field(
        default=None, description="Closest passage of a page that does not support the whole claim; null if it has none"
    )
    grounded: bool | None = Field(
        default=None, description="Whether code found a quote in the page; null if the outcome needs none"
    )
    signals: list[str] = Field(default_factory=list, description="Warnings about the page, for example hidden text")
    model: str | None = None
    prompt: str | None = Field(default=None, description="`id@version` of the prompt; null if no model was asked")
    baseline: bool = Field(default=False, description="Judged by comparing words, without a model")
    cached: bool = Field(default=False, description="The reply came from the reply cache")
    jury: list[MemberOutcome] = Field(default_factory=list, description="Verdicts of the members if a jury decided")


class ReportClaim(_Part):
    """Claim that a statement was split into. ``spans`` are its words in the report, in text order."""

    text: str
    spans: list[Span]
    verdicts: list[ClaimVerdict] = Field(default_factory=list, description="One per source")


class ReportCitation(_Part):
    """Citation mark of a statement and one source."""

    mark: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    source: int | None = Field(description="Index in `sources`; null if the mark refers to nothing in the report")
    page: str = Field(default="", description="Page of a document that the mark names, such as `15` or `3-4`")
    supports: bool | None = Field(
        description="Whether the source supports the whole statement; null if that was not judged"
    )
    contributes: bool | None = Field(
        description="Whether the source supports a part of the statement; null if that was not judged"
    )


class Statement(_Part):
    """Sentence, heading or table row that has a citation or states a fact."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str
    kind: StatementKind
    factual: bool = Field(description="Whether it states something that needs a source")
    outcome: StatementOutcome
    reason: str | None = Field(default=None, description="Why it was not judged, or why it counts as uncited")
    unsupported: list[Span] = Field(default_factory=list, description="Words that no source supports")
    claims: list[ReportClaim] = Field(default_factory=list)
    citations: list[ReportCitation] = Field(default_factory=list)


class CapturedPage(_Part):
    """Capture that a source was judged on. Bodies are in the blob store, by SHA-256."""

    page_id: str
    url: str
    final_url: str | None = None
    title: str = ""
    kind: str = "web"
    outcome: str
    http_status: int | None = None
    detail: str = ""
    captured_at: datetime
    sha256: str | None = Field(default=None, description="Hash of the page text")
    bodies: dict[str, str] = Field(
        default_factory=dict, description="SHA-256 by name: `text`, `screenshot-0` (JPEG) ..., `places`, `pdf`"
    )
    source: str = Field(default="web", description="`web`, `wayback`, `upload` or `import`")


class ReportSource(_Part):
    """Source of the report: entry of a reference list, or other URL. All of them are opened."""

    url: str | None
    title: str = ""
    state: SourceState
    reason: str | None = Field(default=None, description="Why it is not readable: outcome of the capture")
    detail: str = ""
    marks: int = Field(default=0, ge=0, description="Number of bound marks; 0 if it is not bound to a statement")
    page: CapturedPage | None = None
    archived_url: str | None = Field(
        default=None, description="Copy in the web archive on which the claims were judged"
    )


class FigureInterval(_Part):
    """Confidence interval at 95 %."""

    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)
    method: str


class Figure(_Part):
    """Share of a population.

    ``value`` is ``count / judged``. ``low`` and ``high`` are the shares if everything that was not judged counted
    against it or for it.
    """

    value: float | None = Field(ge=0, le=1, description="null if nothing was judged")
    count: int = Field(ge=0)
    judged: int = Field(ge=0)
    not_judged: int = Field(default=0, ge=0)
    low: float = Field(default=0, ge=0, le=1)
    high: float = Field(default=1, ge=0, le=1)
    interval: FigureInterval | None = None
    of: str = Field(default="", description="What the population consists of, such as `sources`")
    definition: str
    reference: str | None = Field(default=None, description="Publication that the definition comes from")


class Figures(_Part):
    """Figures of a check. The names of the first four contain the publication that defines them."""

    citation_precision_liu2023: Figure
    citation_recall_liu2023: Figure
    citation_precision_alce: Figure
    citation_recall_alce: Figure
    unreadable: Figure
    dead: Figure
    fabricated: Figure
    uncited: Figure


class CheckUsage(_Part):
    """Model requests of a check."""

    calls: int = 0
    cached_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = Field(default=0.0, description="null if the price of the model is unknown")


class CheckBudget(_Part):
    """Budget of a check. ``limit_usd`` is null without a limit."""

    limit_usd: float | None = None
    exhausted: bool = False


class CheckedReport(_Part):
    """The report as it was checked."""

    name: str = Field(description="File name or URL")
    url: str | None = Field(default=None, description="Address of a published report")
    text: str
    sha256: str = Field(description="SHA-256 of the text in UTF-8")
    page_id: str | None = Field(default=None, description="Capture of a published report")


class CheckDocument(_Part):
    """Finished citation check of one report."""

    schema_version: int = SCHEMA_VERSION
    id: str | None = Field(default=None, description="Id of the check; null for `assay check` without a server")
    status: CheckStatus
    baseline: bool = Field(
        description="Judged by the lexical judge, which compares words and does not understand meaning"
    )
    notice: str | None = Field(default=None, description="What a reader must know about a baseline")
    model: str
    prompts: list[str] = Field(default_factory=list, description="`id@version` of each prompt that was sent")
    created_at: datetime
    tool_version: str
    report: CheckedReport
    statements: list[Statement]
    sources: list[ReportSource]
    sentences: int = Field(ge=0, description="All sentences, headings and table rows outside of reference lists")
    counts: dict[StatementOutcome, int] = Field(description="Number of statements by outcome")
    figures: Figures
    not_judged: dict[str, int] = Field(
        default_factory=dict, description="Number of verdicts that are missing, by reason"
    )
    usage: CheckUsage = CheckUsage()
    budget: CheckBudget = CheckBudget()
    warnings: list[str] = Field(default_factory=list, description="For example that the report has no citations")


def document_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_PATH,
        **CheckDocument.model_json_schema(mode="serialization"),
    }
