"""Captures of the labelled pages, each from its own host name on a local server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from cache.capture import Capturer, Observation
from cache.egress.proxy import EgressProxy
from tests.labelled.labels import LabelledPage, labelled_pages
from tests.standin.documents import image_bytes
from tests.standin.local_hosts import LocalHostsResolver
from tests.standin.web import Reply, StandInWeb, Visit

_PICTURES = ("dawn", "i/1")


@asynccontextmanager
async def _served(pages: Sequence[LabelledPage]) -> AsyncIterator[tuple[EgressProxy, int]]:
    """Yield an egress proxy that allows only the hosts of the pages, and the port of their server."""
    answers = {url: page for page in pages for url in (page.url, page.final_url)}

    def answer(visit: Visit) -> Reply:
        here = f"https://{visit.headers['host'].partition(':')[0]}{visit.target}"
        page = answers.get(here)
        if page is None:
            return Reply(status=404)
        if here != page.final_url:
            return Reply.redirect(_local(page.final_url, site.port))
        return Reply.html(page.html, status=page.status)

    picture = image_bytes(90, 60, kind="JPEG")
    async with StandInWeb() as site:
        site.pages.update(
            {f"/{name}.jpg": Reply(headers={"Content-Type": "image/jpeg"}, body=picture) for name in _PICTURES}
        )
        site.pages.update({urlsplit(url).path or "/": answer for url in answers})
        hosts = frozenset(urlsplit(url).hostname or "" for url in answers)
        allowed = frozenset(f"{host}:{site.port}" for host in hosts)
        async with EgressProxy(allowed, resolver=LocalHostsResolver(hosts)) as proxy:
            yield proxy, site.port


def _local(url: str, port: int) -> str:
    parts = urlsplit(url)
    return parts._replace(scheme="http", netloc=f"{parts.hostname}:{port}", fragment="").geturl()


async def capture_labelled_pages(
    make: Callable[[EgressProxy], Capturer], *, every: int = 1
) -> Mapping[str, Observation]:
    """Return the captures of the pages (only of each ``every``-th one) by the capturer of ``make``, by name."""
    pages = labelled_pages()[every // 2 :: every]
    async with _served(pages) as (proxy, port):
        capturer = make(proxy)
        try:
            seen = await asyncio.gather(*(capturer.capture(_local(page.url, port)) for page in pages))
        finally:
            await capturer.aclose()
    return {page.name: each for page, each in zip(pages, seen, strict=True)}
