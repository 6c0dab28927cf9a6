"""Pre-capture of the pages that an agent's answers cite, into the page caches of its tasks.

The URLs of a task are found by ``regex_find_urls`` and by models, and are kept in ``<cache>/<agent>/<task_id>.json``.
Each page is captured once; what cannot be captured is recorded, and evaluation does not request it again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from cache.capture import Observation
from cache.errors import CacheError
from cache.pacing import SlowHosts
from judges.errors import JudgeError, LLMOutputUnusable
from mind2web2.llm_client.judge import HarnessError, JudgeContentError
from mind2web2.page_source import store_observation
from mind2web2.prompts.cache_prompts import llm_extraction_prompts
from mind2web2.submission import list_answer_files
from mind2web2.utils.cache_filesys import CacheFileSys, CacheIndexError, overview_file, write_overview
from mind2web2.utils.misc import normalize_url_markdown
from mind2web2.utils.page_info_retrieval import capture_problem, detect_block
from mind2web2.utils.url_tools import URLs, is_valid_url, page_form, regex_find_urls

__all__ = [
    "DEFAULT_URL_MODELS",
    "CitedPage",
    "Crawl",
    "CrawlOutcome",
    "UrlModels",
    "detect_block",
    "group_urls",
]

DEFAULT_URL_MODELS = ("gpt-6-luna", "gpt-4.1")
MAX_URLS = 1000
"""Number of URLs of one reply that are used."""
MAX_URL_CHARS = 4096
_MAX_REQUESTS = 30


class CrawlOutcome(StrEnum):
    """Outcome of one page."""

    CACHED = "cached"
    """It was stored before."""
    SKIPPED = "skipped"
    """It failed before, and old failures are not retried."""
    STORED = "stored"
    FAILED = "failed"
    BLOCKED = "blocked"
    """The site refused the capture, for example with a bot check."""
    ERROR = "error"
    """The capture raised an error of this program. Nothing is recorded."""


_LEVELS = {outcome: logging.WARNING for outcome in (CrawlOutcome.FAILED, CrawlOutcome.BLOCKED, CrawlOutcome.ERROR)}


@dataclass(frozen=True, slots=True)
class CitedPage:
    """Page that answers cite.

    Attributes:
        url: URL that is captured.
        variants: All spellings in the answers, ``url`` first, in the order of ``group_urls``.
        answers: Names of the answers that cite it.
    """

    url: str
    variants: tuple[str, ...]
    answers: tuple[str, ...]


class Visitor(Protocol):
    """Captures pages as the public toolkit does; see ``BatchBrowserManager.visit``."""

    async def visit(self, url: str, logger: Any) -> Observation: ...


@dataclass
class UrlModels:
    """Models that list the URLs of an answer. After a permanent error, a model is not asked again."""

    client: Any
    models: Sequence[str]
    logger: logging.Logger
    _failed: dict[str, str] = field(default_factory=dict)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_REQUESTS))

    async def find(self, text: str) -> tuple[list[str], list[str]]:
        """Return the URLs that any of the models finds in a text, and why models did not reply."""
        replies = await asyncio.gather(*(self._ask(model, text) for model in self.models))
        found = [url for reply in replies if isinstance(reply, list) for url in reply]
        problems = [reply for reply in replies if isinstance(reply, str)]
        return list(dict.fromkeys(filter(None, map(_usable_url, found)))), problems

    async def _ask(self, model: str, text: str) -> list[str] | str:
        """Return the URLs in the reply of a model, or why there is none."""
        async with self._slots:
            if model in self._failed:
                return self._failed[model]
            messages = [{"role": "system", "content": llm_extraction_prompts}, {"role": "user", "content": text}]
            try:
                reply = await self.client.async_response(model=model, messages=messages, response_format=URLs)
            except JudgeError as error:
                problem = f"{model} did not list the URLs of an answer: {error}"
                if not isinstance(error, JudgeContentError | LLMOutputUnusable):
                    self._failed[model] = problem
                self.logger.warning("%s", problem)
                return problem
        return reply.urls[:MAX_URLS] if isinstance(reply, URLs) else f"{model} listed no URLs of an answer"


def group_urls(found: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> list[CitedPage]:
    """Return the pages of a task in the order in which they are first cited.

    ``found`` maps the name of each answer to the URLs that the finder and the models found. Spellings with the same
    ``page_form`` are one page. Spellings that the finder found come first, then those with https, then the shortest.
    """
    spellings: dict[str, dict[str, bool]] = {}
    answers: dict[str, dict[str, None]] = {}
    for name, (by_finder, by_models) in found.items():
        for url, is_certain in [*((url, True) for url in by_finder), *((url, False) for url in by_models)]:
            form = page_form(url)
            known = spellings.setdefault(form, {})
            known[url] = known.get(url, False) or is_certain
            answers.setdefault(form, {})[name] = None
    pages = []
    for form, known in spellings.items():
        variants = sorted(known, key=lambda url: (not known[url], not url.lower().startswith("https://"), len(url)))
        pages.append(CitedPage(variants[0], tuple(variants), tuple(answers[form])))
    return pages


def _usable_url(written: str) -> str | None:
    """Return a URL of a model's reply with a scheme; None if it is not a URL."""
    url = normalize_url_markdown(written)
    if "://" not in url:
        url = f"https://{url}"
    return url if len(url) <= MAX_URL_CHARS and not any(map(str.isspace, url)) and is_valid_url(url) else None


@dataclass
class Crawl:
    """Crawl of the tasks of an agent.

    Attributes:
        url_models: None: URLs are found without models.
        retry_failed: Capture pages again that failed in an earlier crawl.
        refresh_urls: Find the URLs again, even if answers and models are the same.
        max_pages: Concurrent captures.
        report: Called with each line of progress.
    """

    agent: str
    answers_root: Path
    cache_root: Path
    visitor: Visitor
    logger: logging.Logger
    url_models: UrlModels | None = None
    retry_failed: bool = False
    refresh_urls: bool = False
    max_pages: int = 5
    report: Callable[[str], None] = lambda line: None
    _slow_hosts: SlowHosts = field(default_factory=SlowHosts)

    async def run(self, task_ids: Iterable[str]) -> Counter[CrawlOutcome]:
        """Capture the pages of tasks, and those that failed once more at the end. Return the number of each outcome.

        Raises:
            CacheIndexError: A JSON file of a page cache cannot be read.
            HarnessError: No browser can be started.
            OSError: An answer cannot be read, or the page cache cannot be written.
        """
        folders = [self.cache_root / self.agent / task_id for task_id in task_ids]
        tasks = [_Task(await asyncio.to_thread(CacheFileSys, folder)) for folder in folders]
        problems = [problem for found in await asyncio.gather(*map(self._find_urls, tasks)) for problem in found]
        for problem in dict.fromkeys(problems):
            self.report(problem)
        await self._capture_all([(task, page) for task in tasks for page in task.pages], retry_failed=self.retry_failed)
        failed = [
            (task, page) for task in tasks for page in task.pages if task.outcomes[page.url] is CrawlOutcome.FAILED
        ]
        if failed:
            self.report(f"Failed pages, once more: {len(failed)}")
            await self._capture_all(failed, retry_failed=True)
        for task in tasks:
            await asyncio.to_thread(task.save)
        return Counter(outcome for task in tasks for outcome in task.outcomes.values())

    async def _capture_all(self, pages: Sequence[tuple[_Task, CitedPage]], *, retry_failed: bool) -> None:
        """Capture pages and store their outcomes in their tasks. Pages of hosts that time out come last."""
        slots = asyncio.Semaphore(self.max_pages)
        number = count(1)

        async def capture(cited: tuple[_Task, CitedPage]) -> None:
            task, page = cited
            async with slots:
                outcome, reason = await self._capture(task, page, retry_failed=retry_failed)
            task.outcomes[page.url] = outcome
            line = f"{outcome.value:8}{page.url}{f' ({reason})' if reason else ''}"
            self.report(f"[{next(number)}/{len(pages)}] {line}")
            extra = {"task_id": task.task_id, "url": page.url, "outcome": outcome.value, "reason": reason}
            self.logger.log(_LEVELS.get(outcome, logging.INFO), "%s", line, extra=extra)

        try:
            await self._slow_hosts.run_by_host(pages, capture, url_of=lambda cited: cited[1].url)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def _find_urls(self, task: _Task) -> list[str]:
        """Find the URLs of a task, or read them from the file of the last crawl, and save them.

        Return why models did not list URLs.
        """
        files = await asyncio.to_thread(list_answer_files, self.answers_root / self.agent / task.task_id)
        answers = {answer.name: await asyncio.to_thread(answer.read_bytes) for answer in files}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in answers.items()}
        models = [] if self.url_models is None else list(self.url_models.models)
        if not self.refresh_urls and await asyncio.to_thread(task.is_current, digests, models):
            self.logger.debug("%s: the URLs of the last crawl are used", task.task_id)
            return []
        texts = {name: data.decode("utf-8", errors="replace") for name, data in answers.items()}
        by_finder = await asyncio.to_thread(lambda: {name: regex_find_urls(text) for name, text in texts.items()})
        by_models: dict[str, list[str]] = {name: [] for name in texts}
        problems: list[str] = []
        if self.url_models is not None:
            self.report(f"{task.task_id}: asking {', '.join(models)} for URLs")
            replies = await asyncio.gather(*map(self.url_models.find, texts.values()))
            by_models = {name: urls for name, (urls, _) in zip(texts, replies, strict=True)}
            problems = [problem for _, found in replies for problem in found]
        urls_by_answer = {name: (by_finder[name], by_models[name]) for name in texts}
        task.pages = await asyncio.to_thread(group_urls, urls_by_answer)
        task.found = {"answer_digests": digests, "url_models": models, "url_extraction_complete": not problems}
        self.logger.info("%s: %d pages in %d answers", task.task_id, len(task.pages), len(texts))
        await asyncio.to_thread(task.save)
        return problems

    async def _capture(self, task: _Task, page: CitedPage, *, retry_failed: bool) -> tuple[CrawlOutcome, str]:
        """Return the outcome of a page, and why it has not been captured."""
        cache = task.cache
        if task.stored_key(page) is not None:
            return CrawlOutcome.CACHED, ""
        failures = [failure for url in page.variants if (failure := cache.failure(url)) is not None]
        if failures and not retry_failed:
            return CrawlOutcome.SKIPPED, f"failed before: {failures[0].get('reason')}"
        try:
            seen = await self.visitor.visit(page.url, self.logger)
            self._slow_hosts.record(seen)
            problem = capture_problem(seen)
            if problem is None:
                await asyncio.to_thread(store_observation, cache, page.url, seen)
                return CrawlOutcome.STORED, ""
            await asyncio.to_thread(
                cache.record_failure, page.url, problem.reason, blocked=problem.blocked, gone=seen.gone
            )
            return CrawlOutcome.BLOCKED if problem.blocked else CrawlOutcome.FAILED, problem.reason
        except (CacheIndexError, HarnessError):
            raise
        except (CacheError, OSError, ValueError, RuntimeError) as error:
            self.logger.exception("capture of %s", page.url)
            return CrawlOutcome.ERROR, f"{type(error).__name__}: {error}"


@dataclass
class _Task:
    """Task of a crawl: its page cache, and the file with its URLs beside the cache."""

    cache: CacheFileSys
    pages: list[CitedPage] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, CrawlOutcome] = field(default_factory=dict)

    @property
    def task_id(self) -> str:
        return self.cache.task_dir.name

    def stored_key(self, page: CitedPage) -> str | None:
        """Return the key of the stored page in any of its spellings, with their letter case; None without one."""
        found = (self.cache.lookup(url, ignore_case=False) for url in page.variants)
        return next((key for key in found if key is not None), None)

    def is_current(self, digests: Mapping[str, str], models: Sequence[str]) -> bool:
        """Read the file of the last crawl. Return whether it has all URLs of the same answers by the same models."""
        found = {"answer_digests": dict(digests), "url_models": list(models), "url_extraction_complete": True}
        try:
            stored = json.loads(overview_file(self.cache.task_dir).read_bytes())
            if any(stored[name] != value for name, value in found.items()):
                return False
            pages = [
                CitedPage(url, tuple(map(str, stored["url_variants"][url])), tuple(map(str, answers)))
                for url, answers in stored["urls"].items()
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False
        self.pages, self.found = pages, found
        return True

    def save(self) -> None:
        """Write the file, with the keys of February and those of autumn."""
        keys = {page.url: key for page in self.pages if (key := self.stored_key(page)) is not None}
        types = {url: self.cache.has(key) for url, key in keys.items()}
        failed = [
            page.url
            for page in self.pages
            if page.url not in types and any(self.cache.failure(url) is not None for url in page.variants)
        ]
        more = {
            "url_variants": {page.url: list(page.variants) for page in self.pages},
            **self.found,
            "failed_urls": failed,
        }
        write_overview(self.cache.task_dir, {page.url: page.answers for page in self.pages}, types, more)
