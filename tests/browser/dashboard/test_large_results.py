"""A result of ten thousand leaves: CPU time of its views, open claims in pages, and scrolling."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable

import httpx
import pytest
import pytest_asyncio

from tests.browser.dashboard.conftest import Served
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, group, leaf, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def large(served: Served) -> str:
    from rubrics.verdict import Quote

    def lf(n):
        out = (PASSED, FAILED, NOT_JUDGED, PASSED, PASSED)[n % 5]
        return leaf(
            f"leaf{n}",
            out,
            claim=f"The ferry number {n} leaves Sund Quay at {n % 24}:15 on Saturday and arrives later",
            sources=[f"https://site.test/page{n % 40}"],
            critical=n % 13 == 0,
            reasoning="The timetable in the page says that this ferry leaves at this time, and there is no other line. "
            * 2,
        )

    def make():
        leaves = [lf(n) for n in range(10000)]
        return rubric_of(
            *[group(f"part{g}", *leaves[g * 100 : (g + 1) * 100], sequential=g % 3 == 0) for g in range(100)],
            task_id="bridges",
        )

    text = served.judging.register("big", make)
    return await served.result("giant", text, task="bridges")


async def test_time(served: Served, large: str):
    from app.storage import results as rows
    from app.dashboard import result_cache, tree_rows, results as R
    from app.dashboard.api_access import Api
    import httpx
    cache = None
    for route in served.service.__dict__ if hasattr(served.service,"__dict__") else (): pass
    def cpu(): return time.process_time()
    async def timed(name, f):
        for _ in range(3):
            s = cpu(); x = await f(); print(f"X {name} {1000*(cpu()-s):.0f} ms", file=sys.stderr)
        return x
    async def fetch():
        async with served.service.database.begin() as c:
            return await rows.get_result(c, large)
    rec = await timed("pg fetch", fetch)
    print("X MB", len(rec.body)/1e6, file=sys.stderr)
    from app.dashboard.rendering import Renderer
    saved = {}
    orig = result_cache._parse
    def parse(r):
        s=time.thread_time(); x = orig(r); print(f"X parse in thread {1000*(time.thread_time()-s):.0f}", file=sys.stderr); saved["r"]=r; return x
    result_cache._parse = parse
    og = result_cache.ResultCache.get
    async def get(self, api, rid):
        saved["cache"]=self
        s=cpu(); x = await og(self, api, rid); print(f"X get {1000*(cpu()-s):.0f}", file=sys.stderr); return x
    result_cache.ResultCache.get = get
    op = Renderer.page
    def page(self, *a, **k):
        s=time.thread_time(); x=op(self,*a,**k); print(f"X render {1000*(time.thread_time()-s):.0f}", file=sys.stderr); return x
    Renderer.page = page
    async def view():
        if "cache" in saved: saved["cache"]._cached.clear()
        return await served.http.get(f"/results/{large}", timeout=100)
    await timed("first view", view)
    await timed("later view", lambda: served.http.get(f"/results/{large}", timeout=100))
    await timed("first view", view)
    await timed("api client", lambda: served.http.get(f"/v1/results/{large}", timeout=100))
    await timed("answer", lambda: served.http.get(f"/v1/results/{large}/answer", timeout=100))
    await timed("open", lambda: served.http.get(f"/results/{large}/open", timeout=100))
