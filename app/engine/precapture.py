"""Capture of all cited pages before judging."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from answers.citations import unique_urls
from answers.submission import Submission
from app.async_tools import unwrapped
from app.engine.runtime import Runtime
from cache.capture import Capture
from cache.errors import BrowserUnavailable, CacheError
from cache.urls import canonical_key


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedPage:
    """Outcome of capturing one cited page.

    ``capture`` is None if the capture could not be stored; ``error`` is the reason. ``known``: an earlier capture was
    used.
    """

    url: str
    capture: Capture | None
    known: bool = False
    error: str = ""

    @property
    def outcome(self) -> str:
        return "not stored" if self.capture is None else self.capture.outcome.value

    @property
    def is_conclusive(self) -> bool:
        """Whether claims about the page can be judged: it is evidence, or it is known not to exist."""
        return self.capture is not None and (self.capture.is_evidence or self.capture.gone)


def cited_in(submissions: Iterable[Submission]) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Map (agent, task) to the cited URLs, each with the names of the answers that cite it."""
    cited: dict[tuple[str, str], dict[str, list[str]]] = {}
    for submission in submissions:
        urls = cited.setdefault((submission.agent, submission.task_id), {})
        for answer in submission.answers:
            for url in unique_urls(answer.text):
                urls.setdefault(url, []).append(answer.name)
    return cited


async def capture_pages(
    runtime: Runtime,
    urls: Iterable[str],
    on_page: Callable[[CapturedPage], None],
    *,
    refresh: bool,
    near: datetime | None = None,
) -> list[CapturedPage]:
    """Capture each page once, concurrently within the limits. ``on_page`` is called for each page.

    Pages of hosts that time out come last.

    Unless ``refresh`` is set, pages with evidence are not captured again, so an interrupted run can be resumed.
    ``near`` is the time at which the pages were cited.

    Raises:
        BrowserUnavailable: Nothing can be captured on this machine.
    """
    first_spelling = {canonical_key(url): url for url in reversed(list(urls))}
    pages: list[CapturedPage] = []

    async def capture_one(url: str) -> None:
        with runtime.pages.slow_hosts.limited(url):
            pages.append(await _page(runtime, canonical_key(url), url, refresh=refresh, near=near))
        on_page(pages[-1])

    with unwrapped(BrowserUnavailable):
        await runtime.pages.slow_hosts.run_by_host(reversed(first_spelling.values()), capture_one)
    return pages


async def _page(runtime: Runtime, key: str, url: str, *, refresh: bool, near: datetime | None) -> CapturedPage:
    try:
        before = await runtime.index.find(key)
        capture = await runtime.pages.get(url, refresh=refresh, near=near)
    except BrowserUnavailable:
        raise
    except CacheError as error:
        return CapturedPage(url=url, capture=None, error=str(error))
    return CapturedPage(url=url, capture=capture, known=before is not None and before.id == capture.id)
