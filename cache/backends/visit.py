"""Visit of one URL in a new page, from the first request to the observation."""

from __future__ import annotations

import asyncio
import binascii
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from cache.backends.devtools import DevTools, MainDocument
from cache.backends.documents import read_document
from cache.backends.failures import (
    CaptureFailure,
    failure_from_browser_error,
    failure_from_refusal,
    failure_from_target,
)
from cache.backends.navigation import DocumentResponse, Navigation
from cache.backends.readiness import (
    HEIGHT_PX,
    MAX_GROWN_PX,
    SHOT_SCALE,
    WIDTH_PX,
    PageLoader,
    Readiness,
    set_viewport,
)
from cache.capture import ALT_TEXT_HEADING, CaptureOutcome, Observation, PageKind, Soft404Confidence
from cache.classify.quality import Finding, PageFacts, classify
from cache.egress.proxy_port import ProxyPort, Refusal
from cache.errors import DocumentRejected
from cache.image_jobs import run_image_job
from cache.page_scripts import script
from cache.page_text.screenshot_parts import MAX_TILE_PX, tile_spans
from cache.page_text.text_boxes import ScreenshotArea, places_json
from cache.page_text.visible_text import (
    Box,
    VisibleText,
    hide_unrendered,
    read_visible_text,
    shows_anything,
    visible_covered_texts,
)

SHOT_QUALITY = 85
_TILE_PX = int(MAX_TILE_PX / SHOT_SCALE)
MAX_HTML_CHARS = 20_000_000
_SHOT_S = 15.0
_DRAW_WAIT_S = 2.0
READING_S = 12.0
_VIEWER_CHARS = 500
"""Maximum text of a page that only displays a PDF."""
_SERIALIZE_HTML = """(limit) => (document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "") +
  (document.documentElement ? document.documentElement.outerHTML.slice(0, limit) : "")"""


class Page(DevTools, Protocol):
    """A new page of a browser."""

    document: MainDocument

    async def open(self, url: str, *, timeout_s: float) -> str:
        """Navigate until the first bytes of a document are shown. Return the browser's error message, or ""."""

    async def framed_chars(self) -> int:
        """Return the number of characters of text in the frames of the page."""


@dataclass
class Visit:
    """Visit of one URL.

    Attributes:
        initial: Observation to fill in.
        deadline: In monotonic time.
        reading_s: Part of the time that is reserved for reading the page.
        real_clock: Use the real clock instead of a virtual one, because a script of the page waits for the clock.
        max_height_px: Height of the part of the page that is shown in screenshots, in CSS pixels.
        content: HTML to render instead of what the URL returns.
    """

    page: Page
    proxy_port: ProxyPort
    initial: Observation
    deadline: float
    reading_s: float = READING_S
    real_clock: bool = False
    max_height_px: int = MAX_GROWN_PX
    content: bytes | None = None
    _loader: PageLoader = field(init=False)
    _pdfs: tuple[str, ...] = ()
    """Addresses of the PDFs that the page embeds."""

    async def run(self) -> Observation:
        """Capture the page.

        Raises:
            PageLost: The browser or the page is lost.
            ClockStuck: A script blocks the page while its clock is virtual (see ``PageLoader``).
        """
        navigation, _ = await asyncio.gather(
            Navigation.attach(self.page, self.content), set_viewport(self.page, HEIGHT_PX)
        )
        navigation.requests.on_flood = self.proxy_port.delay_refusals
        try:
            seen = await self._observe(navigation)
            if seen.text.startswith("%PDF-") and not navigation.take_all_bodies:
                # A PDF declared as HTML: request it again as bytes.
                navigation.reset_for_bytes()
                document = await self._observe(navigation)
                return seen if document.outcome is CaptureOutcome.UNSUPPORTED else document
            return await self._with_embedded_pdf(navigation, seen)
        finally:
            await navigation.aclose()

    async def _with_embedded_pdf(self, navigation: Navigation, page: Observation) -> Observation:
        """Return the PDF that a page embeds if the page shows little else, or else the page with a note about it."""
        if not self._pdfs or not (page.is_evidence or page.outcome is CaptureOutcome.EMPTY):
            return page
        url = self._pdfs[0]
        if len(self._pdfs) == 1 and len(page.text) < _VIEWER_CHARS:
            navigation.reset_for_bytes()
            await self.page.open(url, timeout_s=max(1.0, self._remaining_s() - self.reading_s))
            document = await self._read_document(navigation, navigation.response) if navigation.response else page
            if document.kind is PageKind.PDF and document.is_evidence:
                detail = "; ".join(filter(None, [f"the PDF that the page embeds: {url[:200]}", document.detail]))
                return replace(document, detail=detail, chain=(*page.chain, *document.chain))
        return replace(page, detail="; ".join(filter(None, [page.detail, f"an embedded PDF is not read: {url[:200]}"])))

    async def _observe(self, navigation: Navigation) -> Observation:
        error = await self.page.open(self.initial.url, timeout_s=max(1.0, self._remaining_s() - self.reading_s))
        if navigation.body_taken.is_set() and navigation.response is not None:
            return await self._read_document(navigation, navigation.response)
        ended = self._observe_failure(navigation, error)
        if ended is not None:
            return ended
        received = self._with_response(navigation)
        try:
            async with asyncio.timeout(max(1.0, self._remaining_s())):
                return await self._read_page(navigation, received)
        except TimeoutError:
            return replace(received, outcome=CaptureOutcome.TIMEOUT, detail="the page could not be read in time")

    def _observe_failure(self, navigation: Navigation, error: str) -> Observation | None:
        """Return the observation of a visit without a document, or None if there is a document."""
        refusal = self._find_refusal(navigation, error)
        if refusal is not None:
            # The response, if any, came from the egress proxy and not from the site.
            return replace(
                self._failed_observation(navigation, failure_from_refusal(refusal)), http_status=None, headers={}
            )
        failure = self._find_failure(navigation, error)
        return None if failure is None else self._failed_observation(navigation, failure)

    def _find_refusal(self, navigation: Navigation, error: str) -> Refusal | None:
        """Return the egress proxy's refusal if it is the reason for the missing document."""
        response = navigation.response
        if not error and (response is None or response.status not in (403, 502)):
            return None
        return self.proxy_port.refusal_of(navigation.chain[-1] if navigation.chain else self.initial.url)

    def _find_failure(self, navigation: Navigation, error: str) -> CaptureFailure | None:
        """Return why there is no document, or None if there is one."""
        if navigation.failure is not None:
            return navigation.failure
        if self.proxy_port.is_exhausted:
            return CaptureFailure(outcome=CaptureOutcome.TOO_LARGE, detail="the page exceeded its byte limit")
        if not error:
            return None
        response = navigation.response
        if response is not None and (response.status >= 400 or response.status == 204):
            finding = classify(
                PageFacts(
                    url=self.initial.url, final_url=response.url, status=response.status, headers=response.headers
                )
            )
            return CaptureFailure(outcome=finding.outcome, detail=finding.detail, gone=finding.gone)
        target = navigation.target or self.initial.url
        # If the browser's error page interrupts the navigation, only the request's error contains a code.
        refused = failure_from_target(target) or failure_from_browser_error(f"{navigation.load_error} {error}", target)
        if navigation.load_error:
            return refused or CaptureFailure(outcome=CaptureOutcome.CONNECT_ERROR, detail=navigation.load_error)
        return refused or CaptureFailure(outcome=CaptureOutcome.TIMEOUT, detail="no response in time")

    def _with_response(self, navigation: Navigation) -> Observation:
        response = navigation.response
        return replace(
            self.initial,
            final_url=response.url if response else (navigation.chain[-1] if navigation.chain else None),
            http_status=response.status if response else None,
            headers=response.stored_headers if response else {},
            chain=tuple(navigation.chain),
            detail="",
        )

    def _failed_observation(self, navigation: Navigation, failure: CaptureFailure) -> Observation:
        received = self._with_response(navigation)
        return replace(received, outcome=failure.outcome, detail=failure.detail, gone=failure.gone)

    async def _read_document(self, navigation: Navigation, response: DocumentResponse) -> Observation:
        received = self._with_response(navigation)
        if response.body is None:
            return self._failed_observation(
                navigation, navigation.failure or CaptureFailure(outcome=CaptureOutcome.TOO_LARGE, detail="")
            )
        try:
            document = await read_document(
                response.body, response.content_type, deadline_s=max(1.0, self._remaining_s() - 1.0)
            )
        except DocumentRejected as rejected:
            return replace(received, outcome=rejected.outcome, detail=rejected.detail)
        return document.complete_observation(received)

    async def _read_page(self, navigation: Navigation, received: Observation) -> Observation:
        until = self.deadline - self.reading_s
        loader = PageLoader(
            self.page,
            navigation,
            deadline=until,
            framed_chars=self.page.framed_chars,
            proxy_port=self.proxy_port,
            real_clock=self.real_clock,
        )
        self._loader = loader
        readiness = await loader.run()
        # The page may have navigated to a document that is not a web page, or to an error.
        if navigation.body_taken.is_set() and navigation.response is not None:
            return await self._read_document(navigation, navigation.response)
        ended = self._observe_failure(navigation, navigation.load_error)
        if ended is not None:
            return ended
        received = self._with_response(navigation)
        visible = await read_visible_text(self.page.document)
        if navigation.incomplete_reason and _shows_nothing(visible):  # such a page may never be drawn
            failure = CaptureFailure(outcome=CaptureOutcome.CONNECT_ERROR, detail=navigation.incomplete_reason)
            return self._failed_observation(navigation, failure)
        html = str(await self.page.run(_SERIALIZE_HTML, MAX_HTML_CHARS))
        has_dialog = bool(visible.facts["consentCovers"])
        visible = await self._without_dialog(visible) if has_dialog else visible
        screenshots, drawn = await self._screenshots(readiness)  # last: a browser that is drawing does not respond
        areas = _screenshot_areas(self._screenshot_px(readiness), len(screenshots))
        if readiness.height_px <= readiness.viewport_px:  # otherwise the screenshot used another layout
            visible = await self._recheck_covered(visible, readiness)
            visible = await run_image_job(hide_unrendered, visible, areas, screenshots)
        headers = navigation.response.headers if navigation.response is not None else {}
        self._pdfs = tuple(map(str, dict.fromkeys(visible.facts["pdfs"])))
        facts = replace(_facts(received, visible, html, headers), consent_covers=has_dialog)
        if not visible.text and not await run_image_job(shows_anything, screenshots):
            facts = replace(facts, drawings=0)
        finding = await asyncio.to_thread(classify, facts)
        finding = self._with_load_problems(finding, navigation, readiness, visible)
        notes = [finding.detail, *navigation.requests.notes()]
        notes += ["a consent dialog that covered the page is left out"] if has_dialog else []
        notes += [] if drawn else ["its screenshots are incomplete"]
        if self.proxy_port.flooded.is_set():
            notes.append("its scripts were stopped because too many of its requests failed")
        if navigation.blocked_url:
            notes.append(f"it tried to navigate to {navigation.blocked_url[:200]}")
        return replace(
            received,
            outcome=finding.outcome,
            detail="; ".join(filter(None, notes)),
            gone=finding.gone,
            soft_404_confidence=finding.soft_404_confidence,
            may_be_blocked=finding.may_be_blocked,
            title=visible.title,
            text=visible.text,
            hidden_text=visible.hidden,
            links=visible.links,
            screenshots=screenshots,
            places=await asyncio.to_thread(places_json, visible.text, [(areas, visible.places)]),
            html=html.encode("utf-8", errors="replace"),
        )

    def _with_load_problems(
        self, finding: Finding, navigation: Navigation, readiness: Readiness, visible: VisibleText
    ) -> Finding:
        """Return the finding, changed if the page was not loaded completely."""
        if self.proxy_port.is_exhausted:
            return replace(finding, outcome=CaptureOutcome.TOO_LARGE, detail="the page exceeded its byte limit")
        truncated = "the page has more text than is stored" if visible.truncated else ""
        truncated = "the page is shown up to an error in its XML" if visible.facts["malformed"] else truncated
        reason = navigation.incomplete_reason or readiness.incomplete_reason or truncated
        if finding.outcome is CaptureOutcome.OK and reason:
            return replace(finding, outcome=CaptureOutcome.PARTIAL, detail=reason)
        if finding.outcome is CaptureOutcome.SOFT_404 and reason:
            # An incomplete page cannot be cleared by the sibling probe.
            return replace(finding, soft_404_confidence=Soft404Confidence.STATED)
        if finding.outcome is CaptureOutcome.EMPTY and readiness.incomplete_reason:
            return replace(finding, outcome=CaptureOutcome.TIMEOUT, detail=readiness.incomplete_reason)
        return finding

    async def _screenshots(self, readiness: Readiness) -> tuple[tuple[bytes, ...], bool]:
        """Return screenshots of the page and whether they are complete.

        JPEGs from the top of the page, 1,100 px wide, in tiles of at most 6,000 px. If a
        tile is not drawn in time, it and the following ones are missing.
        """
        height = self._screenshot_px(readiness)
        screenshots: list[bytes] = []
        try:
            async with asyncio.timeout(min(_SHOT_S, self._remaining_s() / 2)):
                for top, part in tile_spans(height, _TILE_PX):
                    # For content beyond the viewport, the browser computes a new layout; avoid that if possible.
                    screenshots.append(
                        await self._screenshot(top, part, beyond_viewport=height > readiness.viewport_px)
                    )
        except TimeoutError:
            return tuple(screenshots), False  # the text is still usable
        return tuple(screenshots), True

    async def _without_dialog(self, visible: VisibleText) -> VisibleText:
        """Hide the consent dialogs that cover the page, and read it again.

        The page's scripts are stopped first, so that they do not open the dialogs again.
        """
        try:
            async with asyncio.timeout(self._remaining_s() / 2):
                await self.page.send("Emulation.setScriptExecutionDisabled", {"value": True})
                await self.page.run(script("hide_consent_dialogs"), visible.facts["coveringFrames"])
                return await read_visible_text(self.page.document)
        except TimeoutError:
            return visible

    async def _recheck_covered(self, visible: VisibleText, readiness: Readiness) -> VisibleText:
        """Read the page again if screenshots show that text which seemed to be covered is visible.

        The page's scripts are stopped first, so that the screenshots differ only in that text.
        """
        top, height = _enclosing_span(visible.facts["covered"], self._screenshot_px(readiness))
        if height <= 0:
            return visible
        screenshots = []
        try:
            async with asyncio.timeout(self._remaining_s() / 2):
                await self.page.send("Emulation.setScriptExecutionDisabled", {"value": True})
                for hide in (False, True, False):
                    await self.page.run(script("toggle_covered"), hide)
                    screenshots.append(await self._screenshot(top, height))
                seen = await run_image_job(visible_covered_texts, visible.facts["covered"], top, WIDTH_PX, screenshots)
                if not seen:
                    return visible
                await self.page.run(script("record_uncovered"), seen)
                return await read_visible_text(self.page.document)
        except TimeoutError:
            return visible

    async def _screenshot(self, top: int, height: int, *, beyond_viewport: bool = False) -> bytes:
        request = {
            "format": "jpeg",
            "quality": SHOT_QUALITY,
            "optimizeForSpeed": True,
            "captureBeyondViewport": beyond_viewport,
            "clip": {"x": 0, "y": top, "width": WIDTH_PX, "height": height, "scale": SHOT_SCALE},
        }
        await self._loader.catch_up()
        drawing = asyncio.ensure_future(self.page.send("Page.captureScreenshot", request))
        try:
            while not (await asyncio.wait({drawing}, timeout=_DRAW_WAIT_S))[0]:
                await self._loader.catch_up()  # time passes while a large page is drawn
            return binascii.a2b_base64((await drawing)["data"])
        finally:
            drawing.cancel()

    def _screenshot_px(self, readiness: Readiness) -> int:
        """Return the height of the page in screenshots."""
        return max(1, min(readiness.height_px, self.max_height_px))

    def _remaining_s(self) -> float:
        return self.deadline - time.monotonic()


def _screenshot_areas(height: int, drawn: int) -> list[ScreenshotArea]:
    """Return the part of the page in each screenshot."""
    spans = tile_spans(height, _TILE_PX)[:drawn]
    return [
        ScreenshotArea(number=number, top=top, width=WIDTH_PX, height=part) for number, (top, part) in enumerate(spans)
    ]


def _shows_nothing(visible: VisibleText) -> bool:
    return not (visible.text or visible.facts["largeImages"] or visible.facts["drawings"])


def _enclosing_span(boxes: Sequence[Box], page_px: int) -> tuple[int, int]:
    """Return top and height of the part of the page that contains all boxes, limited to one screenshot."""
    screenshot_spans = [(top, top + height) for _, top, _, height in boxes if 0 <= top < page_px]
    if not screenshot_spans:
        return 0, 0
    first = int(min(top for top, _ in screenshot_spans))
    last = min(int(max(bottom for _, bottom in screenshot_spans)) + 1, page_px)
    return first, min(last - first, _TILE_PX)


def _facts(received: Observation, visible: VisibleText, html: str, headers: Mapping[str, str]) -> PageFacts:
    facts = visible.facts
    return PageFacts(
        url=received.url,
        final_url=received.final_url or received.url,
        status=received.http_status,
        title=visible.title,
        headlines=visible.headlines,
        text=visible.text,
        html=html,
        has_password_field=bool(facts["hasPasswordField"]),
        login_form_chars=int(facts["loginFormChars"]),
        consent_chars=int(facts["consentChars"]),
        inputs=int(facts["inputs"]),
        links=len(visible.links),
        large_images=int(facts["largeImages"]),
        has_user_field=bool(facts["hasUserField"]),
        is_registration=bool(facts["hasPasswordField"]) and not facts["asksForOldPassword"],
        drawings=int(facts["drawings"]),
        hidden_chars=len(" ".join(visible.hidden.partition(ALT_TEXT_HEADING)[0].split())),
        script_chars=int(facts["scriptChars"]),
        address=str(facts["address"]),
        headers=headers,
    )
