"""Captures of the pages of this set, each from a separate host on a local server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from cache.capture import Capturer, Observation
from cache.egress.proxy import EgressProxy
from tests.page_shapes.shapes import Shape
from tests.standin.local_hosts import LocalHostsResolver
from tests.standin.web import Answer, Reply, StandInWeb, Visit


@asynccontextmanager
async def serve_shapes(shapes: Mapping[str, Shape]) -> AsyncIterator[tuple[EgressProxy, Mapping[str, str]]]:
    """Yield an egress proxy that allows only the hosts of these pages, and the URL of each page."""
    hosts = {f"{name}.example": shape for name, shape in shapes.items()}

    def answer(visit: Visit) -> Reply:
        shape = hosts[visit.headers["host"].partition(":")[0]]
        return shape.reply if visit.path == shape.path else shape.beside.get(visit.path, Reply(status=404))

    paths: Mapping[str, Answer] = {path: answer for shape in shapes.values() for path in (shape.path, *shape.beside)}
    async with StandInWeb(paths) as site:
        allowed = frozenset(f"{host}:{site.port}" for host in hosts)
        async with EgressProxy(allowed, resolver=LocalHostsResolver(frozenset(hosts))) as proxy:
            yield proxy, {name: f"http://{name}.example:{site.port}{shape.path}" for name, shape in shapes.items()}


async def capture_shapes(
    make: Callable[[EgressProxy], Capturer], shapes: Mapping[str, Shape]
) -> Mapping[str, Observation]:
    """Return the captures of all pages by the capturer that ``make`` creates, by name."""
    async with serve_shapes(shapes) as (proxy, urls):
        capturer = make(proxy)
        try:
            seen = await asyncio.gather(*map(capturer.capture, urls.values()))
        finally:
            await capturer.aclose()
    return dict(zip(urls, seen, strict=True))


def faults(shape: Shape, seen: Observation) -> list[str]:
    """Return the faults of a capture of a page of this set."""
    text = " ".join(seen.text.split())
    found = [] if seen.is_evidence is shape.evidence else [f"{seen.outcome.value}: {seen.detail}"]
    found += [f"not read: {each[:50]}" for each in shape.shown if each not in text]
    found += [f"read although hidden: {each[:50]}" for each in shape.unseen if each in text]
    found += [f"detail {seen.detail!r} lacks {each!r}" for each in shape.detail if each not in seen.detail]
    return found
