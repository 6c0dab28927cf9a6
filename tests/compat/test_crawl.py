"""Pre-capture of cited pages: URLs of a task, outcomes, and the command ``mind2web2 cache``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cache.capture import CaptureOutcome, Observation, PageKind
from mind2web2 import CacheFileSys
from mind2web2.cli import main
from mind2web2.crawl import CitedPage, Crawl, UrlModels, group_urls
from mind2web2.utils.url_tools import URLs
from tests.compat.scripted import LOGGER
from tests.compat.test_tools import make_pdf
from tests.compat.web import Reply, running_web
from tests.fakes.sandbox import sandbox_variables

Outcome = CaptureOutcome


class Visitor:
    """Visitor with fixed observations by URL. The last one of a URL is repeated."""

    def __init__(self, pages: Mapping[str, list[dict[str, Any] | Exception]]) -> None:
        self._pages = {url: list(observations) for url, observations in pages.items()}
        self.visited: list[str] = []

    async def visit(self, url: str, logger: Any) -> Observation:
        self.visited.append(url)
        observations = self._pages.get(url, [{}])
        seen = observations.pop(0) if len(observations) > 1 else observations[0]
        if isinstance(seen, Exception):
            raise seen
        fields: dict[str, Any] = {"outcome": Outcome.OK, "http_status": 200, "text": f"text of {url}", "final_url": url}
        at = datetime(2026, 1, 2, tzinfo=UTC)
        return Observation(url=url, captured_at=at, duration_s=0.1, backend="fixed", **fields | seen)


class Models:
    """Client whose models reply with fixed URLs, or raise."""

    def __init__(self, replies: Mapping[str, list[str] | Exception]) -> None:
        self._replies = replies
        self.asked: list[str] = []

    async def async_response(self, *, model: str, messages: list[dict[str, str]], response_format: Any) -> URLs:
        assert response_format is URLs
        assert "https://a.example" in messages[-1]["content"]
        self.asked.append(model)
        reply = self._replies[model]
        if isinstance(reply, Exception):
            raise reply
        return URLs(urls=reply)


@pytest.fixture
def crawl(tmp_path: Path) -> Callable[..., Crawl]:
    def make(visitor: Visitor | None = None, models: Models | None = None, **options: Any) -> Crawl:
        names = [] if models is None else list(models._replies)
        return Crawl(
            agent="me",
            answers_root=tmp_path / "answers",
            cache_root=tmp_path / "cache",
            visitor=visitor or Visitor({}),
            logger=LOGGER,
            url_models=None if models is None else UrlModels(models, names, LOGGER),
            **options,
        )

    return make


def answer(root: Path, text: str, run: int = 1, task: str = "t") -> Path:
    path = root / "answers" / "me" / task / f"answer_{run}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def task_file(root: Path, task: str = "t") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "cache" / "me" / f"{task}.json").read_text("utf-8"))
    return content


def test_spellings_of_a_page_are_captured_once_under_the_best_url():
    found: dict[str, tuple[list[str], list[str]]] = {
        "answer_1.md": (
            ["http://a.example/x?utm_source=y", "https://b.example"],
            ["http://a.example/x", "https://a.example/x"],
        ),
        "answer_2.md": (["https://www.a.example/x/", "https://a.example/s?q=C%23"], ["https://c.example"]),
    }
    assert group_urls(found) == [
        CitedPage(
            "https://www.a.example/x/",
            (
                "https://www.a.example/x/",
                "http://a.example/x?utm_source=y",
                "https://a.example/x",
                "http://a.example/x",
            ),
            ("answer_1.md", "answer_2.md"),
        ),
        CitedPage("https://b.example", ("https://b.example",), ("answer_1.md",)),
        CitedPage("https://a.example/s?q=C%23", ("https://a.example/s?q=C%23",), ("answer_2.md",)),
        CitedPage("https://c.example", ("https://c.example",), ("answer_2.md",)),
    ]


async def test_pages_and_failures_are_stored_with_the_urls_of_the_task(crawl: Callable[..., Crawl], tmp_path: Path):
    one = answer(tmp_path, "https://a.example/new http://a.example/doc.pdf https://a.example/403 https://a.example/500")
    answer(tmp_path, "https://a.example/new, https://a.example/404, https://gone.example, https://a.example/odd", 2)
    visitor = Visitor(
        {
            "https://a.example/new": [{"final_url": "https://a.example/final"}],
            "http://a.example/doc.pdf": [{"kind": PageKind.PDF, "pdf": b"%PDF-1.4"}],
            "https://a.example/403": [{"outcome": Outcome.BLOCKED, "http_status": 403, "text": "Forbidden"}],
            "https://a.example/500": [{"outcome": Outcome.HTTP_ERROR, "http_status": 500, "text": "Oops"}],
            "https://a.example/404": [{"outcome": Outcome.HTTP_ERROR, "http_status": 404, "text": "No such page"}],
            "https://gone.example": [{"outcome": Outcome.DNS_ERROR, "gone": True, "text": "", "http_status": None}],
            "https://a.example/odd": [ValueError("a bug")],
        }
    )
    outcomes = await crawl(visitor).run(["t"])
    assert outcomes == {"stored": 3, "blocked": 1, "failed": 2, "error": 1}
    again = ["https://a.example/500", "https://gone.example"]
    assert sorted(visitor.visited) == sorted([*visitor._pages, *again])
    assert visitor.visited[-2:] == again

    cache = CacheFileSys(tmp_path / "cache" / "me" / "t")
    assert cache.get_web("https://a.example/final")[0] == "text of https://a.example/new"
    assert cache.get_pdf("https://a.example/doc.pdf") == b"%PDF-1.4"
    assert cache.get_web("https://a.example/404")[0] == "No such page"
    records = {key: (record["blocked"], record["attempts"]) for key, record in cache.failures().items()}
    assert records == {
        "https://a.example/403": (True, 1),
        "https://a.example/500": (False, 2),
        "https://gone.example": (False, 2),
    }
    assert cache.failures()["https://gone.example"]["gone"] is True

    written = task_file(tmp_path)
    urls = ["https://a.example/new", "http://a.example/doc.pdf", "https://a.example/403", "https://a.example/500"]
    urls += ["https://a.example/404", "https://gone.example", "https://a.example/odd"]
    assert (written["agent_name"], written["task_id"], written["total_unique_urls"]) == ("me", "t", 7)
    assert written["all_unique_urls"] == list(written["urls"]) == urls
    assert written["urls"]["https://a.example/new"] == ["answer_1.md", "answer_2.md"]
    assert written["url_types"] == {
        "https://a.example/new": "web",
        "http://a.example/doc.pdf": "pdf",
        "https://a.example/404": "web",
    }
    assert written["failed_urls"] == ["https://a.example/403", "https://a.example/500", "https://gone.example"]
    assert written["answer_digests"]["answer_1.md"] == hashlib.sha256(one.read_bytes()).hexdigest()


async def test_stored_pages_and_old_failures_are_not_captured_again(crawl: Callable[..., Crawl], tmp_path: Path):
    answer(tmp_path, "https://a.example/1 https://a.example/2 https://a.example/3")
    cache = CacheFileSys(tmp_path / "cache" / "me" / "t")
    cache.put_web("http://www.a.example/1/", "one", None)
    cache.record_failure("https://a.example/2", "HTTP status 503")
    cache.put_web("https://a.example/start", "three", None, "https://a.example/3")
    visitor = Visitor({})
    assert await crawl(visitor).run(["t"]) == {"cached": 2, "skipped": 1}
    assert visitor.visited == []
    assert await crawl(visitor, retry_failed=True).run(["t"]) == {"cached": 2, "stored": 1}
    assert CacheFileSys(cache.task_dir).failures() == {}
    assert task_file(tmp_path)["failed_urls"] == []


async def test_urls_are_the_union_of_the_finder_and_all_models(crawl: Callable[..., Crawl], tmp_path: Path):
    answer(tmp_path, "https://a.example/x and example.com")
    models = Models({"one": ["example.com", "http://a.example/x"], "two": ["https://b.example/y", "see above", ""]})
    await crawl(models=models).run(["t"])
    written = task_file(tmp_path)
    assert written["all_unique_urls"] == ["https://a.example/x", "https://example.com", "https://b.example/y"]
    assert written["url_variants"]["https://a.example/x"] == ["https://a.example/x", "http://a.example/x"]
    assert (written["url_models"], written["url_extraction_complete"]) == (["one", "two"], True)


async def test_urls_are_reused_for_the_same_answers_and_models(crawl: Callable[..., Crawl], tmp_path: Path):
    path = answer(tmp_path, "https://a.example/x")
    models = Models({"one": ["https://b.example"], "two": []})

    async def number_of_requests(**options: Any) -> int:
        before = len(models.asked)
        await crawl(models=models, **options).run(["t"])
        return len(models.asked) - before

    assert await number_of_requests() == 2
    first = task_file(tmp_path)
    assert await number_of_requests() == 0
    assert task_file(tmp_path) == first
    assert await number_of_requests(refresh_urls=True) == 2
    path.write_text("https://a.example/x changed", "utf-8")
    assert await number_of_requests() == 2
    await crawl(models=Models({"one": []})).run(["t"])
    assert task_file(tmp_path)["all_unique_urls"] == ["https://a.example/x"]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


def test_missing_key_exits_with_2_and_names_it(folders: Path, capsys: pytest.CaptureFixture[str]):
    answer(folders, "https://a.example")
    assert main(["cache", "me"]) == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err


@pytest.mark.browser
def test_command_captures_the_pages_of_an_agent(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    paper = make_pdf(1)
    pages = {
        "/lamps": Reply(b"<!doctype html><title>Lamps</title><p>The green lamp costs 40 crowns.</p>"),
        "/doc.pdf": Reply(paper, "application/pdf"),
        "/down": Reply(b"<p>Try again later.</p>", status=503),
    }
    with running_web(pages) as web:
        monkeypatch.setenv("ASSAY_EGRESS_ALLOW", web.host_port)
        for name, value in sandbox_variables().items():
            monkeypatch.setenv(name, value)
        answer(folders, f"{web.origin}/lamps, {web.origin}/doc.pdf")
        answer(folders, f"[down]({web.origin}/down)", task="u")
        assert main(["cache", "me", "--no-llm", "--headless"]) == 0
        assert [request.path for request in web.requests].count("/down") == 2
        out, err = capsys.readouterr()
        assert out == "me: 3 pages in 2 tasks: 0 cached, 0 skipped, 2 stored, 1 failed, 0 blocked, 0 error\n"
        down = f"failed  {web.origin}/down (HTTP status 503)"
        lines = err.splitlines()
        assert lines[3:5] == ["Failed pages, once more: 1", f"[1/1] {down}"]
        assert down in "".join(lines[:3])
        assert "--retry-failed" in lines[5]
        requests = len(web.requests)
        assert main(["cache", "me", "--no-llm"]) == 0
        out, err = capsys.readouterr()
        assert "2 cached, 1 skipped" in out
        assert "(failed before: HTTP status 503)" in err
        assert len(web.requests) == requests
    cache = CacheFileSys(folders / "cache" / "me" / "t")
    text, screenshot = cache.get_web(f"{web.origin}/lamps")
    assert text == "The green lamp costs 40 crowns." and screenshot is not None
    assert cache.get_pdf(f"{web.origin}/doc.pdf") == paper
