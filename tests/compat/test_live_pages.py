"""Live captures of a script with an empty cache, by a real browser."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mind2web2 import CacheFileSys
from tests.compat.scripted import ScriptedClient, initialized_evaluator, nodes, outcomes, text_of
from tests.compat.web import Reply, Web, running_web
from tests.fakes.sandbox import sandbox_variables

pytestmark = pytest.mark.browser

ARTICLE = b"""<!doctype html><title>Lamps</title><h1>Lamps</h1><p id=late>Nothing yet.</p>
<script>
setTimeout(() => { late.textContent = "The green lamp costs 40 crowns in every one of our shops." }, 50)
</script>"""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    pages = {
        "/lamps": Reply(ARTICLE),
        "/down": Reply(b"", status=451),
        "/gone": Reply(b"<p>This page was removed.</p>", status=404),
        "/empty": Reply(b"", status=404),
        "/long": Reply(b"<p>" + b"A long text. " * 300, status=403),
    }
    with running_web(pages) as web:
        monkeypatch.setenv("ASSAY_EGRESS_ALLOW", web.host_port)
        for name, value in sandbox_variables().items():
            monkeypatch.setenv(name, value)
        yield web


def browsers() -> set[int]:
    """Return the process ids of the browsers below this process. Other tests of the process may keep one open."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "chrom" in child.name().lower():
                found.add(child.pid)
    return found


def test_live_pages_are_evidence_and_the_browser_ends_with_the_run(site: Web, tmp_path: Path):
    client = ScriptedClient({"gone": False})
    others = browsers()

    async def run() -> dict[str, Any]:
        e = initialized_evaluator(client, CacheFileSys(tmp_path))
        for name in ("lamps", "gone", "long", "empty", "down"):
            await e.verify(name, e.add_leaf(name, name), f"{site.origin}/{name}")
        await e.verify("private", e.add_leaf("private", "private"), "http://127.0.0.1:9/x")
        assert browsers() - others
        return e.get_summary()

    summary = asyncio.run(run())
    assert browsers() <= others
    assert outcomes(summary) == {
        "lamps": ("passed", None),
        "gone": ("failed", "refuted"),
        "long": ("passed", None),
        "empty": ("failed", "source_gone"),
        "down": ("not_judged", "capture_failed"),
        "private": ("not_judged", "egress_denied"),
    }
    shown = [text_of(call["messages"]) for call in client.calls]
    assert "The green lamp costs 40 crowns" in shown[0]
    assert any("This page was removed." in text for text in shown)
    assert len(nodes(summary)["lamps"]["page_digests"]) == 2
    stored = {".jpg": 3, ".txt": 3, ".json": 1, ".jsonl": 1}
    assert Counter(path.suffix for path in tmp_path.iterdir()) == stored
