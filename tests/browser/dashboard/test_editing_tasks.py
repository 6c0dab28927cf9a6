"""Tasks in the dashboard: list, page of a task, and the editor with its errors, diff, test, save and conflict."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import LAPTOP, PHONE, OpenDashboard, Reader, Served, open_reader

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

HOSTILE = "<img src=x onerror=alert(1)>"
SOURCE = f"""\
format: 1
description: Name the longest river. {HOSTILE}
fields: {{river: }}
rubric:
  parallel:
    # Every answer must name one.
    given: {{check: given(river), critical: true}}
    longest:
      description: The river {HOSTILE}
      sequential:
        claimed:
          claim: "{{river}} is the longest river"  # checked in 2025
        named: {{check: river == 'Amazon', weight: 2}}
"""
TASK = "waters"
CLAIM = "f:rubric/parallel/longest/sequential/claimed/claim"
OPERATOR, READ = "operator-0b9ad5f2c1e84736a5d0", "reader-77c3e1f0492bd86a1e5c"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tasks")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(open_dashboard: OpenDashboard, folder: Path) -> AsyncIterator[Served]:
    (folder / f"{TASK}.yaml").write_text(SOURCE)
    async with open_dashboard(real_judges=True, judge_folder=folder, judges=(folder,)) as one:
        await one.result("otter", "The longest river is the Nile.", task=TASK)
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def reader(chromium: Browser, served: Served, folder: Path) -> AsyncIterator[Reader]:
    (folder / f"{TASK}.yaml").write_text(SOURCE)
    async with open_reader(chromium, served.url) as one:
        yield one
        assert (one.page_errors, one.external_requests) == ([], [])


async def test_task_is_edited_tested_and_saved_and_judges_the_next_answer(reader: Reader, served: Served, folder: Path):
    page = reader.page
    await reader.go("/tasks")
    await page.click(f'a:has-text("{TASK}")')
    await page.wait_for_selector("h1:has-text('waters')")
    assert "The river <img" in await reader.text(".rubric")
    assert await page.locator("main img").count() == 0
    await page.click("a:has-text('Edit')")
    claim = page.locator(f'[name="{CLAIM}"]')
    # An error appears below its field while it is edited.
    await claim.fill("{stream} is the longest river")
    await page.wait_for_selector('.problem:has-text("Line 12, column ")')
    assert await claim.get_attribute("aria-invalid") == "true"
    assert await reader.violations() == []
    await claim.fill("{river} is longer than all other rivers")
    await page.wait_for_selector("#edit-state:has-text('Valid, not saved')")
    assert await page.locator(".problem:has-text('Line')").count() == 0
    await page.fill('[name="f:rubric/parallel/longest/weight"]', "3")
    await page.fill('[name="f:version"]', "2")
    await page.click("button:has-text('Review changes')")
    # Review: the difference, and a test on the stored answer.
    diff = await reader.text(".diff")
    assert '- claim: "{river} is the longest river" # checked in 2025' in diff
    assert '+ claim: "{river} is longer than all other rivers" # checked in 2025' in diff
    assert (folder / f"{TASK}.yaml").read_text() == SOURCE
    await page.click("button:has-text('Test')")
    whole = await page.wait_for_selector(".task-test a:has-text('Whole result')")
    assert whole is not None
    assert await reader.violations() == []
    async with page.context.expect_page() as opened:
        await whole.click()
    tested = await opened.value
    await tested.wait_for_selector(".notice:has-text('Test of an unsaved version')")
    assert "The longest river is the Nile." in await tested.inner_text(".answer")
    await tested.close()
    await page.click("button:has-text('Save')")
    await page.wait_for_selector(".notice:has-text('Saved.')")
    text = (folder / f"{TASK}.yaml").read_text()
    assert '          claim: "{river} is longer than all other rivers"  # checked in 2025\n' in text
    assert "    # Every answer must name one.\n" in text
    # The next answer is judged by the new version, and its page shows which one.
    result = await served.result("otter", "The longest river is the Amazon.", task=TASK, name="answer_2")
    script = (await served.http.get(f"/v1/results/{result}")).json()["script"]
    assert script["version"] == "2"
    await reader.go(f"/results/{result}")
    await reader.page.click(".about summary")
    assert f"v2 {script['sha256'][:10]}" in " ".join((await reader.text(".about")).split())


async def test_change_on_disk_is_shown_and_merged(reader: Reader, folder: Path):
    page = reader.page
    await reader.go(f"/tasks/{TASK}/edit")
    await page.fill(f'[name="{CLAIM}"]', "{river} is very long")
    await page.click("button:has-text('Review changes')")
    (folder / f"{TASK}.yaml").write_text(SOURCE.replace("Name the", "State the"))
    await page.click("button:has-text('Save')")
    await page.wait_for_selector("h2:has-text('The file changed while you edited it')")
    assert await reader.violations() == []
    conflict = await reader.text(".conflict")
    assert "+description: State the longest river." in conflict
    assert '+ claim: "{river} is very long"' in conflict
    assert reader.page_errors.pop() == "Failed to load resource: the server responded with a status of 409 (Conflict)"
    assert "State the" in (folder / f"{TASK}.yaml").read_text()
    await page.click("button:has-text('Apply my changes')")
    assert "State the" not in await reader.text(".diff .add")
    await page.click("button:has-text('Save')")
    await page.wait_for_selector(".notice:has-text('Saved.')")
    text = (folder / f"{TASK}.yaml").read_text()
    assert "State the longest" in text
    assert "{river} is very long" in text


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
@pytest.mark.parametrize(
    ("field", "wrong"),
    [(CLAIM, "{stream} is the longest river"), ("f:rubric/parallel/longest/sequential/named/weight", "heavy")],
)
async def test_error_is_next_to_its_field(
    chromium: Browser, served: Served, folder: Path, field: str, wrong: str, size: tuple[int, int]
):
    (folder / f"{TASK}.yaml").write_text(SOURCE)
    async with open_reader(chromium, served.url, size=size) as reader:
        await reader.go(f"/tasks/{TASK}/edit")
        wrong_input = reader.page.locator(f'[name="{field}"]')
        await wrong_input.fill(wrong)
        await reader.page.wait_for_selector(".problem:has-text('Line')")
        for page in ("while it is edited", "when it is reviewed"):
            message = reader.page.locator(f'[id="{await wrong_input.get_attribute("aria-describedby")}"]')
            assert (await message.inner_text()).startswith("Line"), page
            below, above = await message.bounding_box(), await wrong_input.bounding_box()
            assert below and above and 0 <= below["y"] - (above["y"] + above["height"]) < 20, (page, below, above)
            await reader.page.click("button:has-text('Review changes')")
            await reader.page.wait_for_selector("#review")
        assert reader.page_errors == []


async def test_broken_file_is_repaired_as_text(reader: Reader, folder: Path):
    page = reader.page
    (folder / f"{TASK}.yaml").write_text(SOURCE + "  parallel:\n")
    await reader.go("/tasks")
    await page.wait_for_selector("td:has-text('does not load')")
    await page.click(f'a:has-text("Edit {TASK}")')
    await page.wait_for_selector('.problem:has-text("Line 14, column 3")')
    assert await reader.violations() == []
    await page.fill('[name="text"]', SOURCE)
    await page.wait_for_selector("#edit-state:has-text('Valid, not saved')")
    await page.click("button:has-text('Review changes')")
    await page.click("button:has-text('Save')")
    await page.wait_for_selector(".notice:has-text('Saved.')")
    assert (folder / f"{TASK}.yaml").read_text() == SOURCE


async def test_form_works_with_the_keyboard_and_without_scripts(chromium: Browser, served: Served, folder: Path):
    (folder / f"{TASK}.yaml").write_text(SOURCE)
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{served.url}/tasks/{TASK}/edit")
    await page.focus('[name="f:version"]')
    await page.keyboard.press("End")
    await page.keyboard.type("9")
    await page.focus("button:text('Review changes')")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".diff .add:has-text('version')")
    await page.focus("button:text('Save')")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".notice:has-text('Saved.')")
    assert 'version: "19"' in (folder / f"{TASK}.yaml").read_text()
    await context.close()


async def test_form_that_was_tampered_with_is_refused(served: Served, folder: Path):
    (folder / f"{TASK}.yaml").write_text(SOURCE)
    page = (await served.http.get(f"/tasks/{TASK}/edit")).text
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    form = {"form_token": token, "base": json.dumps(SOURCE), "base_sha256": "0" * 64, "action": "save"}
    for change, status in (
        ({"form_token": "x"}, 403),
        ({"base": "{"}, 422),
        ({"base": "[]"}, 422),
        ({"action": "remove"}, 422),
        ({"f:rubric/parallel/none/claim": "x"}, 200),
    ):
        answer = await served.http.post(f"/tasks/{TASK}/edit", data={**form, **change})
        assert (answer.status_code, change) == (status, change)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "cannot be changed here" in answer.text
    assert (folder / f"{TASK}.yaml").read_text() == SOURCE


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [LAPTOP, PHONE])
async def test_pages_are_accessible_and_fit(
    chromium: Browser, served: Served, folder: Path, size: tuple[int, int], dark: bool
):
    (folder / f"{TASK}.yaml").write_text(SOURCE)
    async with open_reader(chromium, served.url, size=size, dark=dark) as reader:
        for path in ("/tasks", f"/tasks/{TASK}", f"/tasks/{TASK}/edit", f"/tasks/{TASK}/edit?mode=text"):
            await reader.go(path)
            assert await reader.violations() == []
            assert await reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (reader.page_errors, reader.external_requests) == ([], [])


async def test_reader_sees_the_tree_and_cannot_save(chromium: Browser, open_dashboard: OpenDashboard, folder: Path):
    (folder / f"{TASK}.yaml").write_text(SOURCE)
    keys = (f"team:operator:{OPERATOR}", f"team:read:{READ}")
    async with (
        open_dashboard(judge_folder=folder, judges=(folder,), api_keys=keys) as guarded,
        open_reader(chromium, guarded.url) as reader,
    ):
        await reader.go(f"/tasks/{TASK}/edit")
        await reader.page.fill('input[name="key"]', READ)
        await reader.page.click("main button")
        await reader.page.wait_for_selector(f'[name="{CLAIM}"]')
        assert await reader.page.locator("button:has-text('Review changes')").count() == 0
        assert await reader.page.locator(f'[name="{CLAIM}"]').is_disabled()
        assert "operator" in await reader.text(".notice")
        # Even a form that is sent anyway saves nothing.
        await reader.page.evaluate("document.querySelector('.whole').disabled = false")
        await reader.page.evaluate("document.getElementById('task-editor').submit()")
        await reader.page.wait_for_selector("h1:has-text('scope')")
        assert (folder / f"{TASK}.yaml").read_text() == SOURCE
