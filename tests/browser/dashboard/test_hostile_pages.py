"""Hostile text about pages: URLs, reasons, names, and content from a browser tab."""

from __future__ import annotations

import httpx
import pytest
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import Served, open_reader
from tests.browser.dashboard.test_hostile_text import PAYLOADS, clean, poisoned
from tests.fakes.judged import leaf, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]


async def poisoned_changes(served: Served) -> str:
    """Store every payload as the reason of a page change and as part of URLs; return the URL of the changes."""
    _, _, page = await poisoned(served)
    url = str((await served.http.get(f"/v1/pages/{page}")).json()["url"])
    for payload in PAYLOADS:
        text = clean(payload)
        body = {"action": "flag", "url": url, "reason": text, "by": text[:100]}
        assert (await served.http.post("/v1/pages/changes", json=body)).status_code == 201
    right = "https://right.example/?<img/src=x/onerror=alert(1)>"
    served.capturer.texts[right] = "Something that can be read here, in more than just a few words."
    edit = {"action": "edit", "url": url, "to": right, "reason": clean(PAYLOADS[5]), "by": clean(PAYLOADS[13])[:100]}
    corrected = await served.http.post("/v1/pages/changes", json=edit)
    assert corrected.status_code == 201, corrected.text
    await served.http.post("/v1/pages/changes", json={"action": "flag", "url": url})
    everything = clean("\n".join(PAYLOADS))
    upload = {"text": (None, everything)}
    answer = await served.http.put(f"/v1/pages/{page}/content", files=upload)
    assert answer.status_code == 201, answer.text
    return url


async def test_hostile_text_about_pages_runs_no_script_and_sends_no_request(served: Served, chromium: Browser):
    url = await poisoned_changes(served)
    async with open_reader(chromium, served.url) as reader:
        for view in ("screenshot", "text", "answer"):
            await reader.page.goto(str(httpx.URL(f"{served.url}/pages", params={"url": url})))
            assert await reader.page.locator(".preview-body").get_attribute("data-url") == url
            await reader.page.keyboard.press(str(1 + ("screenshot", "text", "answer").index(view)))
            await reader.page.wait_for_timeout(300)
            await reader.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert "alert(1)" in await reader.page.content()
        for path in ("/pages/captures", "/pages?show=work", "/pages?task=rivers&view=answer"):
            await reader.go(path)
            shown = "alert(1)" in await reader.page.content()
            assert shown or "show=work" in path, path  # the text is shown
        await reader.go("/pages")
        await reader.page.keyboard.press("f")
        await reader.page.wait_for_selector('#pages-message:has-text("Flag")')
        assert reader.external_requests == []
        assert reader.page_errors == []


async def test_url_with_another_scheme_is_not_a_link(served: Served, chromium: Browser):
    def rubric():
        return rubric_of(leaf("a", claim="x", sources=["javascript:alert(1)"]), task_id="bridges")

    await served.result("linker", served.judging.register("linked", rubric), task="bridges")
    async with open_reader(chromium, served.url) as reader:
        await reader.page.goto(f"{served.url}/pages?task=bridges&url=javascript:alert(1)")
        assert "javascript:alert(1)" in await reader.text("#preview h2")
        assert await reader.page.locator("#preview h2 a").count() == 0
        await reader.page.keyboard.press("o")
        assert reader.page_errors == [] and reader.external_requests == []
        links = await reader.page.evaluate("[...document.querySelectorAll('a')].map((one) => one.href)")
        assert [link for link in links if link.startswith("javascript:")] == []
