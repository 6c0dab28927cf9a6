"""Cost of one page lookup among 10,000: the exact URL, an equivalent URL, and a missing page."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cache.urls import canonical_key
from mind2web2 import CacheFileSys

PAGES = 10_000
ASKED = 2_000
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """Microseconds of processor time per lookup."""

    exact_us: float
    variant_us: float
    miss_us: float


def of_the_public_layout() -> LookUp:
    """Return the cost of ``CacheFileSys.has`` on a folder on disk."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as place:
        written = CacheFileSys(place)
        for number in range(PAGES):
            written.put_web(_url(number), "A page.", None)
        written.save()
        return _look_up(CacheFileSys(Path(place)).has)


def of_our_key() -> LookUp:
    """Return the cost of a dict keyed by ``cache.urls.canonical_key``."""
    index = {canonical_key(_url(number)): number for number in range(PAGES)}
    return _look_up(lambda url: index.get(canonical_key(url)))


def _url(number: int) -> str:
    return f"https://www.site-{number % 211}.example/section/{number % 17}/page-{number}?id={number}&view=full"


def _look_up(find: Callable[[str], Any]) -> LookUp:
    numbers = range(0, PAGES, PAGES // ASKED)
    exact = [_url(number) for number in numbers]
    variants = [f"{url.replace('https://www.', 'http://')}&utm_source=mail&utm_medium=x" for url in exact]
    missing = [url.replace("/page-", "/nothing-") for url in exact]
    assert all(find(url) is not None for url in (*exact, *variants))
    assert all(find(url) is None for url in missing)
    return LookUp(exact_us=_each(find, exact), variant_us=_each(find, variants), miss_us=_each(find, missing))


def _each(find: Callable[[str], Any], urls: Sequence[str]) -> float:
    """Return the best of several rounds, because other load on the machine can only add time."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.thread_time()
        for url in urls:
            find(url)
        best = min(best, time.thread_time() - began)
    return 1e6 * best / len(urls)
