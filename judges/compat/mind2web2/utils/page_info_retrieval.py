"""Browser and page managers for live pages, under the public toolkit's names."""

from __future__ import annotations

import asyncio
import base64
from types import TracebackType
from typing import Any

import html2text

from cache.capture import Observation, PageKind
from cache.errors import CacheError
from cache.page_text.tiles import join_tiles
from mind2web2.api_tools.tool_pdf import make_blank_png_b64
from mind2web2.external_services import external_services

__all__ = ["BatchBrowserManager", "PageManager", "html_to_markdown", "make_blank_png_b64"]


class BatchBrowserManager:
    """Captures pages in its own browser, which starts on first use and is stopped by ``stop``."""

    def __init__(self, headless: bool = True, max_retries: int = 3, max_concurrent_pages: int = 10) -> None:
        """``headless`` and ``max_retries`` are stored but not used; the capture code decides about both."""
        self.headless = headless
        self.max_retries = max_retries
        self.max_concurrent_pages = max_concurrent_pages
        self._live = external_services().live_pages(max_concurrent_pages)

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
        return await self._live.observe(url)

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
            seen = await self.observe(url)
        except CacheError as error:
            logger.warning("%s cannot be captured: %s", url, error)
            return None, None
        if not seen.is_evidence:
            logger.warning("%s is not evidence: %s %s", url, seen.outcome.value, seen.detail)
            return None, None
        tiles = seen.screenshots if seen.kind is PageKind.WEB else seen.screenshots[:1]
        shot = await asyncio.to_thread(join_tiles, tiles)
        return None if shot is None else base64.b64encode(shot).decode("ascii"), seen.text


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


def html_to_markdown(html: str) -> str:
    """Convert HTML to Markdown, without line wrapping and images."""
    converter = html2text.HTML2Text(bodywidth=0)
    converter.ignore_images = True
    converter.unicode_snob = True
    return converter.handle(html).strip()
