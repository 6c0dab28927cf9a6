"""Screenshots of every dashboard page for docs/screenshots: `make screenshots`, a few minutes.

The real service judges the demo's answers with a real browser and the lexical judge. The suite runs are small and use
the stand-in model. Every page is shown wide and narrow, light and dark. Arguments are names of pages, and limit the
pictures to them. The demo website has an address of its own, so that a demo can run at the same time. Times, durations
and ids in the pictures are replaced, so that a picture changes only with its page.
"""

from __future__ import annotations

import asyncio
import io
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from patchright.async_api import Browser, Page, async_playwright
from PIL import Image, ImageDraw

from answers.public_layout import read_folder
from app.demo.expected import examples_dir, report_path
from app.demo.run import MODEL, running_service
from app.demo.site import DemoSite
from assay_client import AsyncClient
from judges.analysis.overrides import judged_leaves
from judges.suites.multimodal.snapshot import SamplingOptions, build_snapshot
from tests.fakes.mind2web import (
    mind2web_reply,
    nine_steps,
    ranks_of_nine_steps,
    write_scores,
    write_split,
)
from tests.fakes.multimodal import LABELS, STEPS, multimodal_reply, write_rows
from tests.fakes.sandbox import installed_browser
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
SITE_HOST = "127.0.0.2"
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
AS_YAML = Path(__file__).parents[1] / "judges" / "tasks" / "as_yaml"
MAX_PX = 1700
QUALITY = 50
KEY = "key-for-the-picture-of-the-sign-in-page"
_SHORT = 50
RUNS = (("monday", "demo-careless"), ("tuesday", "demo-inventive"), ("wednesday", "demo"))
OTHERS = (("careless", "demo-careless"), ("inventive", "demo-inventive"))


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="assay-screenshots-") as folder:
        data = Path(folder) / "benchmarks"
        data.mkdir()
        _write_suites(data)
        tasks = Path(folder) / "tasks"
        tasks.mkdir()
        shutil.copy(AS_YAML / "karrow_visit.yaml", tasks)
        async with StandInLLM(fault_for=_reply) as model, DemoSite(host=SITE_HOST) as site:
            environment = {
                "ASSAY_DATA_DIR": f"{folder}/data",
                "ASSAY_MODEL": MODEL,
                "ASSAY_BROWSER_UNSANDBOXED": "true",
                "ASSAY_EGRESS_ALLOW": site.egress_allow,
                "ASSAY_SUITE_DATA": str(data),
                "ASSAY_JUDGES": str(tasks),
                "OPENAI_BASE_URL": model.base_url,
                "OPENAI_API_KEY": "key-of-the-pictures",
            }
            log = Path(folder) / "serve.log"
            async with (
                running_service(environment, log, api_key=None) as url,
                httpx.AsyncClient(base_url=url, timeout=120) as http,
            ):
                await _shoot(url, {"first-run": "/"})
                await _judge(url)
                pages = await _pages(http)
                print(*pages.items(), sep="\n", file=sys.stderr)
                await _shoot(url, pages)
            guarded = environment | {"ASSAY_API_KEYS": KEY}
            async with running_service(guarded, Path(folder) / "guarded.log", api_key=KEY) as url:
                await _shoot(url, {"sign-in": "/sign-in"})


def _reply(call: Call) -> Fault | None:
    """Return the stand-in's reply: Mind2Web requests are the short ones; one of the others gets no answer."""
    if "Do what t3 says" in call.text:
        return Fault(content="I would rather not.")
    return (mind2web_reply if call.params["max_tokens"] <= _SHORT else multimodal_reply)(call)


async def _judge(url: str) -> None:
    """Judge three runs of one agent, each better than the previous one, and two other agents."""
    async with AsyncClient(url) as client:
        for run, source in RUNS:
            await _submit(client, "demo", source, run=run)
        for agent, source in OTHERS:
            await _submit(client, agent, source, run=None)


async def _submit(client: AsyncClient, agent: str, source: str, *, run: str | None) -> None:
    for one in read_folder(examples_dir(), source):
        given = [(answer.name, _at_site(answer.text)) for answer in one.answers]
        submission = await client.submit(agent, one.task_id, given, model=MODEL, run=run)
        await client.wait(submission.job_ids, timeout_s=600)  # so that jobs end in the same order in every run


def _at_site(text: str) -> str:
    """Return an answer of the demo with the address of this website in its citations."""
    return text.replace(DemoSite().url, DemoSite(host=SITE_HOST).url)


async def _pages(http: httpx.AsyncClient) -> dict[str, str]:
    """Return the path of every page, with content on it."""

    async def get(path: str, **params: str) -> Any:
        return (await http.get(path, params=params)).raise_for_status().json()

    history = (await get("/v1/agents/careless/history"))["items"]
    origin = next(one for one in history if one["task_id"] == "karrow_visit")
    result = origin["result_id"]
    await _settle(http, result)
    for other in history:
        await _confirm(http, other["result_id"])
    captures = (await get("/v1/pages", agent="careless", problem="false"))["items"]
    capture = next(one["id"] for one in captures if one["url"].endswith("/news/autumn-lecture"))
    suites = {
        "mind2web": await _suite(http, "mind2web", data="plain", split="test_task", scores="scores.pkl"),
        "mm-mind2web": await _suite(http, "mm-mind2web", data="snapshot.parquet"),
    }
    return {
        "agents": "/",
        "agent": "/agents/demo",
        "statistics": "/agents/demo/statistics",
        "submit": "/submit",
        "search": "/",
        "jobs": "/jobs",
        "job": f"/jobs/{origin['job_id']}",
        "submission": f"/submissions/{origin['submission_id']}",
        "result": f"/results/{result}",
        "quoted-leaf": f"/results/{result}?leaf=ferry/leaves",
        "overridden-leaf": f"/results/{result}?leaf=museum/closes",
        "compare": "/compare?a=demo@monday&b=demo@wednesday",
        "tasks": "/tasks",
        "task": "/tasks/karrow_visit",
        "review": "/review",
        "review-overrides": "/review/overrides",
        "review-agreement": "/review/agreement",
        "pages": "/pages",
        "captures": "/pages/captures",
        "page": f"/pages/{capture}",
        "checks": "/checks",
        "check": f"{await _check(http)}#s0",
        "suites": "/suites",
        "suite-run": suites["mind2web"],
        "suite-step": f"{suites['mm-mind2web']}/steps/3",
        "api-reference": "/docs",
        "error": "/results/res_nothing",
    }


async def _settle(http: httpx.AsyncClient, result: str) -> None:
    """Override a few leaves, most of them with the outcome of the judge."""
    said = [
        (
            "museum/closes",
            "passed",
            "On this Saturday there is the long evening: the notice at the foot of the page says so.",
        ),
        ("ferry/leaves", "passed", "Second line of the timetable."),
        ("ferry/arrives", "passed", "Second line of the timetable."),
        ("museum/opens", "passed", "It says ten o'clock."),
        ("talk/speaker", "failed", "The name on the page is another one."),
    ]
    for leaf, outcome, reason in said:
        body = {"leaf": leaf, "outcome": outcome, "reason": reason, "by": "Ada"}
        answer = await http.post(f"/v1/results/{result}/overrides", json=body)
        if answer.status_code != httpx.codes.CREATED:
            print("not settled:", leaf, answer.text, file=sys.stderr)


async def _confirm(http: httpx.AsyncClient, result: str) -> None:
    """Override some leaves with the outcome of the judge, and one with the opposite."""
    found = (await http.get(f"/v1/results/{result}")).json()
    said = {row["leaf"] for row in found.get("overrides", ())}
    decided = [leaf for leaf in judged_leaves(found).values() if leaf.outcome in {"passed", "failed"}]
    for nth, leaf in enumerate(one for one in decided[:9] if one.key not in said):
        outcome = leaf.outcome.value if nth else "failed"
        body = {"leaf": leaf.key, "outcome": outcome, "reason": "Read beside the page.", "by": "Grace"}
        (await http.post(f"/v1/results/{result}/overrides", json=body)).raise_for_status()


async def _check(http: httpx.AsyncClient) -> str:
    """Check the report of the demo. Return the path of its page."""
    body = {"name": "report.md", "text": _at_site(report_path().read_text("utf-8")), "model": MODEL}
    accepted = (await http.post("/v1/checks", json=body)).raise_for_status().json()
    await _wait(http, accepted["job_url"])
    return f"/checks/{accepted['id']}"


async def _wait(http: httpx.AsyncClient, job_url: str) -> None:
    for _ in range(300):
        if (await http.get(job_url)).json()["status"] in {"succeeded", "failed"}:
            break
        await asyncio.sleep(0.2)


async def _suite(http: httpx.AsyncClient, suite: str, **order: Any) -> str:
    order = {"model": "openai/gpt-4o", **order}
    accepted = (await http.post(f"/v1/suites/{suite}/runs", json=order)).raise_for_status().json()
    await _wait(http, accepted["job_url"])
    return f"/suites/{suite}/runs/{accepted['id']}"


def _write_suites(folder: Path) -> None:
    (folder / "plain").mkdir()
    write_split(folder / "plain", nine_steps())
    write_scores(folder / "scores.pkl", ranks_of_nine_steps())
    rows = [{**row, "screenshot": _page_drawn()} for row in STEPS]
    source = write_rows(folder / "test_website.parquet", rows)
    build_snapshot(
        source, folder / "snapshot.parquet", SamplingOptions(distractors=3), split=None, watch=lambda rows: None
    )


def _page_drawn() -> bytes:
    """Return a picture of the page that the rows describe."""
    drawn = Image.new("RGB", (400, 300), "white")
    pen = ImageDraw.Draw(drawn)
    for place, label in enumerate(LABELS):
        top = 10 + 30 * place
        pen.rounded_rectangle((10, top, 90, top + 20), radius=4, fill="#e8edf5", outline="#b7c3d6")
        pen.text((18, top + 4), label, fill="#1b1f24")
    pen.text((130, 20), "Where would you like to stay?", fill="#1b1f24")
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    return buffer.getvalue()


async def _shoot(url: str, pages: Mapping[str, str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    program = installed_browser()
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for size in SIZES:
            for scheme in ("light", "dark"):
                await _shoot_all(browser, url, pages, size, scheme)
        await browser.close()


async def _shoot_all(browser: Browser, url: str, pages: Mapping[str, str], size: str, scheme: Any) -> None:
    width, height = SIZES[size]
    context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = await context.new_page()
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))  # changes of a form are discarded
    for name, path in pages.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        await page.goto(url + path)
        if name in PREPARED:
            await PREPARED[name](page)
        await asyncio.sleep(0.6)  # time for pictures and the leaf panel to load
        # The parts of a result fill a wide window and scroll separately.
        whole = int(await page.evaluate("document.documentElement.scrollHeight"))
        if size == "narrow" or not await page.locator(".result-view").count():
            await page.set_viewport_size({"width": width, "height": min(max(whole, 300), MAX_PX)})
        await page.evaluate("scrollTo(0, 0)")
        await asyncio.sleep(0.2)
        await page.evaluate(STABLE_TEXT)
        picture = Image.open(io.BytesIO(await page.screenshot(animations="disabled")))
        picture.convert("RGB").save(FOLDER / f"{name}-{size}-{scheme}.webp", quality=QUALITY, method=6)
        await page.set_viewport_size({"width": width, "height": height})
    await context.close()


async def _search(page: Page) -> None:
    await page.keyboard.press("/")
    await page.keyboard.type("careless")
    await page.wait_for_selector("#palette [role=option]:has-text('Agent')")


STABLE_TEXT = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let text; (text = texts.nextNode());) {
        const stable = text.data
            .replace(/just now|\\d+ min ago/g, "3 min ago")
            .replace(/\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}/g, "2026-11-26 12:00")
            .replace(/\\b\\d+\\.\\d s\\b/g, "0.5 s")
            .replace(/\\b([a-z]+_)[0-9a-z]{26}\\b/g, "$101m8bdwqnffz444mazgev2bqw4")
        if (stable !== text.data) text.data = stable
    }
}"""
"""Replaces what differs between two runs in the text of a page."""

PREPARED: Mapping[str, Callable[[Page], Awaitable[None]]] = {
    "search": _search,
}
"""What is done on a page before its picture is taken."""


if __name__ == "__main__":
    asyncio.run(main())
