"""One visit to one URL in a fresh page, from the first request to the finished observation."""

from __future__ import annotations

import asyncio
import base64
import time
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cache.backends.devtools import DevTools
from cache.backends.documents import read_document
from cache.backends.endings import Ending, of_browser_error, of_refusal
from cache.backends.navigation import Answer, Navigation
from cache.capture import CaptureOutcome, Observation, Suspicion
from cache.egress import Lane, Refusal
from cache.errors import DocumentRejected
from cache.places import Sheet, places_json
from cache.quality import PageFacts, classify
from cache.readiness import MAX_GROWN_PX, WIDTH_PX, Readiness, Settling
from cache.tiles import MAX_TILE_PX, tile_spans
from cache.undrawn import without_undrawn
from cache.visible_text import FrameView, VisibleText, read_visible_text

SHOT_WIDTH_PX = 1100
SHOT_QUALITY = 85
_TILE_PX = int(MAX_TILE_PX * WIDTH_PX / SHOT_WIDTH_PX)
MAX_HTML_CHARS = 20_000_000
_SHOT_S = 15.0
_STUCK_S = 2.0
_NUDGE_MS = 100
READING_S = 12.0
_MARKUP = """(limit) => (document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "") +
  (document.documentElement ? document.documentElement.outerHTML.slice(0, limit) : "")"""


class Page(DevTools, Protocol):
    """A fresh page of a browser."""

    async def open(self, url: str, *, timeout_s: float) -> str:
        """Navigate until the first bytes of a document are shown; the browser's error message, or ""."""

    def view(self) -> FrameView: ...


@dataclass
class Visit:
    """``deadline`` is on the monotonic clock; ``blank`` is the observation to fill in. ``reading_s`` is kept back
    from waiting, for reading what is there."""

    page: Page
    lane: Lane
    blank: Observation
    deadline: float
    reading_s: float = READING_S

    async def run(self) -> Observation:
        """Observe the page. Raises PageLost when the browser goes away."""
        navigation = await Navigation.watch(self.page)
        try:
            seen = await self._observe(navigation)
            if seen.text.startswith("%PDF-") and not navigation.take_all:
                # A document that calls itself HTML: asked for again, this time for its bytes.
                navigation.again_for_bytes()
                document = await self._observe(navigation)
                return seen if document.outcome is CaptureOutcome.UNSUPPORTED else document
            return seen
        finally:
            await navigation.aclose()

    async def _observe(self, navigation: Navigation) -> Observation:
        error = await self.page.open(self.blank.url, timeout_s=max(1.0, self._left_s() - self.reading_s))
        if navigation.taken.is_set() and navigation.answer is not None:
            return await self._document(navigation, navigation.answer)
        ended = self._ended_early(navigation, error)
        if ended is not None:
            return ended
        arrived = self._arrived(navigation)
        try:
            async with asyncio.timeout(max(1.0, self._left_s())):
                return await self._read(navigation, arrived)
        except TimeoutError:
            return replace(arrived, outcome=CaptureOutcome.TIMEOUT, detail="the page could not be read in time")

    def _ended_early(self, navigation: Navigation, error: str) -> Observation | None:
        """The observation of a visit that ended without a document."""
        refusal = self._refusal(navigation, error)
        if refusal is not None:
            # The answer, if there is one, is the guard's and not the site's.
            return replace(self._ended(navigation, of_refusal(refusal)), http_status=None, headers={})
        ending = self._ending(navigation, error)
        return None if ending is None else self._ended(navigation, ending)

    def _refusal(self, navigation: Navigation, error: str) -> Refusal | None:
        """What the guard refused, if that is why there is no document."""
        answer = navigation.answer
        if not error and (answer is None or answer.status not in (403, 502)):
            return None
        return self.lane.refusal_of(navigation.chain[-1] if navigation.chain else self.blank.url)

    def _ending(self, navigation: Navigation, error: str) -> Ending | None:
        """How the visit ended, where it ended without a document."""
        if navigation.ending is not None:
            return navigation.ending
        if self.lane.is_exhausted:
            return Ending(outcome=CaptureOutcome.TOO_LARGE, detail="the byte budget of this page is used up")
        if not error:
            return None
        answer = navigation.answer
        if answer is not None and (answer.status >= 400 or answer.status == 204):
            finding = classify(PageFacts(url=self.blank.url, final_url=answer.url, status=answer.status))
            return Ending(outcome=finding.outcome, detail=finding.detail, gone=finding.gone)
        if navigation.broken:
            return of_browser_error(error) or Ending(outcome=CaptureOutcome.CONNECT_ERROR, detail=navigation.broken)
        return of_browser_error(error) or Ending(outcome=CaptureOutcome.TIMEOUT, detail="nothing arrived in time")

    def _arrived(self, navigation: Navigation) -> Observation:
        """What is known of the answer, whatever it shows."""
        answer = navigation.answer
        return replace(
            self.blank,
            final_url=answer.url if answer else (navigation.chain[-1] if navigation.chain else None),
            http_status=answer.status if answer else None,
            headers=answer.kept_headers if answer else {},
            chain=tuple(navigation.chain),
            detail="",
        )

    def _ended(self, navigation: Navigation, ending: Ending) -> Observation:
        arrived = self._arrived(navigation)
        return replace(arrived, outcome=ending.outcome, detail=ending.detail, gone=ending.gone)

    async def _document(self, navigation: Navigation, answer: Answer) -> Observation:
        arrived = self._arrived(navigation)
        if answer.body is None:
            return self._ended(navigation, navigation.ending or Ending(outcome=CaptureOutcome.TOO_LARGE, detail=""))
        try:
            document = await read_document(answer.body, answer.content_type, deadline_s=max(1.0, self._left_s() - 1.0))
        except DocumentRejected as rejected:
            return replace(arrived, outcome=rejected.outcome, detail=rejected.detail)
        return document.observed_as(arrived)

    async def _read(self, navigation: Navigation, arrived: Observation) -> Observation:
        until = self.deadline - self.reading_s
        settling = Settling(self.page, navigation, deadline=until, flooded_at=lambda: self.lane.flooded_at)
        ready = await settling.run()
        # It may have sent on: to a document that is no page, or to where there is nothing.
        if navigation.taken.is_set() and navigation.answer is not None:
            return await self._document(navigation, navigation.answer)
        ended = self._ended_early(navigation, navigation.broken)
        if ended is not None:
            return ended
        arrived = self._arrived(navigation)
        visible = await read_visible_text(self.page.view())
        html = str(await self.page.run(_MARKUP, MAX_HTML_CHARS))
        shots, drawn = await self._screenshots(ready)  # last: a browser that is busy drawing answers nothing else
        sheets = _sheets(ready, len(shots))
        if ready.height_px <= ready.viewport_px:  # else it was laid out anew for the picture, and may stand elsewhere
            visible = await asyncio.to_thread(without_undrawn, visible, sheets, shots)
        finding = await asyncio.to_thread(classify, _facts(arrived, visible, html))
        outcome, detail, suspicion = finding.outcome, finding.detail, finding.suspicion
        cut = navigation.cut or ready.cut or ("the page has more text than is kept" if visible.truncated else "")
        if outcome is CaptureOutcome.OK and cut:
            outcome, detail = CaptureOutcome.PARTIAL, cut
        elif outcome is CaptureOutcome.SOFT_404 and cut:
            suspicion = Suspicion.SAID  # what came of it is not enough to take it for a page after all
        elif outcome is CaptureOutcome.EMPTY and ready.cut:
            outcome, detail = CaptureOutcome.TIMEOUT, ready.cut
        if self.lane.is_exhausted:
            outcome, detail = CaptureOutcome.TOO_LARGE, "the byte budget of this page is used up"
        if not drawn:
            detail = f"{detail}; " * bool(detail) + "its picture could not be drawn to the end"
        if navigation.moved_to:
            detail = f"{detail}; " * bool(detail) + f"it wanted to move on to {navigation.moved_to[:200]}"
        return replace(
            arrived,
            outcome=outcome,
            detail=detail,
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
        """JPEGs of the page from its top, 1100 px wide and 10,000 high in all, in tiles where it is above 6,000.

        Whether these are all: from the first tile on that cannot be drawn in time they are left out.
        """
        scale = SHOT_WIDTH_PX / WIDTH_PX
        height = _shown_px(ready)
        shots: list[bytes] = []
        try:
            async with asyncio.timeout(min(_SHOT_S, self._left_s() / 2)):
                for top, part in tile_spans(height, _TILE_PX):
                    request = {
                        "format": "jpeg",
                        "quality": SHOT_QUALITY,
                        "optimizeForSpeed": True,
                        # To draw what no window shows, the browser lays the page out anew: not for what it shows.
                        "captureBeyondViewport": height > ready.viewport_px,
                        "clip": {"x": 0, "y": top, "width": WIDTH_PX, "height": part, "scale": scale},
                    }
                    shots.append(await self._drawn(request))
        except TimeoutError:
            return tuple(shots), False  # the text is there all the same
        return tuple(shots), True

    async def _drawn(self, request: dict[str, Any]) -> bytes:
        """One picture. A page whose clock stands still for a request that never ends may wait for it to draw."""
        drawing = asyncio.ensure_future(self.page.send("Page.captureScreenshot", request))
        try:
            await asyncio.wait({drawing}, timeout=_STUCK_S)
            if not drawing.done():
                await self.page.send("Emulation.setVirtualTimePolicy", {"policy": "advance", "budget": _NUDGE_MS})
            return base64.b64decode((await drawing)["data"])
        finally:
            drawing.cancel()

    def _left_s(self) -> float:
        return self.deadline - time.monotonic()


def _sheets(ready: Readiness, drawn: int) -> list[Sheet]:
    """What of the page is on the pictures that were drawn."""
    spans = tile_spans(_shown_px(ready), _TILE_PX)[:drawn]
    return [Sheet(number=number, top=top, width=WIDTH_PX, height=part) for number, (top, part) in enumerate(spans)]


def _shown_px(ready: Readiness) -> int:
    """How much of the page's height is drawn."""
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
    )
