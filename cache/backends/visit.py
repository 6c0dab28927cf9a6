"""One visit to one URL in a fresh page, from the first request to the finished observation."""

from __future__ import annotations

import asyncio
import base64
import time
from dataclasses import dataclass, replace
from typing import Protocol

from cache.backends.devtools import DevTools
from cache.backends.documents import read_document
from cache.backends.endings import Ending, of_browser_error, of_refusal
from cache.backends.navigation import Answer, Navigation
from cache.capture import CaptureOutcome, Observation
from cache.egress import Lane, Refusal
from cache.errors import DocumentRejected
from cache.quality import PageFacts, classify
from cache.readiness import MAX_GROWN_PX, WIDTH_PX, Readiness, Settling
from cache.visible_text import FrameView, VisibleText, read_visible_text

SHOT_WIDTH_PX = 1100
SHOT_QUALITY = 85
MAX_HTML_CHARS = 20_000_000
_SHOT_S = 15.0
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
                seen = await self._observe(navigation)
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
        settling = Settling(self.page, navigation, deadline=self.deadline - self.reading_s)
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
        shot = await self._screenshot(ready)  # last: a browser that is busy drawing answers nothing else
        finding = classify(_facts(arrived, visible, html))
        outcome, detail = finding.outcome, finding.detail
        cut = ready.cut or ("the page has more text than is kept" if visible.truncated else "")
        if outcome is CaptureOutcome.OK and cut:
            outcome, detail = CaptureOutcome.PARTIAL, cut
        elif outcome is CaptureOutcome.EMPTY and ready.cut:
            outcome, detail = CaptureOutcome.TIMEOUT, ready.cut
        if self.lane.is_exhausted:
            outcome, detail = CaptureOutcome.TOO_LARGE, "the byte budget of this page is used up"
        if navigation.moved_to:
            detail = f"{detail}; " * bool(detail) + f"it wanted to move on to {navigation.moved_to[:200]}"
        return replace(
            arrived,
            outcome=outcome,
            detail=detail,
            gone=finding.gone,
            title=visible.title,
            text=visible.text,
            hidden_text=visible.hidden,
            links=visible.links,
            screenshots=(shot,) if shot else (),
            html=html.encode("utf-8", errors="replace"),
        )

    async def _screenshot(self, ready: Readiness) -> bytes:
        """A JPEG of the page from its top, 1100 px wide and up to 10,000 high; empty where it cannot be drawn."""
        scale = SHOT_WIDTH_PX / WIDTH_PX
        height = max(1, min(ready.height_px, MAX_GROWN_PX))
        request = {
            "format": "jpeg",
            "quality": SHOT_QUALITY,
            "optimizeForSpeed": True,
            # To draw what no window shows, the browser lays the page out anew: not for what it shows already.
            "captureBeyondViewport": height > ready.viewport_px,
            "clip": {"x": 0, "y": 0, "width": WIDTH_PX, "height": height, "scale": scale},
        }
        try:
            async with asyncio.timeout(min(_SHOT_S, self._left_s() / 2)):
                taken = await self.page.send("Page.captureScreenshot", request)
        except TimeoutError:
            return b""
        return base64.b64decode(taken["data"])

    def _left_s(self) -> float:
        return self.deadline - time.monotonic()


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
    )
