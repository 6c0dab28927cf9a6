"""Reading view of a finished check: one HTML file without network access, also shown by the dashboard.

The report is on the left, with each statement in the colour of its outcome. The panel of a statement shows its claims,
the verdict on each source, the quotes in their context, and the part of the screenshot that shows them.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Final
from urllib.parse import urlsplit

from markupsafe import Markup
from PIL import Image

from answers.binding import without_product_marks
from app.dashboard.answer_renderer import SHORT_CHARS, run_in_child
from app.dashboard.leaf_view import Box, Places, places_of
from app.dashboard.passages import Passage, Piece, passages, pieces, text_fragment_url
from app.dashboard.rendering import Assets, create_environment
from app.dashboard.viewer import Viewer
from app.features.check import report_html
from app.features.check.report import (
    CapturedPage,
    CheckDocument,
    ClaimVerdict,
    ReportClaim,
    ReportSource,
    Statement,
    StatementKind,
    StatementOutcome,
)
from app.features.check.report_html import MarkedSpan, decorated, plain_report
from app.features.check.statements import readable_mark

ReadBody = Callable[[str], Awaitable[bytes | None]]
"""Returns the body with a SHA-256 from the blob store; None if it is missing."""

OUTCOMES: Final[Mapping[StatementOutcome, tuple[str, str, str]]] = {
    StatementOutcome.SUPPORTED: ("Supported", "passed", "Each claim is supported by a source."),
    StatementOutcome.PARTLY_SUPPORTED: ("Partly supported", "partial", "The sources support a part of it."),
    StatementOutcome.NOT_SUPPORTED: ("Not supported", "failed", "The sources do not contain it."),
    StatementOutcome.CONTRADICTED: ("Contradicted", "failed", "A source states the opposite."),
    StatementOutcome.DEAD: ("Source gone", "skipped", "The cited pages do not exist."),
    StatementOutcome.UNCITED: ("Uncited", "skipped", "It states a fact and cites no source."),
    StatementOutcome.UNREADABLE: ("Unreadable", "not_judged", "Not judged, because a source could not be read."),
    StatementOutcome.NOT_JUDGED: ("Not judged", "not_judged", "Not judged: no usable reply, or the budget is spent."),
}  # fmt: skip
"""Display name, icon and meaning of the outcomes, in the order of the legend."""

MAX_PICTURE_BYTES: Final = 12_000_000
"""Size of all pictures of a view, as base64. Verdicts beyond have no picture."""
_PICTURE_WIDTH_PX: Final = 760
_MARGIN: Final = 0.9
"""Height of the screenshot above and below a quote, as a share of the screenshot's width. About 12 lines of text."""
_UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Part of a screenshot as data URI, with the frames of the quotes as (x, y, width, height) in pixels."""

    src: str
    width: int
    height: int
    frames: Sequence[tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictView:
    """Verdict with its source, the quotes in their context, and links."""

    verdict: ClaimVerdict
    source: ReportSource
    passages: Sequence[Passage] = ()
    transcribed: Sequence[str] = ()
    """Quotes from screenshots, which have no position."""
    missing: Sequence[str] = ()
    """Quotes that the stored text does not contain at the recorded position."""
    picture: Picture | None = None
    page_number: str = ""
    """Page of a document that the mark names."""
    live: str | None = None
    """Address of the page with a text fragment, so that browsers scroll to the quote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """Claim with its verdicts. ``is_statement``: it is the whole statement, so its text is not repeated."""

    claim: ReportClaim
    is_statement: bool
    verdicts: Sequence[VerdictView]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Details of one statement. ``words`` are its text, with the unsupported words as quotes."""

    number: int
    statement: Statement
    words: Sequence[Piece]
    claims: Sequence[ClaimView]


async def render_view(
    document: CheckDocument, read: ReadBody, *, viewer: Viewer | None = None, nonce: str | None = None
) -> str:
    """Return the view of a check as an HTML document that needs no network.

    Args:
        document: The finished check.
        read: Reads page texts, screenshots and positions by their hash.
        viewer: Request of the dashboard, whose menu is shown, or None for a file.
        nonce: Value that the Content-Security-Policy allows for the style and the script; None: a new one.
    """
    marked = [MarkedSpan(each.start, each.end, each.kind is StatementKind.TABLE_ROW) for each in document.statements]
    report = await _report(document.report.text, marked)
    evidence = _Evidence(document.sources, read)
    panels = [await _panel(number, each, evidence) for number, each in enumerate(document.statements)]
    return await asyncio.to_thread(_render, document, report, panels, viewer, nonce or secrets.token_urlsafe(18))


async def _report(text: str, marked: Sequence[MarkedSpan]) -> str:
    if len(text) <= SHORT_CHARS:
        rendered = await asyncio.to_thread(report_html.report_html, text, marked)
    else:
        spans = [[each.start, each.end, each.is_row] for each in marked]
        rendered = await run_in_child(report_html.__name__, [text, spans])
    return plain_report(text, marked) if rendered is None else rendered


async def _panel(number: int, statement: Statement, evidence: _Evidence) -> Panel:
    spans = [(each.start - statement.start, each.end - statement.start) for each in statement.unsupported]
    page_numbers = {each.source: each.page for each in statement.citations}
    claims = []
    for claim in statement.claims:
        verdicts = [
            replace(await evidence.verdict(each), page_number=page_numbers.get(each.source, ""))
            for each in claim.verdicts
        ]
        claims.append(ClaimView(claim=claim, is_statement=len(statement.claims) == 1, verdicts=verdicts))
    words = [replace(each, text=without_product_marks(each.text)) for each in pieces(statement.text, spans)]
    return Panel(number=number, statement=statement, words=words, claims=claims)


@dataclass(slots=True)
class _Evidence:
    """Reads the bodies of pages, each text once, and cuts pictures from screenshots."""

    sources: Sequence[ReportSource]
    read: ReadBody
    picture_bytes: int = 0
    _texts: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    async def verdict(self, verdict: ClaimVerdict) -> VerdictView:
        source = self.sources[verdict.source]
        page = source.page
        if page is None or not verdict.quotes:
            return VerdictView(verdict=verdict, source=source, live=_web_url(source.url))
        text, places = await self._text(page)
        in_text = [each for each in verdict.quotes if each.origin == "text"]
        found = [each for each in in_text if text[each.start : each.end] == each.text]
        spans = [(each.start, each.end) for each in found]
        url = _web_url(page.final_url or page.url)
        return VerdictView(
            verdict=verdict,
            source=source,
            passages=passages(text, spans, context_chars=220),
            transcribed=[each.text for each in verdict.quotes if each.origin != "text"],
            missing=[each.text for each in in_text if each not in found],
            picture=await self._picture(page, places_of(places, spans)) if spans else None,
            live=text_fragment_url(url, found[0].text) if url and found and page.kind == "web" else url,
        )

    async def _text(self, page: CapturedPage) -> tuple[str, Mapping[str, Any]]:
        if page.page_id not in self._texts:
            text = await self._body(page, "text")
            places = await self._body(page, "places")
            self._texts[page.page_id] = (
                (text or b"").decode("utf-8", "replace"),
                json.loads(places) if places is not None else {},
            )
        return self._texts[page.page_id]

    async def _body(self, page: CapturedPage, name: str) -> bytes | None:
        digest = page.bodies.get(name)
        return None if digest is None else await self.read(digest)

    async def _picture(self, page: CapturedPage, places: Places) -> Picture | None:
        if places.top is None or self.picture_bytes > MAX_PICTURE_BYTES:
            return None
        screenshot = await self._body(page, f"screenshot-{places.top[0]}")
        if screenshot is None:
            return None
        picture = await asyncio.to_thread(_cut, screenshot, places, places.boxes[places.top[0]])
        self.picture_bytes += 0 if picture is None else len(picture.src)
        return picture


def _cut(screenshot: bytes, places: Places, boxes: Sequence[Box]) -> Picture | None:
    """Cut the part of a screenshot around the first box, and scale it down. None if it cannot be decoded."""
    made = io.BytesIO()
    try:
        with Image.open(io.BytesIO(screenshot)) as image:
            width, height = image.size
            margin = round(width * _MARGIN / 2)
            first = boxes[0]
            top = max(0, round(first.top * height / places.unit) - margin)
            bottom = min(height, round((first.top + first.height) * height / places.unit) + margin)
            scale = min(1.0, _PICTURE_WIDTH_PX / width)
            size = (max(1, round(width * scale)), max(1, round((bottom - top) * scale)))
            part = image.crop((0, top, width, max(bottom, top + 1))).convert("RGB")
            part.resize(size, Image.Resampling.LANCZOS).save(made, "JPEG", quality=72, optimize=True)
    except _UNREADABLE:
        return None
    frames = [
        (
            round(box.left * width / places.unit * scale) - 2,
            round((box.top * height / places.unit - top) * scale) - 2,
            round(box.width * width / places.unit * scale) + 4,
            round(box.height * height / places.unit * scale) + 4,
        )
        for box in boxes
        if top <= box.top * height / places.unit < bottom
    ]
    encoded = base64.b64encode(made.getvalue()).decode()
    return Picture(src=f"data:image/jpeg;base64,{encoded}", width=size[0], height=size[1], frames=frames)


def _web_url(url: str | None) -> str | None:
    """Return a URL if it may be a link."""
    try:
        return url if url is not None and urlsplit(url).scheme in {"http", "https"} else None
    except ValueError:
        return None


def _render(document: CheckDocument, report: str, panels: Sequence[Panel], viewer: Viewer | None, nonce: str) -> str:
    environment = create_environment(Assets(), ("app.features.check",))
    macros: Any = environment.get_template("check_parts.html").make_module({"outcomes": OUTCOMES})
    buttons = [str(macros.statement_button(panel)) for panel in panels]
    classes = [f"o-{panel.statement.outcome}" for panel in panels]
    return environment.get_template("check_view.html").render(
        check=document,
        outcomes=OUTCOMES,
        shares=_shares(document),
        panels=panels,
        report=Markup(decorated(report, classes, buttons)),  # noqa: S704 - sanitized by ``render_markdown`` or escaped
        unbound=[
            (panel, readable_mark(each.mark))
            for panel in panels
            for each in panel.statement.citations
            if each.source is None
        ],
        unused=[each for each in document.sources if not each.marks],
        viewer=viewer,
        here="checks",
        nonce=nonce,
        style=Markup(_asset("app.dashboard", "style.css") + _asset(__package__, "check.css")),  # noqa: S704 - our files
        script=Markup(_asset(__package__, "check.js")),  # noqa: S704 - our file
    )


def _shares(document: CheckDocument) -> list[tuple[str, str, int]]:
    """Return name, look and number of the outcomes that occur, in the order of the legend."""
    counts = document.counts
    return [(name, look, counts[code]) for code, (name, look, _) in OUTCOMES.items() if counts.get(code)]


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("static", name).read_text("utf-8")
