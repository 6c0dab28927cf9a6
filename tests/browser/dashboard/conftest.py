"""Service with its dashboard on PostgreSQL, scripted judging, and a real Chromium."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio
import uvicorn
from patchright.async_api import Browser, BrowserContext, Dialog, Page, async_playwright
from PIL import Image, ImageDraw

from app.jobs.execution import EvaluateJob
from app.server.application import create_app, server_config
from app.service import Service
from cache.capture import CaptureOutcome, Observation, PageKind
from cache.pages import PageCache
from rubrics.verdict import Quote
from tests.fakes.judged import JudgedByText
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.sandbox import installed_browser
from tests.fakes.settings import settings_for_tests
from tests.integration.app.conftest import patient_database_clients, postgres_url  # noqa: F401 - fixtures

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text("utf-8")
JUDGE = """
from judges.registry import judge

@judge(task="{task}", description="Name what {task} is about.", version="3")
async def asked(ctx):
    ctx.check("said", bool(ctx.answer.text))
"""
TASKS = ("rivers", "bridges", "towers")
LAPTOP, PHONE = (1280, 800), (390, 844)
WAIT_MS = 120_000
_numbers = count(1)


class TextPageCapturer:
    """Capturer that renders the text recorded for a URL as a picture."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.blocked: set[str] = set()
        self.unplaced: set[str] = set()
        self.title = "A page"

    async def capture(self, url: str) -> Observation:
        text = self.texts[url]
        lines = [(start, min(len(text), start + 80)) for start in range(0, len(text), 80)]
        places = {
            "version": 1,
            "unit": 10_000,
            "lines": [[low, high, 0, 300, 200 + 150 * nth, 7000, 140] for nth, (low, high) in enumerate(lines[:60])],
        }
        picture = Image.new("RGB", (600, 900), "white")
        ImageDraw.Draw(picture).text((20, 20), text.encode("ascii", "replace").decode()[:1500], fill="black")
        shot = io.BytesIO()
        picture.save(shot, "JPEG", quality=60)
        return Observation(
            url=url,
            outcome=CaptureOutcome.LOGIN_WALL if url in self.blocked else CaptureOutcome.OK,
            captured_at=datetime.now(UTC),
            duration_s=0.1,
            backend="picture capturer",
            final_url=url,
            http_status=200,
            kind=PageKind.WEB,
            title=self.title,
            text=text,
            screenshots=(shot.getvalue(),),
            places=None if url in self.unplaced else json.dumps(places).encode(),
        )

    async def aclose(self) -> None:
        pass


@dataclass(slots=True)
class Served:
    """A running service. ``judging`` holds the results of answers, ``capturer`` the texts of pages."""

    url: str
    service: Service
    judging: JudgedByText
    capturer: TextPageCapturer
    key: str | None
    http: httpx.AsyncClient
    pages: PageCache

    async def submit(self, agent: str, text: str, *, task: str = "rivers", name: str = "answer_1", **more: Any) -> str:
        """Submit one answer and return the id of its job."""
        body = {"agent": agent, "task_id": task, "answers": [{"name": name, "text": text}], **more}
        accepted = await self.http.post("/v1/submissions", json=body)
        assert accepted.status_code == 202, accepted.text
        return str(accepted.json()["jobs"][0]["id"])

    async def wait_for_job(self, job_id: str) -> dict[str, Any]:
        """Wait until the job has ended and return it."""
        async with asyncio.timeout(240):
            while True:
                job: dict[str, Any] = (await self.http.get(f"/v1/jobs/{job_id}")).json()
                if job["status"] in {"succeeded", "failed", "cancelled"}:
                    return job
                await asyncio.sleep(0.03)

    async def result(self, agent: str, text: str, **more: Any) -> str:
        """Submit an answer, wait, and return the id of its result."""
        job = await self.wait_for_job(await self.submit(agent, text, **more))
        assert job["result_id"], job
        return str(job["result_id"])

    async def capture(self, url: str, text: str, *, title: str = "A page") -> str:
        """Store a page as evidence and return its id."""
        self.capturer.texts[url], self.capturer.title = text, title
        return (await self.pages.get(url)).id

    def quote(self, page_id: str, url: str, words: str) -> Quote:
        start = self.capturer.texts[url].index(words)
        return Quote(text=words, page_id=page_id, start=start, end=start + len(words))


OpenDashboard = Callable[..., AbstractAsyncContextManager[Served]]


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """Yield the URL of a migrated database, which is dropped afterwards."""
    name = f"dashboard_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE migrated")
    yield server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def open_dashboard(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> OpenDashboard:  # noqa: F811
    """Function that opens an empty service on a free port.

    ``settings`` are overrides, ``real_judges`` runs real judges, ``judge_folder`` is a folder of task files that
    replaces ours.
    """
    folder = tmp_path_factory.mktemp("dashboard")
    judges = folder / "judges"
    judges.mkdir()
    for task in TASKS:
        (judges / f"{task}.py").write_text(JUDGE.format(task=task))

    @asynccontextmanager
    async def opened(
        *,
        evaluate: EvaluateJob | None = None,
        real_judges: bool = False,
        judge_folder: Path | None = None,
        workers: int = 1,
        **settings: Any,
    ) -> AsyncIterator[Served]:
        stack = ExitStack()
        database = stack.enter_context(fresh_database(postgres_url))
        chosen = settings_for_tests(data_dir=folder / "data", database_url=database, **settings)
        judging, capturer = JudgedByText(), TextPageCapturer()
        app = create_app(
            chosen,
            workers=workers,
            runtime=scripted_runtime(judge_folder or judges, capturer.texts),
            evaluate=None if real_judges else evaluate or judging,
        )
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)  # requests before the server has started wait
        listener.setblocking(False)
        port = listener.getsockname()[1]
        server = uvicorn.Server(server_config(app, host="127.0.0.1", port=port))
        key = chosen.api_keys[0].get_secret_value() if chosen.api_keys else None
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        url = f"http://127.0.0.1:{port}"
        with stack:
            # While the shared event loop is busy, the server may close an idle connection on which a request waits.
            limits = httpx.Limits(max_keepalive_connections=0)
            client = httpx.AsyncClient(base_url=url, headers=headers, limits=limits)
            async with app.router.lifespan_context(app), client as http:
                serving = asyncio.create_task(server.serve(sockets=[listener]))
                service: Service = app.state.service
                pages = PageCache(capturer, service.runtime.blobs, service.runtime.index)
                try:
                    yield Served(
                        url=url, service=service, judging=judging, capturer=capturer, key=key, http=http, pages=pages
                    )
                finally:
                    server.should_exit = True
                    await serving
                    await pages.aclose()

    return opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(open_dashboard: OpenDashboard) -> AsyncIterator[Served]:
    """Service on the local machine without keys or sign-in."""
    async with open_dashboard() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    program = installed_browser()
    assert program is not None, "no Chromium on this machine; `make setup` installs one"
    async with async_playwright() as driver:
        # The browser opens only our own pages, so it needs no sandbox, which root could not use.
        browser = await driver.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=WAIT_MS)
        yield browser
        await browser.close()


@dataclass(slots=True)
class Reader:
    """A browser page, with a record of requests to other origins, script errors and dialogs."""

    context: BrowserContext
    page: Page
    url: str
    external_requests: list[str] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)

    async def go(self, path: str) -> None:
        await self.page.goto(f"{self.url}{path}")

    async def dismiss_dialog(self, dialog: Dialog) -> None:
        self.page_errors.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    async def text(self, selector: str) -> str:
        return " ".join((await self.page.locator(selector).first.inner_text()).split())

    async def wait_until(self, condition: str) -> None:
        """Wait for a condition in the page. The driver's own wait needs ``eval``, which our policy forbids."""
        async with asyncio.timeout(WAIT_MS / 1000):
            while not await self.page.evaluate(condition):  # noqa: ASYNC110 - the state is in the browser
                await asyncio.sleep(0.03)

    async def violations(self) -> list[str]:
        """Return the axe findings for WCAG 2.1 A and AA and best practices."""
        found = await self.page.evaluate(
            AXE + ";axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"
            ".then(done => done.violations.map(one =>"
            " one.id + ': ' + one.nodes.map(node => node.html.slice(0, 200)).join(' | ')))"
        )
        return [str(one) for one in found]


@asynccontextmanager
async def open_reader(
    chromium: Browser, url: str, *, size: tuple[int, int] = LAPTOP, dark: bool = False, scripts: bool = True
) -> AsyncIterator[Reader]:
    """Open a new browser profile for a service, and record requests to other origins."""
    context = await chromium.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
    )
    context.set_default_timeout(WAIT_MS)
    page = await context.new_page()
    reader = Reader(context=context, page=page, url=url)
    page.on(
        "request",
        lambda request: reader.external_requests.append(request.url) if not request.url.startswith(url) else None,
    )
    page.on("pageerror", lambda error: reader.page_errors.append(str(error)))
    page.on("dialog", lambda dialog: asyncio.ensure_future(reader.dismiss_dialog(dialog)))
    page.on("console", lambda said: reader.page_errors.append(said.text) if said.type == "error" else None)
    try:
        yield reader
    finally:
        await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def reader(chromium: Browser, served: Served) -> AsyncIterator[Reader]:
    async with open_reader(chromium, served.url) as one:
        yield one
