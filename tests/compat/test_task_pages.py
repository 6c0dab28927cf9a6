"""A script run by the service uses the page cache of its task as if it had the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cache.blobs import BlobStore
from cache.capture import Capture
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from cache.urls import canonical_key
from mind2web2.hosted_objects import HostedCache
from mind2web2.task_pages import TaskFolder, TaskPages
from mind2web2.utils.cache_filesys import CacheFileSys
from tests.compat.fixed_pages import FixedPages, hosted_cache

URLS = ("https://a.com/Rules", "https://www.b.com/page", "https://c.com/old")
SPELLINGS = (*URLS, "http://a.com/rules/", "https://b.com/page?utm_source=x", "https://a.com/moved", "https://d.com")


async def captures() -> tuple[PageCache, BlobStore, dict[str, Capture]]:
    blobs = BlobStore.open("memory://")
    pages = PageCache(FixedPages({url: f"Text of {url}" for url in URLS}), blobs, MemoryIndex())
    return pages, blobs, {url: await pages.get(url) for url in URLS}


def folder(path: Path) -> CacheFileSys:
    cache = CacheFileSys(path)
    for url in URLS:
        final = "https://a.com/moved" if url.endswith("Rules") else None
        cache.put_web(url, f"Text of {url}", None, final)
    cache.record_failure("https://e.com", "HTTP 500")
    return cache


async def hosted(tmp_path: Path, used: list[str]) -> HostedCache:
    pages, blobs, by_url = await captures()
    real = folder(tmp_path / "real")
    task_folder = TaskFolder(
        pages={url: by_url[url] for url in real.get_all_urls()},
        keys={canonical_key(url): url for url in real.get_all_urls()},
        redirects=real.redirects(),
        failures=real.failures(),
    )
    (tmp_path / "own").mkdir()
    listed = TaskPages(pages, [by_url[URLS[1]]], task_folder, on_use=lambda capture: used.append(capture.url))
    return hosted_cache(tmp_path / "own", listed, blobs)


def state(cache: CacheFileSys) -> dict[str, Any]:
    """Return what a script can see of a page cache, without times."""
    found = [url for url in SPELLINGS if cache.has(url) == "web"]
    return {
        "has": [cache.has(url) for url in SPELLINGS],
        "lookup": [cache.lookup(url) for url in SPELLINGS],
        "strict": [cache.lookup(url, ignore_case=False, follow_redirects=False) for url in SPELLINGS],
        "texts": [cache.get_web(url) for url in found],
        "urls": cache.get_all_urls(),
        "summary": cache.summary(),
        "redirects": cache.redirects(),
        "failures": {key: record["reason"] for key, record in cache.failures().items()},
        "failure": (cache.failure("http://e.com/") or {}).get("attempts"),
    }


CHANGES: dict[str, Callable[[CacheFileSys], Any]] = {
    "none": lambda cache: None,
    "put": lambda cache: cache.put_web("https://d.com", "own", None),
    "replace": lambda cache: cache.put_web("https://a.com/Rules", "own", None),
    "replace with PDF": lambda cache: cache.put_pdf("https://c.com/old", b"%PDF-"),
    "remove and put": lambda cache: (cache.remove("https://c.com/old"), cache.put_web("https://d.com", "own", None)),
    "clear": lambda cache: cache.clear(),
    "clear failure": lambda cache: cache.clear_failure("https://e.com"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("looked_before", [False, True], ids=["unseen", "seen"])
async def test_cache_of_a_hosted_script_behaves_like_the_folder(
    change: Callable[[CacheFileSys], Any], looked_before: bool, tmp_path: Path
):
    real, cache = folder(tmp_path / "folder"), await hosted(tmp_path, [])
    for each in (real, cache):
        if looked_before:
            state(each)
        change(each)
    assert state(cache) == state(real)


async def test_only_pages_that_a_script_finds_are_used(tmp_path: Path):
    used: list[str] = []
    cache = await hosted(tmp_path, used)
    assert (cache.has("https://d.com"), used) == (None, [])
    assert (cache.has("https://A.com/rules"), used) == ("web", [URLS[0]])
    assert cache.get_web(URLS[0])[0] == f"Text of {URLS[0]}"
    assert used == [URLS[0]]
    assert len(cache.get_all_urls()) == 3
    assert used == [URLS[0], *URLS[1:]]
