"""Answers that cite hosts which do not respond: other answers and other hosts do not wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import pytest

from app.engine.pipeline import AnswerPages
from cache.backends.http import HttpCapturer
from cache.backends.router import RoutedCapturer
from cache.blobs import BlobStore
from cache.capture_index import MemoryIndex
from cache.egress.proxy import EgressProxy
from cache.pacing import FairLimit, SlowHosts
from cache.pages import PageCache
from tests.standin.web import Reply, StandInWeb, Visit

ARTICLE = Reply.html("<title>Ada</title><h1>Ada Lovelace</h1><p>" + "She wrote the first program in 1843. " * 20)
HOSTS, HANGING_HOSTS, PAGES_PER_HOST = 16, 12, 5


class Hosts:
    """Web servers, of which the first ones never respond. ``waiting`` counts the requests to these."""

    def __init__(self, hanging: int, all_hosts: int) -> None:
        self.waiting = 0
        self.more_wait = asyncio.Event()
        self.servers = [StandInWeb(default_answer=self._hang if nth < hanging else ARTICLE) for nth in range(all_hosts)]

    async def _hang(self, visit: Visit) -> Reply:
        self.waiting += 1
        self.more_wait.set()
        await asyncio.Event().wait()
        return ARTICLE

    async def wait_for(self, waiting: int) -> None:
        while self.waiting < waiting:
            self.more_wait.clear()
            await self.more_wait.wait()

    def urls(self, server: StandInWeb, pages: int = PAGES_PER_HOST) -> list[str]:
        return [server.url(f"/{nth}") for nth in range(pages)]


@asynccontextmanager
async def hosts_with_cache(
    *, hanging: int, all_hosts: int, deadline_s: float = 3600.0
) -> AsyncIterator[tuple[Hosts, PageCache]]:
    async with AsyncExitStack() as stack:
        hosts = Hosts(hanging, all_hosts)
        for server in hosts.servers:
            await stack.enter_async_context(server)
        proxy = await stack.enter_async_context(EgressProxy(frozenset(each.host_port for each in hosts.servers)))
        capturer = HttpCapturer(proxy, semaphore=nullcontext(), deadline_s=deadline_s)
        routed = RoutedCapturer(capturer, limit=FairLimit(5, lend_after_s=0.2))
        slow_hosts = SlowHosts(deadline_s=0.5)
        cache = PageCache(routed, BlobStore.open("memory://"), MemoryIndex(), slow_hosts=slow_hosts)
        stack.push_async_callback(cache.aclose)
        yield hosts, cache


def ignore(done: int) -> None:
    """Ignore the progress."""


@pytest.mark.parametrize("is_shared", [False, True], ids=["page of one answer", "page of all answers"])
async def test_page_of_another_answer_is_captured_while_an_answer_waits_for_its_hosts(is_shared: bool):
    hanging_answers = 3
    async with hosts_with_cache(hanging=HANGING_HOSTS, all_hosts=HOSTS) as (hosts, cache):
        fast = hosts.servers[-1].url("/fast")
        cited = [url for server in hosts.servers for url in hosts.urls(server)] + ([fast] if is_shared else [])
        answers = [asyncio.create_task(AnswerPages(cache).capture_all(cited, ignore)) for _ in range(hanging_answers)]
        await hosts.wait_for(5)
        async with asyncio.timeout(60):
            assert "Ada Lovelace" in (await AnswerPages(cache).evidence_for(fast)).text
        assert not any(answer.done() for answer in answers)
        assert hosts.servers[-1].hits["/fast"] == 1
        for answer in answers:
            answer.cancel()
        await asyncio.wait(answers)
