"""Hostile text of answers, pages and judges: no script runs and no request leaves the origin."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from patchright.async_api import Browser

from app.dashboard.outline import outline
from rubrics.rubric import Rubric
from rubrics.verdict import Quote
from tests.browser.dashboard.conftest import OpenDashboard, Reader, Served, open_reader
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, leaf, page_entry, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

EVIL = "https://evil.example"
PAYLOADS = [
    "<script>alert(1)</script>",
    "<script src=https://evil.example/x.js></script>",
    "<img src=x onerror=alert(1)>",
    "<img src=https://evil.example/p.png>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<body onload=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<object data=data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==></object>",
    "<embed src=javascript:alert(1)>",
    "<base href=https://evil.example/>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<div style=background:url(https://evil.example/x)>x</div>",
    "<form action=https://evil.example><button autofocus onfocus=alert(1)>x</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<a href=javascript:alert(1)>x</a>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](https://evil.example/p.png)",
    "![x](javascript:alert(1))",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    '" autofocus onfocus=alert(1) x="',
    "</textarea><script>alert(1)</script>",
    "</title></style><script>alert(1)</script>",
    "{{7*7}}{% include 'base.html' %}${alert(1)}",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<div hx-get=https://evil.example hx-trigger=load>x</div>",
    "<div data-events=https://evil.example hx-on:load=alert(1)>x</div>",
    "\u2028<scr\x00ipt>alert(1)</scr\x00ipt>",
    "\u202e<img src=x onerror=alert(1)>\u202d",
    "\ud800<img src=x onerror=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "javascript:alert(1)//https://x.example/'onmouseover=alert(1) ",
]


def clean(payload: str) -> str:
    """Return the payload as an answer may contain it: the service rejects NUL and surrogates."""
    return payload.replace("\x00", "").replace("\ud800", "")


ANSWER = "\n\n".join(f"Number {nth}: {clean(payload)}" for nth, payload in enumerate(PAYLOADS))


POISONED: dict[str, tuple[str, str, str]] = {}
"""Result, job and page of a poisoned answer, by the URL of the service."""


async def poisoned(served: Served) -> tuple[str, str, str]:
    """Judge an answer with every payload in every field, once per service; return the ids of result, job and page."""
    if served.url in POISONED:
        return POISONED[served.url]
    everything = clean("\n".join(PAYLOADS))
    url = f"{EVIL}/?q={everything[:300]}"
    page = await served.capture(url, everything, title=clean("".join(PAYLOADS[:12])))

    def rubric() -> Rubric:
        leaves = []
        for nth, payload in enumerate(PAYLOADS):
            start = everything.index(clean(payload))
            found = Quote(text=clean(payload), page_id=page, start=start, end=start + len(clean(payload)))
            lost = Quote(text=payload, page_id=page, start=0, end=1)
            leaves.append(
                leaf(
                    f"n{nth}-{payload}".replace("/", ""),
                    (PASSED, FAILED, NOT_JUDGED)[nth % 3],
                    claim=payload,
                    desc=payload,
                    sources=[url, payload, f"https://x.example/{payload}"],
                    quotes=[found, lost],
                    reasoning=payload,
                    votes=(True, False, None),
                    signals=[payload],
                    model=payload,
                    prompt=payload,
                )
            )
        return rubric_of(*leaves, task_id="rivers")

    changes: dict[str, Any] = {
        "pages": [page_entry(url, page_id=page), page_entry(PAYLOADS[2], outcome=PAYLOADS[4])],
        "notice": everything,
        "model": everything,
        "judge": {"model": everything, "reasoning_effort": everything, "temperature": None},
        "script": {"sha256": None, "name": everything, "version": everything},
    }
    served.judging.register(ANSWER, rubric, **changes)
    job = await served.submit("poisoner", ANSWER, metadata={everything: everything})
    ended = await served.wait_for_job(job)
    await override_with_payloads(served, str(ended["result_id"]))
    POISONED[served.url] = str(ended["result_id"]), job, page
    return POISONED[served.url]


async def override_with_payloads(served: Served, result: str) -> None:
    """Override leaves with every payload as reason and name, and withdraw half of the overrides."""
    for nth, (key, payload) in enumerate(zip(await leaf_ids(served, result), PAYLOADS, strict=True)):
        said = {"reason": clean(payload), "by": clean(payload)[:100]}
        path = f"/v1/results/{result}/overrides"
        answer = await served.http.post(path, json={"leaf": key, "outcome": "passed", **said})
        assert answer.status_code == 201, answer.text
        if nth % 2:
            await served.http.post(f"{path}/{answer.json()['id']}/withdraw", json=said)


async def screens(served: Served) -> list[str]:
    """Return the paths of all screens that show something of a poisoned result."""
    result, job, page = await poisoned(served)
    submission = (await served.http.get(f"/v1/jobs/{job}")).json()["submission_id"]
    leaves = await leaf_ids(served, result)
    return [
        f"/results/{result}",
        f"/submissions/{submission}",
        f"/pages/{page}?mark=0-20,40-90",
        "/pages",
        "/review?settled=true",
        "/review/overrides",
        "/review/agreement",
        "/compare?a=poisoner&b=poisoner",
        "/agents/poisoner",
        f"/jobs/{job}",
        "/jobs",
        "/",
        *(str(httpx.URL(f"/results/{result}", params={"leaf": leaves[nth]})) for nth in (0, 1, 2, 33)),
    ]


async def leaf_ids(served: Served, result: str) -> list[str]:
    tree = (await served.http.get(f"/v1/results/{result}")).json()["eval_breakdown"][0]["verification_tree"]
    return [leaf.key for leaf in outline({"eval_breakdown": [{"verification_tree": tree}]}).leaves]


async def test_hostile_text_runs_no_script_and_sends_no_request(served: Served, chromium: Browser):
    assert len(set(PAYLOADS)) >= 40
    async with open_reader(chromium, served.url) as reader:
        shown = []
        for path in await screens(served):
            await reader.go(path)
            assert reader.page_errors == [], path
            shown.append("alert(1)" in await reader.page.content())
        assert shown[:5] == [True] * 5  # the text is shown
        assert reader.external_requests == []
        assert reader.page_errors == []


async def test_hostile_text_inserted_by_our_scripts_runs_no_script(served: Served, chromium: Browser):
    result, _, _ = await poisoned(served)
    leaves = await leaf_ids(served, result)
    async with open_reader(chromium, served.url) as reader:
        await reader.go(f"/results/{result}")
        for nth, key in list(enumerate(leaves))[::3]:
            await reader.page.evaluate(f"document.querySelectorAll('#tree .leaf [data-leaf]')[{nth}].click()")
            await reader.wait_until(f"document.querySelector('.leaf-panel')?.dataset.key === {json.dumps(key)}")
        assert reader.external_requests == []
        assert reader.page_errors == []


async def test_links_of_an_answer_are_inert_or_lead_to_web_pages(served: Served, reader: Reader):
    result, _, _ = await poisoned(served)
    await reader.go(f"/results/{result}")
    links = await reader.page.evaluate(
        "[...document.querySelectorAll('.prose a')].map(link => [link.getAttribute('href') ?? '', link.rel])"
    )
    assert links
    for href, rel in links:
        assert href.startswith(("https://", "http://")) or href == ""
        assert {"noopener", "noreferrer", "nofollow"} <= set(rel.split())
    assert await reader.page.locator(".prose img, .prose script, .prose form, .prose iframe, .prose svg").count() == 0


async def test_every_page_has_the_policy_and_no_inline_script(open_dashboard: OpenDashboard):
    async with open_dashboard(workers=0) as empty:
        await check_policy(empty)


async def check_policy(served: Served) -> None:
    paths = [
        "/",
        "/jobs",
        "/compare",
        "/tasks",
        "/tasks/rivers",
        "/review",
        "/review/overrides",
        "/review/agreement",
        "/pages",
        "/suites",
        "/jobs/job_nothing",
        "/json/v1/leaderboard",
        "/?format=csv",
    ]
    for path in paths:
        answer = await served.http.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy and "form-action 'self'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r" on[a-z]+=| style=|<style|<script(?! src=| type=\"module\" src=)", answer.text), path


async def test_cells_of_csv_files_are_not_formulas(served: Served):
    def rubric() -> Rubric:
        return rubric_of(leaf("a", claim="=HYPERLINK(1)", reasoning="@SUM(1)", sources=["+1"]), task_id="rivers")

    result = await served.result("speller", served.judging.register("formulas", rubric))
    text = (await served.http.get(f"/results/{result}?format=csv")).text
    assert "'=HYPERLINK(1)" in text and "'@SUM(1)" in text and "'+1" in text
