"""Supplied pages, penalties and forbidden sources: a real service, a browser, and a site that blocks and changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.patient_http import PatientTransport
from tests.fakes.program import environment_for, running_service
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import COLD
from tests.standin.web import Reply, StandInWeb

pytestmark = [pytest.mark.browser, pytest.mark.postgres]

TASK = """
format: 1
description: How deep is Walden Pond, and what happened there?
forbidden_sources:
  - {host: bench.example, reason: the page of the benchmark, score: -1}
fields: {depth: the depth}
rubric:
  parallel:
    depth: {claim: "Walden Pond is {depth} feet deep", sources: "SITE/blocked", weight: 7}
    frozen: {claim: "Walden Pond froze in 1846, at {depth} feet", sources: "SITE/gone", weight: 3}
    bench: {claim: "Walden Pond is {depth} feet deep", sources: "https://bench.example/x"}
    advice: {check: "contains(answer, 'alone')", description: It recommends to dive alone, weight: -5}
"""
FILL = " ".join(f"word{number}" for number in range(60))
BLOCKED = Reply.html("<title>Just a moment...</title><h1>Verify you are human</h1>", status=403)


@pytest.fixture
def site() -> Iterator[StandInWeb]:
    with entered_in_thread(web := StandInWeb({"/blocked": BLOCKED})):
        yield web


@pytest.fixture
def client(service_home: Path, site: StandInWeb) -> Iterator[httpx.Client]:
    (service_home / "judges").mkdir()
    task = TASK.replace("SITE", site.url("")).lstrip()
    (service_home / "judges" / "walden_pond.yaml").write_text(task)
    variables = {
        "ASSAY_JUDGES": str(service_home / "judges"),
        "ASSAY_EGRESS_ALLOW": site.host_port,
        **sandbox_variables(),
    }
    with (
        running_service(
            service_home, environment_for(service_home, **variables), "--workers", "1", program=COLD
        ) as service,
        httpx.Client(base_url=service.url, timeout=240, trust_env=False, transport=PatientTransport()) as http,
    ):
        yield http


def judged(client: httpx.Client, site: StandInWeb, policy: str) -> dict[str, Any]:
    text = f"Depth: 102\n\n- [depth]({site.url('/blocked')})\n- [frozen]({site.url('/gone')})\n\nDive alone."
    evidence = [
        {
            "url": site.url("/blocked"),
            "html": f"<h1>Pond</h1><p>Walden Pond is 102 feet deep.<p>{FILL}<p style='display:none'>HIDDEN",
        },
        {"url": site.url("/gone"), "text": f"Walden Pond froze in 1846, at 102 feet. {FILL}"},
    ]
    body = {
        "agent": "diver",
        "task_id": "walden_pond",
        "evidence_policy": policy,
        "answers": [{"name": "answer_1", "text": text, "evidence": evidence}],
    }
    response = client.post("/v1/submissions", json=body)
    assert response.status_code == 202, response.text
    deadline, url = time.monotonic() + 240, response.json()["jobs"][0]["url"]
    while (job := client.get(url).json())["finished_at"] is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert job["result_id"] is not None, job
    result: dict[str, Any] = client.get(f"/v1/results/{job['result_id']}").json()
    return result


def test_supplied_pages_penalties_and_forbidden_sources_over_http(client: httpx.Client, site: StandInWeb):
    captured = judged(client, site, "captured")
    assert captured["evidence"] == {"policy": "captured", "captured": 0, "supplied": 0}
    assert captured["score_unclipped"] == {"value": None, "low": -6 / 11, "high": 1 / 11}

    fallback = judged(client, site, "fallback")
    leaves = fallback["eval_breakdown"][0]["verification_tree"]["children"]
    assert [(leaf["outcome"], leaf["reason"], leaf.get("provenance")) for leaf in leaves] == [
        ("passed", None, "supplied"),
        ("passed", None, "supplied"),
        ("failed", "source_forbidden", None),
        ("passed", None, None),
    ]
    assert fallback["score"]["value"] == pytest.approx((7 + 3 - 1 - 5) / 11)
    assert (fallback["score_strict"]["value"], fallback["evidence"]["supplied"]) == (0.0, 2)
    blocked, gone = fallback["pages"]
    assert (blocked["other_copy"]["outcome"], gone["other_copy"]["outcome"]) == ("blocked", "http_error")
    shown = client.get(f"/v1/pages/{blocked['page_id']}").json()
    assert shown["backend"].startswith("browser:")
    assert "screenshot-0" in shown["blobs"]
    assert "HIDDEN" not in client.get(f"/v1/pages/{blocked['page_id']}/text").text
    panel = client.get(f"/results/{fallback['id']}/leaf", params={"leaf": "depth"}).text
    assert "The agent saw this; we could not open it (blocked)." in panel
    assert "It does not count in the strict score." in panel

    site.pages["/blocked"] = Reply.html(f"<h1>Pond</h1><p>The new site of the pond has other things to say.<p>{FILL}")
    page = client.post(f"/v1/pages/{captured['pages'][0]['page_id']}/recapture").json()
    assert page["outcome"] == "ok"
    [changed] = [one for one in judged(client, site, "fallback")["pages"] if one["url"].endswith("/blocked")]
    assert changed["source"] == "web"
    assert 0.5 < changed["other_copy"]["common_5grams"] < 1.0
