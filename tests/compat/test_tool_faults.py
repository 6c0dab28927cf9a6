"""Faults of a script's tools that the script ignores: what it decides afterwards is not judged."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Observation
from cache.errors import BrowserUnavailable
from mind2web2 import ArxivTool, GoogleMapsTool, PDFParser
from mind2web2.external_services import services_of_run
from mind2web2.live_browser import LiveBrowser
from mind2web2.llm_client.judge import answer_scope
from mind2web2.local_services import LocalServices
from mind2web2.task_pages import TaskPages
from mind2web2.utils.page_info_retrieval import BatchBrowserManager
from tests.compat.fixed_pages import hosted_cache
from tests.compat.scripted import LOGGER, ScriptedClient, initialized_evaluator, outcomes
from tests.compat.test_tools import KEY, as_json
from tests.compat.web import Reply, Request, running_web

SEEN = Observation(
    url="https://a.com/x",
    outcome=CaptureOutcome.OK,
    captured_at=datetime(2026, 1, 2, tzinfo=UTC),
    duration_s=0.0,
    backend="test",
    text="A page. " * 100,
)


async def outcome_after(use_tool: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[str, str | None]:
    """Return the outcome of a leaf that a script decides after it has ignored the error of a tool."""
    with answer_scope():
        e = initialized_evaluator(ScriptedClient())
        with suppress(Exception):
            await use_tool()
        e.add_custom_node(False, "found", "The tool finds it")
        summary = e.get_summary()
    assert summary["final_score"] == 0.0
    assert (summary["status"] == "complete") is (summary["score"]["value"] is not None)
    return outcomes(summary)["found"]


NOT_FOUND = ("failed", "check_false")
LOST = ("not_judged", "extraction_failed")


def maps_reply(request: Request) -> Reply:
    status = request.query.get("address", "") or request.query["origins"]
    return Reply(b"down", "text/plain", 502) if status == "down" else as_json({"status": status, "results": []})


@pytest.fixture
def maps(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleMapsTool]:
    monkeypatch.setenv("GOOGLE_MAPS_API_KEY", KEY)
    web_pages = dict.fromkeys(("/maps/api/geocode/json", "/maps/api/distancematrix/json"), maps_reply)
    with running_web(web_pages) as web:
        tool = GoogleMapsTool(base_url=web.origin, timeout_s=240)
        tool.client.retry_over_query_limit = False
        yield tool
        tool.client.session.close()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("ZERO_RESULTS", NOT_FOUND),
        ("REQUEST_DENIED", LOST),
        ("OVER_QUERY_LIMIT", LOST),
        ("down", LOST),
    ],
)
async def test_fault_of_google_maps_is_not_a_verdict(status: str, outcome: tuple[str, str], maps: GoogleMapsTool):
    assert await outcome_after(lambda: maps.get_address_information(status)) == outcome
    assert await outcome_after(lambda: maps.calculate_distance(status, "Louvre")) == outcome


def arxiv_reply(request: Request) -> Reply:
    status = int(request.query["id_list"])
    return Reply(b"", "text/plain", status)


@pytest.mark.parametrize(("status", "outcome"), [("400", NOT_FOUND), ("503", LOST), ("429", LOST)])
async def test_fault_of_arxiv_is_not_a_verdict(status: str, outcome: tuple[str, str]):
    with running_web({"/api/query": arxiv_reply}) as web:
        tool = ArxivTool(query_url=f"{web.origin}/api/query", delay_s=0, retries=0, timeout_s=240)
        assert await outcome_after(lambda: tool.search_arxiv_by_id(status)) == outcome
        tool.client._session.close()


class Web(LocalServices):
    """External services that see one page, or have no browser."""

    def __init__(self, seen: Observation | BrowserUnavailable) -> None:
        self._seen = seen

    async def fetch(self, url: str, *, deadline_s: float = 0.0) -> Observation:
        return await self.observe(url)

    def live_pages(self, max_pages: int, *, deadline_s: float = 0.0) -> LiveBrowser:
        return self

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        if isinstance(self._seen, BrowserUnavailable):
            raise self._seen
        return self._seen

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


FAILED = replace(SEEN, outcome=CaptureOutcome.HTTP_ERROR, http_status=503, text="")
PAGES = {
    "page": (SEEN, NOT_FOUND),
    "gone": (replace(FAILED, http_status=404, gone=True), NOT_FOUND),
    "down": (FAILED, ("not_judged", "capture_failed")),
    "wall": (replace(FAILED, outcome=CaptureOutcome.CAPTCHA), ("not_judged", "capture_blocked")),
    "slow": (replace(FAILED, outcome=CaptureOutcome.TIMEOUT, http_status=None), ("not_judged", "timeout")),
}


@pytest.mark.parametrize("use", ["pdf", "capture", "capture_page"])
@pytest.mark.parametrize("page", PAGES)
async def test_page_that_a_tool_cannot_read_is_not_a_verdict(use: str, page: str):
    seen, outcome = PAGES[page]
    with services_of_run(Web(seen)):
        manager = BatchBrowserManager(max_retries=1)
        tools: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "pdf": lambda: PDFParser().extract(seen.url),
            "capture": lambda: manager.capture(seen.url, LOGGER),
            "capture_page": lambda: manager.capture_page(seen.url, LOGGER),
        }
        assert await outcome_after(tools[use]) == outcome


def capture_of(seen: Observation) -> Capture:
    return Capture(
        id="c1",
        url=seen.url,
        key=seen.url,
        outcome=seen.outcome,
        captured_at=seen.captured_at,
        duration_s=0.0,
        backend="test",
        gone=seen.gone,
    )


@pytest.mark.parametrize("page", ["gone", "down"])
@pytest.mark.parametrize("read", ["has", "get_web", "get_all_urls"])
async def test_failed_capture_in_the_page_cache_of_a_script_is_not_a_verdict(page: str, read: str, tmp_path: Path):
    seen, outcome = PAGES[page]
    pages = TaskPages(None, [capture_of(seen)], None)  # type: ignore[arg-type]
    cache = hosted_cache(tmp_path, pages, BlobStore.open("memory://"))

    async def look_up() -> None:
        getattr(cache, read)(*([] if read == "get_all_urls" else [seen.url]))

    assert await outcome_after(look_up) == outcome
    cache.put_web(seen.url, "text of the script", None)
    assert await outcome_after(look_up) == NOT_FOUND
