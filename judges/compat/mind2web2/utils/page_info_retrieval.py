"""Browser and page managers for live pages, under the public toolkit's names."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from html import unescape
from types import TracebackType
from typing import Any

from cache.backends.plain_html import TextConverter, is_dense
from cache.capture import CaptureOutcome, Observation, PageKind
from cache.errors import BrowserUnavailable, CacheError
from cache.image_jobs import run_image_job
from cache.page_text.screenshot_parts import join_tiles
from mind2web2.api_tools.tool_pdf import arxiv_mirror, make_blank_png_b64
from mind2web2.external_services import external_services
from mind2web2.live_browser import DEADLINE_S
from mind2web2.llm_client.judge import HarnessError
from mind2web2.tool_faults import lose_harness, lose_page, no_evidence, recorded_cancellation
from mind2web2.utils.url_tools import normalize_url_for_browser

__all__ = ["BatchBrowserManager", "Capture", "PageManager", "detect_block", "html_to_markdown", "make_blank_png_b64"]

BLOCK_STATUSES = frozenset({401, 403, 407, 999})
MAX_BLOCK_CHARS = 3000
"""A page with this much text is the cited page, regardless of its status and title."""
_SERVER_FAULT_FROM = 500
_TOO_MANY_REQUESTS = 429
_REPEATED = frozenset(
    {
        CaptureOutcome.TIMEOUT,
        CaptureOutcome.CRASH,
        CaptureOutcome.CONNECT_ERROR,
        CaptureOutcome.DNS_ERROR,
        CaptureOutcome.TLS_ERROR,
    }
)
_WALLS = frozenset(
    {CaptureOutcome.BLOCKED, CaptureOutcome.CAPTCHA, CaptureOutcome.LOGIN_WALL, CaptureOutcome.CONSENT_WALL}
)
_JUDGED = _WALLS | {CaptureOutcome.HTTP_ERROR, CaptureOutcome.SOFT_404}
"""Outcomes of pages that the public toolkit shows to the judge if they have text and are not blocked."""
_BLOCK_TITLE = re.compile(
    r"(?:^|[|:\u2013\u2014-]\s*)(?:just a moment|checking (?:your|the) browser|access denied|pardon our interruption"
    r"|robot or human|access to this (?:page|site) (?:has been|is) denied|attention required|are you a (?:human|robot)"
    r"|robot check|bot (?:check|verification)|human verification|(?:vercel )?security check(?:point)?|captcha(?=\W*$)"
    r"|verify(?:ing)? (?:that )?you(?: are|['\u2019]re) (?:a )?human|one moment, please|request unsuccessful|ddos-guard"
    r"|ddos protection by|you have been blocked)\b",
    re.IGNORECASE,
)
_BLOCK_PHRASE = re.compile(
    r"\b(?:(?:verify(?:ing)?|confirm|prove) (?:that )?you(?: are|['\u2019]re) (?:an? |not an? )?(?:human|robot|bot)"
    r"|unusual traffic from your (?:computer|network)|incapsula|checking your browser"
    r"|checking if the site connection is secure|needs to review the security of your connection"
    r"|enable (?:javascript|js) and (?:cookies to continue|disable any ad blocker)"
    r"|complete the security check to access|why have i been blocked|automated access to this page"
    r"|sorry, you have been blocked|are you a robot\?|access to this page has been denied"
    r"|(?:press & hold|press and hold) to confirm)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Capture:
    """Result of one capture.

    Attributes:
        screenshot_b64: Screenshot of the whole page, or of the first page of a PDF (base64 JPEG).
        text: Visible text.
        error: Why there is no page; None if there is one.
        blocked: The site refused the capture, for example with a bot check.
        status: HTTP status; None without a response.
        final_url: URL after redirects.
    """

    screenshot_b64: str | None = None
    text: str | None = None
    error: str | None = None
    blocked: bool = False
    status: int | None = None
    final_url: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a page that can be judged."""
        return self.error is None and not self.blocked and (self.text is not None or self.screenshot_b64 is not None)


@dataclass(frozen=True, slots=True)
class CaptureProblem:
    """Reason why a captured page cannot be judged."""

    reason: str
    blocked: bool = False


def detect_block(status: int | None, title: str | None, text: str | None) -> str | None:
    """Return why a page is a block page or a bot check; None if it is not, or has at least 3,000 characters of text.

    >>> detect_block(403, "", "Forbidden"), detect_block(200, "Just a moment...", "")
    ('HTTP status 403', "the title 'Just a moment...'")
    >>> detect_block(404, "Not found", "No such page") is detect_block(403, "Paper", "x" * 3000) is None
    True
    """
    shown = text or ""
    if len(shown) >= MAX_BLOCK_CHARS:
        return None
    if status in BLOCK_STATUSES:
        return f"HTTP status {status}"
    if _BLOCK_TITLE.search((title or "").strip()):
        return f"the title {(title or '').strip()[:60]!r}"
    phrase = _BLOCK_PHRASE.search(" ".join(shown.split()))
    return f"the phrase {phrase[0]!r}" if phrase else None


def capture_problem(seen: Observation) -> CaptureProblem | None:
    """Return why a page is no evidence for the public toolkit; None if it is judged.

    It judges more than we do: pages that do not exist, and long pages whatever their status is.
    """
    named = f"{seen.outcome.value}: {seen.detail}" if seen.detail else seen.outcome.value
    if seen.kind is not PageKind.WEB:
        return None if seen.is_evidence else CaptureProblem(named)
    block = detect_block(seen.http_status, seen.title, seen.text)
    if block is not None:
        return CaptureProblem(block, blocked=True)
    if len(seen.text) < MAX_BLOCK_CHARS:
        if seen.http_status == _TOO_MANY_REQUESTS or (seen.http_status or 0) >= _SERVER_FAULT_FROM:
            return CaptureProblem(f"HTTP status {seen.http_status}")
        if seen.outcome in _WALLS:
            return CaptureProblem(named, blocked=True)
    if seen.is_evidence or (seen.outcome in _JUDGED and seen.text):
        return None
    return CaptureProblem(named)


class BatchBrowserManager:
    """Captures pages in its own browser, which starts on first use and is stopped by ``stop``."""

    def __init__(
        self,
        headless: bool = True,
        max_retries: int = 3,
        max_concurrent_pages: int = 10,
        *,
        page_timeout: float = DEADLINE_S,
    ) -> None:
        """Create a manager; the browser starts with the first page.

        Args:
            headless: Stored but not used; the capture code decides.
            max_retries: Attempts of ``capture`` if a capture fails with an error or a timeout.
            max_concurrent_pages: Concurrent captures.
            page_timeout: Time limit of an attempt, in seconds.
        """
        self.headless = headless
        self.max_retries = max_retries
        self.max_concurrent_pages = max_concurrent_pages
        self.retry_s = 1.0
        """Seconds before the second attempt; the n-th repeat waits n times as long."""
        self._live = external_services().live_pages(max_concurrent_pages, deadline_s=page_timeout)

    async def __aenter__(self) -> BatchBrowserManager:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the browser now.

        Raises:
            cache.errors.BrowserUnavailable: no browser can be started.
        """
        await self._live.open()

    async def stop(self) -> None:
        """Stop the browser. A later capture starts it again."""
        await self._live.aclose()

    async def observe(self, url: str) -> Observation:
        """Capture a URL and return the full observation; see ``LiveCapture.observe``."""
        return await _pdf_or_mirror(url, self._live.observe)

    async def visit(self, url: str, logger: Any) -> Observation:
        """Capture a URL as the public toolkit does, and return the full observation.

        Only errors and timeouts are repeated.

        Raises:
            HarnessError: No browser can be started.
        """
        return await _pdf_or_mirror(normalize_url_for_browser(url), lambda address: self._visit(address, logger))

    async def _visit(self, address: str, logger: Any) -> Observation:
        attempts = max(1, self.max_retries)
        attempt = 1
        while True:
            try:
                seen = await self._live.observe(address, once=True)
            except BrowserUnavailable as error:
                raise HarnessError(str(error)) from error
            if seen.outcome not in _REPEATED or seen.gone or attempt == attempts:
                return seen
            logger.info("%s: %s in attempt %d of %d", address, seen.outcome.value, attempt, attempts)
            await asyncio.sleep(self.retry_s * attempt)
            attempt += 1

    async def capture(self, url: str, logger: Any) -> Capture:
        """Capture a URL: the page as the public toolkit would judge it, or why there is none.

        Raises:
            HarnessError: No browser can be started.
        """
        try:
            with recorded_cancellation("the browser"):
                seen = await self.visit(url, logger)
        except HarnessError as error:
            lose_harness(error)
            raise
        except CacheError as error:
            lose_page(error)
            return Capture(error=str(error))
        response = Capture(status=seen.http_status, final_url=seen.final_url)
        problem = capture_problem(seen)
        if problem is not None:
            logger.warning("%s is not evidence: %s", url, problem.reason)
            lose_page(no_evidence(seen))
            return replace(response, error=problem.reason, blocked=problem.blocked)
        return replace(response, screenshot_b64=await _screenshot_b64(seen), text=seen.text)

    async def capture_page(
        self,
        url: str,
        logger: Any,
        wait_until: str = "load",
        timeout: int = 30_000,  # noqa: ASYNC109 - public name; the capture has its own deadlines
        grant_permissions: bool = True,
        user_data_dir: str | None = None,
    ) -> tuple[str | None, str | None]:
        """Return screenshot (base64 JPEG) and text of a page; for a PDF, its first page and text.

        Returns (None, None) if the capture is not evidence: error page, block page, login wall, timeout. The keyword
        arguments are accepted but ignored; the capture code decides when a page is ready and which permissions it gets.
        """
        try:
            with recorded_cancellation("the browser"):
                seen = await self.observe(url)
        except CacheError as error:
            logger.warning("%s cannot be captured: %s", url, error)
            lose_page(error)
            return None, None
        if not seen.is_evidence:
            logger.warning("%s is not evidence: %s %s", url, seen.outcome.value, seen.detail)
            lose_page(no_evidence(seen))
            return None, None
        return await _screenshot_b64(seen), seen.text


class PageManager:
    """Current page of a browser context. A closed page is replaced."""

    def __init__(self, context: Any, logger: Any) -> None:
        self._context = context
        self._logger = logger
        self.current: Any = None

    async def get(self) -> Any:
        """Return the current page; open one if necessary."""
        if self.current is None or self.current.is_closed():
            self._logger.debug("opening a page")
            self.current = await self._context.new_page()
        return self.current

    def dispose(self) -> None:
        """Drop the reference to the page. Its context closes it."""
        self.current = None


async def _pdf_or_mirror(url: str, capture: Callable[[str], Awaitable[Observation]]) -> Observation:
    """Capture a URL. If it is a PDF of arXiv and the server sends no PDF, capture it from the mirror."""
    seen = await capture(url)
    mirror = arxiv_mirror(url)
    if mirror is None or _is_readable_pdf(seen):
        return seen
    mirrored = await capture(mirror)
    return mirrored if _is_readable_pdf(mirrored) else seen


def _is_readable_pdf(seen: Observation) -> bool:
    return seen.kind is PageKind.PDF and seen.is_evidence


async def _screenshot_b64(seen: Observation) -> str | None:
    """Return the screenshot of a page, or of the first page of a PDF."""
    tiles = seen.screenshots if seen.kind is PageKind.WEB else seen.screenshots[:1]
    shot = await run_image_job(join_tiles, tiles)
    return None if shot is None else base64.b64encode(shot).decode("ascii")


def html_to_markdown(html: str) -> str:
    """Convert HTML to Markdown, without line wrapping and images.

    HTML with more than 170,000 tags, comments and entities per MiB becomes lines of text. Takes up to 1 s per MiB.
    """
    if is_dense(html, len(html)):
        return _lines_of(html)
    converter = TextConverter()
    converter.ignore_images = True
    converter.unicode_snob = True
    return converter.handle(html).strip()


def _lines_of(html: str) -> str:
    """Return the text between tags as lines, in linear time: each pattern ends within the part that is searched."""
    for pattern, closing in _NO_TEXT:
        head, end, tail = html.rpartition(closing)
        html = pattern.sub("\n", head + end) + tail
    lines = (" ".join(unescape(line).split()) for line in html.splitlines())
    return "\n".join(filter(None, lines))


_NO_TEXT = (
    (re.compile(r"<script\b.*?(?=</script)", re.IGNORECASE | re.DOTALL), "</script"),
    (re.compile(r"<style\b.*?(?=</style)", re.IGNORECASE | re.DOTALL), "</style"),
    (re.compile(r"<!--.*?-->", re.DOTALL), "-->"),
    (re.compile(r"</?[a-z!?][^>]*>", re.IGNORECASE), ">"),
)
"""Patterns without text, with their ends. An end in capitals is not searched for: the rest then counts as text."""
