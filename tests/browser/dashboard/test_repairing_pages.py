"""Repair of blocked pages: priority, mouse and keys, undo, and rejudging of dependent answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.browser.dashboard.pages_panel import (
    FEW,
    FINE,
    MANY,
    PAGE_TEXT,
    RIGHT,
    listed_rows,
    open_shop,  # noqa: F401 - a fixture
    page_state,
    press_keys,
    selected_url,
    wait_for_message,
    wait_for_preview,
)

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

PNG_HEAD = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DROP = """(files) => {
  const data = new DataTransfer();
  for (const [name, type, text, base64] of files) {
    const body = base64 ? Uint8Array.from(atob(base64), (one) => one.charCodeAt(0)) : text;
    data.items.add(new File([body], name, { type }));
  }
  const target = document.querySelector("[data-drop]");
  target.dispatchEvent(new DragEvent("dragover", { dataTransfer: data, cancelable: true, bubbles: true }));
  target.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true, bubbles: true }));
}"""


async def test_pages_are_sorted_shown_and_opened_with_keys_and_answers_are_judged_again(shop):
    served, reader, job = shop
    await reader.go("/pages")
    found = await listed_rows(reader)
    assert [row.split()[0] for row in found] == [MANY, FEW, FINE]
    assert "login wall" in found[0] and "3 claims" in found[0]
    assert "2 of 3" in await reader.text(".tasks")
    assert await selected_url(reader) == MANY
    assert await reader.page.locator("#preview .shots img").count() == 1
    await reader.page.click(".tasks >> text=towers")
    await wait_for_preview(reader, MANY)
    assert "task=towers" in reader.page.url
    await reader.page.click('.urls-head >> text="need work"')
    await reader.page.wait_for_url("**show=work**")
    assert [row.split()[0] for row in await listed_rows(reader)] == [MANY, FEW]
    assert reader.page_errors == []
    await reader.go("/pages")
    await press_keys(reader, "2")
    await reader.page.wait_for_selector('#preview pre:has-text("41 metres")')
    await press_keys(reader, "3")
    await reader.page.wait_for_selector("#preview .prose")
    lit = await reader.page.locator("#preview .prose .on").all_inner_texts()
    assert [one.strip() for one in lit] == ["It is high many."]
    await press_keys(reader, "1")
    await reader.page.wait_for_selector("#preview .shots img")
    assert "view=screenshot" in reader.page.url
    await reader.page.click('#preview .tabs >> text="Text"')
    await reader.page.wait_for_selector('#preview pre:has-text("41 metres")')
    await reader.go("/pages")
    for key, url in (
        ("j", FEW),
        ("j", FINE),
        ("k", FEW),
        ("j", FINE),
        ("n", MANY),
        ("n", FEW),
        ("N", MANY),
        ("N", FEW),
    ):
        await press_keys(reader, key)
        await wait_for_preview(reader, url)
    assert await reader.page.evaluate("document.activeElement.closest('.cited').dataset.url") == FEW
    assert quote(FEW, safe="") in reader.page.url
    await reader.go("/pages")
    await reader.context.route("https://many.example/**", lambda route: route.fulfill(body="there"))
    async with reader.context.expect_page() as opening:
        await press_keys(reader, "o")
    opened = await opening.value
    await opened.wait_for_load_state()
    assert opened.url == MANY
    assert await opened.evaluate("[window.opener, document.referrer]") == [None, ""]
    before = (await served.http.get(f"/v1/jobs/{job}")).json()["result_id"]
    await reader.go("/pages")
    assert "Re-judge 3 affected claims In 1 answer. Last time: $0.0093, 6 calls" in await reader.text(
        "#preview .rejudge"
    )
    await reader.page.click("#preview .rejudge button")
    await wait_for_message(reader, "1 answer is being judged again")
    async with asyncio.timeout(240):
        while (await served.http.get(f"/v1/jobs/{job}")).json()["result_id"] == before:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_urls_are_deleted_flagged_reviewed_and_restored_with_keys(shop):
    served, reader, _ = shop
    await reader.go("/pages")
    await press_keys(reader, "j")
    await wait_for_preview(reader, FEW)
    await press_keys(reader, "d")
    await wait_for_message(reader, "Deleted")
    assert [row.split()[0] for row in await listed_rows(reader)] == [MANY, FINE]
    assert (await page_state(served, FEW))["deleted"]
    await press_keys(reader, "u")
    await wait_for_message(reader, "Undone")
    await wait_for_preview(reader, FEW)
    assert [row.split()[0] for row in await listed_rows(reader)] == [MANY, FEW, FINE]
    assert not (await page_state(served, FEW))["deleted"]
    await press_keys(reader, "u")
    await wait_for_message(reader, "nothing to undo")
    await reader.go(f"/pages?url={FINE}")
    await press_keys(reader, "f")
    await wait_for_message(reader, "Flagged")
    assert (await page_state(served, FINE))["needs_work"]
    await press_keys(reader, "f")
    await wait_for_message(reader, "Flag removed")
    await reader.go("/pages")
    await press_keys(reader, "Space")
    await wait_for_preview(reader, FEW)  # reviewed; the next page that needs work is shown
    assert (await page_state(served, MANY))["reviewed"]
    await reader.page.click('#pages-message >> text="Undo"')
    await wait_for_message(reader, "Undone")
    assert not (await page_state(served, MANY))["reviewed"]
    await reader.go("/pages?task=towers")
    await press_keys(reader, "e")
    field = reader.page.locator('#preview details.edit input[name="to"]')
    assert await field.evaluate("(one) => one === document.activeElement")
    await reader.page.keyboard.type("jdf")
    assert await field.input_value() == "jdf"
    assert await selected_url(reader) == MANY
    await press_keys(reader, "Escape")
    await reader.page.evaluate("document.activeElement.blur()")
    await press_keys(reader, "?")
    assert await reader.page.locator("#keys-help").get_attribute("open") is not None
    assert "choose a file to upload" in await reader.text(".key-list")
    await reader.page.uncheck("#keys-on")
    await reader.page.evaluate("document.activeElement.blur()")
    await press_keys(reader, "d", "j")
    assert await selected_url(reader) == MANY
    assert not (await page_state(served, MANY))["deleted"]


async def test_url_can_be_added_or_corrected_and_the_change_undone(shop):
    served, reader, _ = shop
    await reader.go("/pages")
    await press_keys(reader, "e")
    await reader.page.fill('#preview details.edit input[name="to"]', RIGHT)
    await reader.page.fill('#preview details.edit input[name="reason"]', "a letter is wrong")
    await press_keys(reader, "Enter")
    await wait_for_message(reader, "Corrected")
    assert (await page_state(served, MANY))["to_url"] == RIGHT
    assert RIGHT in await reader.text("#preview .notice")
    await reader.page.wait_for_selector(
        '#pages-rejudge:has-text("Re-judge 3 affected claims In 1 answer. Last time: ")'
    )
    assert "a letter is wrong" in (await reader.page.locator("#preview .changes").text_content() or "")
    await reader.page.evaluate("document.activeElement.blur()")
    await press_keys(reader, "u")
    await wait_for_message(reader, "Undone")
    assert (await page_state(served, MANY))["problem"]
    await reader.go("/pages")
    await press_keys(reader, "a")
    await wait_for_message(reader, "Select a task first")
    await reader.go("/pages?task=towers")
    await press_keys(reader, "a")
    await reader.page.fill('.add input[name="url"]', RIGHT)
    await press_keys(reader, "Enter")
    await wait_for_message(reader, "Added")
    await wait_for_preview(reader, RIGHT)
    assert (await page_state(served, RIGHT))["tasks"] == ["towers"]
    await reader.page.evaluate("document.activeElement.blur()")
    await press_keys(reader, "u")
    await wait_for_message(reader, "Undone")
    assert RIGHT not in " ".join(await listed_rows(reader))


async def test_file_can_be_dropped_or_chosen_with_a_key(shop, tmp_path: Path):
    served, reader, _ = shop
    await reader.go("/pages")
    saved = "<!doctype html><title>Tower</title><p>" + PAGE_TEXT.replace("41", "44")
    await reader.page.evaluate(f"({DROP})({json.dumps([['saved.html', 'text/html', saved, None]])})")
    await wait_for_message(reader, "Repaired")
    page = (await served.http.get(f"/v1/pages/{(await page_state(served, MANY))['page_id']}")).json()
    assert (page["source"], page["provenance"]["as"]) == ("upload", "html")
    await wait_for_preview(reader, MANY)
    both = [["words.txt", "text/plain", PAGE_TEXT.replace("41", "45"), None], ["shot.png", "image/png", None, PNG_HEAD]]
    await reader.page.evaluate(f"({DROP})({json.dumps(both)})")
    await reader.page.wait_for_selector("#preview .shots img")
    page = (await served.http.get(f"/v1/pages/{(await page_state(served, MANY))['page_id']}")).json()
    assert "screenshot-0" in page["blobs"] and page["provenance"]["as"] == "text"
    file = tmp_path / "page.txt"
    file.write_text(PAGE_TEXT)
    # Register the handler before the page opens: the driver intercepts file choosers asynchronously, and the key
    # press could come first.
    reader.page.on("filechooser", lambda _: None)
    await reader.go("/pages")
    async with reader.page.expect_file_chooser() as choosing:
        await press_keys(reader, "x")
    await (await choosing.value).set_files(str(file))
    await wait_for_message(reader, "Repaired")
    assert not (await page_state(served, MANY))["problem"]
