"""Pages panels without scripts, on narrow and dark screens, with a screen reader; their tables and form tokens."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.browser.dashboard.pages_panel import (
    MANY,
    PAGE_TEXT,
    open_shop,  # noqa: F401 - a fixture
    page_state,
)

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]


async def test_capture_page_shows_dependents_accepts_an_upload_and_requires_tokens(shop, tmp_path: Path):
    served, reader, _ = shop
    page = (await page_state(served, MANY))["page_id"]
    await reader.go(f"/pages/{page}")
    assert "login wall" in await reader.text("dl.pairs")
    dependents = await reader.text(".dependents")
    assert "0-many" in dependents and "2-many" in dependents and "other" not in dependents
    assert "Last time: $0.0093" in dependents
    await reader.page.click('button:has-text("Upload")')
    await reader.page.wait_for_selector('h1:has-text("Choose a file")')
    await reader.go(f"/pages/{page}")
    file = tmp_path / "page.txt"
    file.write_text(PAGE_TEXT)
    await reader.page.set_input_files('[data-drop] input[name="file"]', str(file))
    await reader.page.click('button:has-text("Upload")')
    await reader.page.wait_for_selector('pre:has-text("41 metres")')
    assert not reader.page.url.endswith(page)
    assert "captured" in await reader.text("dl.pairs")
    async with httpx.AsyncClient(base_url=served.url) as http:
        for path in ("/pages/changes", "/pages/judge-again", "/pages/changes/chg_1/undo"):
            answer = await http.post(path, data={"action": "flag", "url": MANY})
            assert answer.status_code == 403, path
