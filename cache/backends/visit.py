"""Visit of one URL in a new page, from the first request to the observation."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from cache.backends.devtools import DevTools, MainDocument
from cache.backends.documents import read_document
from cache.backends.failures import CaptureFailure, failure_from_browser_error, failure_from_refusal, of_target
from cache.backends.navigation import DocumentResponse, Navigation
from cache.backends.readiness import MAX_GROWN_PX, WIDTH_PX, PageLoader, Readiness
from cache.capture import ALT_TEXT_HEADING, CaptureOutcome, Observation, Soft404Confidence
from cache.classify.quality import PageFacts, classify
from cache.egress.proxy import Lane, Refusal
from cache.errors import DocumentRejected
from cache.page_scripts import script
from cache.page_text.text_boxes import ScreenshotArea, places_json
from cache.page_text.tiles import MAX_TILE_PX, tile_spans
from cache.page_text.unrendered_text import Box, hide_unrendered, shows_anything, visible_covered_texts
from cache.page_text.visible_text import VisibleText, read_visible_text

SHOT_WIDTH_PX = 1100
SHOT_QUALITY = 85
_TILE_PX = int(MAX_TILE_PX * WIDTH_PX / SHOT_WIDTH_PX)
MAX_HTML_CHARS = 20_000_000
_SHOT_S = 15.0
_DRAW_WAIT_S = 2.0
_ADVANCE_MS = 100
READING_S = 12.0
_SERIALIZE_HTML = """(limit) => (document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "") +
  (document.documentElement ? document.documentElement.outerHTML.slice(0, limit) : "")"""


class Page(DevTools, Protocol):
    """A new page of a browser."""

    async def open(self, url: str, *, timeout_s: float) -> str:
        """Navigate until the first bytes of a document are shown. Return the browser's error message, or ""."""

    def view(self) -> MainDocument: ...

    async def framed_chars(self) -> int:
        """Return the number of characters of text in the frames of the page."""


@dataclass
class Visit:
    """Visit of one URL.

    Attributes:
        blank: Observation to fill in.
        deadline: In monotonic time.
        reading_s: Part of the time that is reserved for reading the page.
        real_clock: Use the real clock instead of a virtual one, because a script of the page waits for the clock.
    """

    page: Page
    lane: Lane
    blank: Observation
    deadline: float
    reading_s: float = READING_S
    real_clock: bool = False

    async def run(self) -> Observation:
        """Capture the page.

        Raises:
            PageLost: The browser or the page is lost.
            ClockStuck: A script blocks the page while its clock is virtual (see ``PageLoader``).
        """
        navigation = await Navigation.watch(self.page)
        navigation.requests.on_flood = self.lane.delay_refusals
        try:
            seen = await self._observe(navigation)
            if seen.text.startswith("%PDF-") and not navigation.take_all:
                # A PDF declared as HTML: request it again as bytes.
                navigation.restart_for_bytes()
                document = await self._observe(navigation)
                return seen if document.outcome is CaptureOutcome.UNSUPPORTED else document
            return seen
        finally:
            await navigation.aclose()

    async def _observe(self, navigation: Navigation) -> Observation:
        error = await self.page.open(self.blank.url, timeout_s=max(1.0, self._left_s() - self.reading_s))
        if navigation.taken.is_set() and navigation.answer is not None:
            return await self._document(navigation, navigation.answer)
        ended = self._without_document(navigation, error)
        if ended is not None:
            return ended
        arrived = self._with_response(navigation)
        try:
            async with asyncio.timeout(max(1.0, self._left_s())):
                return await self._read(navigation, arrived)
        except TimeoutError:
            return replace(arrived, outcome=CaptureOutcome.TIMEOUT, detail="the page could not be read in time")

    def _without_document(self, navigation: Navigation, error: str) -> Observation | None:
        """Return the observation of a visit without a document, or None if there is a document."""
        refusal = self._refusal(navigation, error)
        if refusal is not None:
            # The response, if any, came from the egress proxy and not from the site.
            return replace(self._failed(navigation, failure_from_refusal(refusal)), http_status=None, headers={})
        ending = self._ending(navigation, error)
        return None if ending is None else self._failed(navigation, ending)

    def _refusal(self, navigation: Navigation, error: str) -> Refusal | None:
        """Return the egress proxy's refusal if it is the reason for the missing document."""
        answer = navigation.answer
        if not error and (answer is None or answer.status not in (403, 502)):
            return None
        return self.lane.refusal_of(navigation.chain[-1] if navigation.chain else self.blank.url)

    def _ending(self, navigation: Navigation, error: str) -> CaptureFailure | None:
        """Return why there is no document, or None if there is one."""
        if navigation.ending is not None:
            return navigation.ending
        if self.lane.is_exhausted:
            return CaptureFailure(outcome=CaptureOutcome.TOO_LARGE, detail="the page exceeded its byte limit")
        if not error:
            return None
        answer = navigation.answer
        if answer is not None and (answer.status >= 400 or answer.status == 204):
            finding = classify(PageFacts(url=self.blank.url, final_url=answer.url, status=answer.status))
            return CaptureFailure(outcome=finding.outcome, detail=finding.detail, gone=finding.gone)
        target = navigation.target or self.blank.url
        refused = of_target(target) or failure_from_browser_error(error, target)
        if navigation.broken:
            return refused or CaptureFailure(outcome=CaptureOutcome.CONNECT_ERROR, detail=navigation.broken)
        return refused or CaptureFailure(outcome=CaptureOutcome.TIMEOUT, detail="no response in time")

    def _with_response(self, navigation: Navigation) -> Observation:
        """Return the observation with the metadata of the response."""
        answer = navigation.answer
        return replace(
            self.blank,
            final_url=answer.url if answer else (navigation.chain[-1] if navigation.chain else None),
            http_status=answer.status if answer else None,
            headers=answer.kept_headers if answer else {},
            chain=tuple(navigation.chain),
            detail="",
        )

    def _failed(self, navigation: Navigation, ending: CaptureFailure) -> Observation:
        arrived = self._with_response(navigation)
        return replace(arrived, outcome=ending.outcome, detail=ending.detail, gone=ending.gone)

    async def _document(self, navigation: Navigation, answer: DocumentResponse) -> Observation:
        arrived = self._with_response(navigation)
        if answer.body is None:
            return self._failed(
                navigation, navigation.ending or CaptureFailure(outcome=CaptureOutcome.TOO_LARGE, detail="")
            )
        try:
            document = await read_document(answer.body, answer.content_type, deadline_s=max(1.0, self._left_s() - 1.0))
        except DocumentRejected as rejected:
            return replace(arrived, outcome=rejected.outcome, detail=rejected.detail)
        return document.complete_observation(arrived)

    async def _read(self, navigation: Navigation, arrived: Observation) -> Observation:
        until = self.deadline - self.reading_s
        settling = PageLoader(
            self.page,
            navigation,
            deadline=until,
            framed_chars=self.page.framed_chars,
            lane=self.lane,
            real_clock=self.real_clock,
        )
        ready = await settling.run()
        # The page may have navigated to a document that is not a web page, or to an error.
        if navigation.taken.is_set() and navigation.answer is not None:
            return await self._document(navigation, navigation.answer)
        ended = self._without_document(navigation, navigation.broken)
        if ended is not None:
            return ended
        arrived = self._with_response(navigation)
        view = self.page.view()
        visible = await read_visible_text(view)
        html = str(await self.page.run(_SERIALIZE_HTML, MAX_HTML_CHARS))
        shots, drawn = await self._screenshots(ready)  # last: a browser that is drawing does not respond
        sheets = _sheets(ready, len(shots))
        if ready.height_px <= ready.viewport_px:  # otherwise the screenshot used another layout with other positions
            visible = await self._recheck_covered(view, visible, ready)
            visible = await asyncio.to_thread(hide_unrendered, visible, sheets, shots)
        facts = _facts(arrived, visible, html)
        if not visible.text and not await asyncio.to_thread(shows_anything, shots):
            facts = replace(facts, drawings=0)
        finding = await asyncio.to_thread(classify, facts)
        outcome, detail, suspicion = finding.outcome, finding.detail, finding.suspicion
        cut = navigation.cut or ready.cut or ("the page has more text than is stored" if visible.truncated else "")
        if outcome is CaptureOutcome.OK and cut:
            outcome, detail = CaptureOutcome.PARTIAL, cut
        elif outcome is CaptureOutcome.SOFT_404 and cut:
            suspicion = Soft404Confidence.STATED  # an incomplete page cannot be cleared by the sibling probe
        elif outcome is CaptureOutcome.EMPTY and ready.cut:
            outcome, detail = CaptureOutcome.TIMEOUT, ready.cut
        if self.lane.is_exhausted:
            outcome, detail = CaptureOutcome.TOO_LARGE, "the page exceeded its byte limit"
        notes = [detail, *navigation.requests.notes()]
        notes += [] if drawn else ["its screenshots are incomplete"]
        notes += (
            ["its scripts were stopped because too many of its requests failed"] if self.lane.flooded.is_set() else []
        )
        notes += [f"it tried to navigate to {navigation.moved_to[:200]}"] if navigation.moved_to else []
        return replace(
            arrived,
            outcome=outcome,
            detail="; ".join(filter(None, notes)),
            gone=finding.gone,
            suspicion=suspicion,
            title=visible.title,
            text=visible.text,
            hidden_text=visible.hidden,
            links=visible.links,
            screenshots=shots,
            places=await asyncio.to_thread(places_json, visible.text, [(sheets, visible.places)]),
            html=html.encode("utf-8", errors="replace"),
        )

    async def _screenshots(self, ready: Readiness) -> tuple[tuple[bytes, ...], bool]:
        """Return screenshots of the page and whether they are complete.

        JPEGs from the top of the page, 1,100 px wide and 10,000 px high in total, in tiles of at most 6,000 px. If a
        tile is not drawn in time, it and the following ones are missing.
        """
        height = _shown_px(ready)
        shots: list[bytes] = []
        try:
            async with asyncio.timeout(min(_SHOT_S, self._left_s() / 2)):
                for top, part in tile_spans(height, _TILE_PX):
                    # For content beyond the viewport, the browser computes a new layout; avoid that if possible.
                    shots.append(await self._screenshot(top, part, beyond_viewport=height > ready.viewport_px))
        except TimeoutError:
            return tuple(shots), False  # the text is still usable
        return tuple(shots), True

    async def _recheck_covered(self, view: MainDocument, visible: VisibleText, ready: Readiness) -> VisibleText:
        """Read the page again if screenshots show that text which seemed to be covered is visible.

        The page's scripts are stopped first, so that the screenshots differ only in that text.
        """
        top, height = _span(visible.facts["covered"], ready)
        if height <= 0:
            return visible
        shots = []
        try:
            async with asyncio.timeout(self._left_s() / 2):
                await self.page.send("Emulation.setScriptExecutionDisabled", {"value": True})
                for hide in (False, True, False):
                    await view.call(script("covered"), hide)
                    shots.append(await self._screenshot(top, height))
                seen = await asyncio.to_thread(visible_covered_texts, visible.facts["covered"], top, WIDTH_PX, shots)
                if not seen:
                    return visible
                await view.call(script("uncovered"), seen)
                return await read_visible_text(view)
        except TimeoutError:
            return visible

    async def _screenshot(self, top: int, height: int, *, beyond_viewport: bool = False) -> bytes:
        """Take one screenshot. A paused page clock can block drawing, so it is advanced after a while."""
        request = {
            "format": "jpeg",
            "quality": SHOT_QUALITY,
            "optimizeForSpeed": True,
            "captureBeyondViewport": beyond_viewport,
            "clip": {"x": 0, "y": top, "width": WIDTH_PX, "height": height, "scale": SHOT_WIDTH_PX / WIDTH_PX},
        }
        drawing = asyncio.ensure_future(self.page.send("Page.captureScreenshot", request))
        try:
            await asyncio.wait({drawing}, timeout=_DRAW_WAIT_S)
            if not drawing.done() and not self.real_clock:
                await self.page.send("Emulation.setVirtualTimePolicy", {"policy": "advance", "budget": _ADVANCE_MS})
            return base64.b64decode((await drawing)["data"])
        finally:
            drawing.cancel()

    def _left_s(self) -> float:
        return self.deadline - time.monotonic()


def _sheets(ready: Readiness, drawn: int) -> list[ScreenshotArea]:
    """Return the part of the page in each screenshot."""
    spans = tile_spans(_shown_px(ready), _TILE_PX)[:drawn]
    return [
        ScreenshotArea(number=number, top=top, width=WIDTH_PX, height=part) for number, (top, part) in enumerate(spans)
    ]


def _span(boxes: Sequence[Box], ready: Readiness) -> tuple[int, int]:
    """Return top and height of the part of the page that contains all boxes, limited to one screenshot."""
    shown = [(top, top + height) for _, top, _, height in boxes if 0 <= top < _shown_px(ready)]
    if not shown:
        return 0, 0
    first = int(min(top for top, _ in shown))
    last = min(int(max(bottom for _, bottom in shown)) + 1, _shown_px(ready))
    return first, min(last - first, _TILE_PX)


def _shown_px(ready: Readiness) -> int:
    """Return the height of the page in screenshots."""
    return max(1, min(ready.height_px, MAX_GROWN_PX))


def _facts(arrived: Observation, visible: VisibleText, html: str) -> PageFacts:
    facts = visible.facts
    return PageFacts(
        url=arrived.url,
        final_url=arrived.final_url or arrived.url,
        status=arrived.http_status,
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
    )
