"""Captures with the outcomes of the public toolkit: block pages, repeated attempts, whole pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from PIL import Image

from cache.capture import CaptureOutcome, Observation, PageKind
from mind2web2 import BatchBrowserManager, Capture
from mind2web2.utils.page_info_retrieval import detect_block
from tests.compat.scripted import LOGGER
from tests.compat.web import Reply, Request, Web, running_web
from tests.fakes.sandbox import sandbox_variables


@pytest.mark.parametrize(
    ("status", "title", "text", "is_block"),
    [
        (401, "A page", "x" * 2999, True),
        (999, None, None, True),
        (403, "A page", "x" * 3000, False),
        (429, "A page", "Some text.", False),
        (200, "Just a moment...", "", True),
        (200, "shop.example - Access denied", "", True),
        (200, "CAPTCHA", "", True),
        (200, "Momentum just a moment later", "Some text.", False),
        (200, "shop.example", "Please verify you are human by completing the action below.", True),
        (200, "shop.example", "Our systems have detected unusual traffic from your computer\nnetwork.", True),
        (200, "shop.example", "Please confirm that you\u2019re not a robot." + "x" * 3000, False),
    ],
)
def test_short_page_of_a_bot_check_is_a_block(status: int, title: str | None, text: str | None, is_block: bool):
    assert (detect_block(status, title, text) is not None) is is_block


class Browser:
    """Browser with fixed observations. The last one is repeated."""

    def __init__(self, *observations: Observation | Exception) -> None:
        self._observations = list(observations)
        self.visited: list[str] = []

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        assert once
        self.visited.append(url)
        seen = self._observations.pop(0) if len(self._observations) > 1 else self._observations[0]
        if isinstance(seen, Exception):
            raise seen
        return seen

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


def seen(outcome: CaptureOutcome, status: int | None = None, text: str = "", **fields: object) -> Observation:
    return Observation(
        url="https://a.com",
        outcome=outcome,
        captured_at=datetime(2026, 1, 2, tzinfo=UTC),
        duration_s=0.1,
        backend="fixed",
        http_status=status,
        text=text,
        **fields,  # type: ignore[arg-type]
    )


@pytest.fixture
def manager_of() -> Callable[..., tuple[BatchBrowserManager, Browser]]:
    def make(*observations: Observation | Exception, max_retries: int = 3) -> tuple[BatchBrowserManager, Browser]:
        manager, browser = BatchBrowserManager(max_retries=max_retries), Browser(*observations)
        manager._live, manager.retry_s = browser, 0.0
        return manager, browser

    return make


LONG = "A long article. " * 200


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (
            seen(CaptureOutcome.OK, 200, "text", final_url="https://b.com"),
            Capture(None, "text", None, False, 200, "https://b.com"),
        ),
        (seen(CaptureOutcome.HTTP_ERROR, 404, "No such page"), Capture(text="No such page", status=404)),
        (seen(CaptureOutcome.BLOCKED, 403, LONG), Capture(text=LONG, status=403)),
        (seen(CaptureOutcome.BLOCKED, 403, "No"), Capture(error="HTTP status 403", blocked=True, status=403)),
        (
            seen(CaptureOutcome.LOGIN_WALL, 200, "Sign in", detail="a form"),
            Capture(error="login_wall: a form", blocked=True, status=200),
        ),
        (seen(CaptureOutcome.DAMAGED, 200, kind=PageKind.PDF, detail="x"), Capture(error="damaged: x", status=200)),
    ],
)
async def test_capture_has_a_page_or_a_reason(observation: Observation, expected: Capture, manager_of):
    manager, browser = manager_of(observation)
    captured = await manager.capture("www.a.com/x?utm_source=y", LOGGER)
    assert captured == expected
    assert captured.ok is (expected.error is None)
    assert browser.visited == ["https://www.a.com/x"]


@pytest.mark.parametrize(
    ("observation", "visits"),
    [
        (seen(CaptureOutcome.TIMEOUT), 3),
        (seen(CaptureOutcome.DNS_ERROR, gone=True), 1),
        (seen(CaptureOutcome.BLOCKED, 403), 1),
    ],
)
async def test_only_errors_and_timeouts_are_repeated(observation: Observation, visits: int, manager_of):
    manager, browser = manager_of(observation)
    assert not (await manager.capture("https://a.com", LOGGER)).ok
    assert len(browser.visited) == visits


@pytest.mark.parametrize(
    "first",
    [
        seen(CaptureOutcome.BLOCKED, 403),
        seen(CaptureOutcome.DAMAGED, 200, kind=PageKind.PDF),
    ],
)
async def test_arxiv_pdf_comes_from_the_mirror_if_the_server_has_none(first: Observation, manager_of):
    pdf = seen(CaptureOutcome.OK, 200, "A paper", kind=PageKind.PDF)
    manager, browser = manager_of(first, pdf)
    assert (await manager.capture("https://arxiv.org/pdf/2301.00001", LOGGER)).text == "A paper"
    assert browser.visited == ["https://arxiv.org/pdf/2301.00001", "https://export.arxiv.org/pdf/2301.00001"]


TALL = b"<!doctype html><title>Tall</title><h1>Tall page</h1><div style='height:19000px'></div><p>Bottom.</p>"
CHECK = b"""<!doctype html><title>Just a moment...</title>
<p>Checking your browser before accessing this site, please wait.
This process is automatic. Your browser will redirect to your requested content shortly. Please allow up to 15 seconds.
The security of the connection is reviewed before the site continues. Do not close this window while the check runs.</p>
<script>setTimeout(() => { document.cookie = "passed=1"; location.reload(); }, 9000)</script>"""
PASSED = b"<!doctype html><title>Lamps</title><p>The green lamp costs 40 crowns.</p>"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    visits: list[Request] = []

    def check(request: Request) -> Reply:
        visits.append(request)
        return Reply(PASSED) if len(visits) > 1 else Reply(CHECK, status=403)

    pages: dict[str, Reply | Callable[[Request], Reply]] = {
        "/tall": Reply(TALL),
        "/check": check,
        "/paper.pdf": Reply(b"<!doctype html><title>Abstract</title><p>The paper is about lamps.</p>"),
        "/blocked": Reply(b"<!doctype html><title>Access denied</title><p>Go away.</p>", status=403),
    }
    with running_web(pages) as web:
        monkeypatch.setenv("ASSAY_EGRESS_ALLOW", web.host_port)
        for name, value in sandbox_variables().items():
            monkeypatch.setenv(name, value)
        yield web


@pytest.mark.browser
async def test_browser_captures_whole_pages_and_waits_for_checks(site: Web):
    async with BatchBrowserManager() as manager:
        tall = await manager.capture(f"{site.origin}/tall", LOGGER)
        assert (tall.ok, tall.status, tall.final_url) == (True, 200, f"{site.origin}/tall")
        assert tall.text is not None and "Bottom." in tall.text
        width, height = Image.open(io.BytesIO(base64.b64decode(tall.screenshot_b64 or ""))).size
        assert width == 1100 and height > 19_000 * 1100 / 1280

        checked = await manager.capture(f"{site.origin}/check", LOGGER)
        assert (checked.ok, checked.text) == (True, "The green lamp costs 40 crowns.")

        page = await manager.capture(f"{site.origin}/paper.pdf", LOGGER)
        assert (page.ok, page.text) == (True, "The paper is about lamps.")

        blocked = await manager.capture(f"{site.origin}/blocked", LOGGER)
        assert (blocked.ok, blocked.blocked, blocked.status, blocked.text) == (False, True, 403, None)
    assert [request.path for request in site.requests if request.path == "/blocked"] == ["/blocked"]
