"""A task in YAML end to end: submission over HTTP, result page, estimate, and a bundle that is verified and replayed.

The real server, its fork server and a real browser; only the model (``lexical``) and the web are replaced.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rubrics.result_json import leaves_of
from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.patient_http import PatientTransport
from tests.fakes.program import environment_for, run_command, running_service
from tests.fakes.sandbox import sandbox_variables
from tests.standin.web import Reply, StandInWeb

pytestmark = [pytest.mark.browser, pytest.mark.postgres]

QUESTION = "Which gauges does Pellard sell, what do they cost, and which of them lasts longest?"
TASK = f"""\
format: 1
version: "7"
description: {QUESTION}
evaluation_date: 2025-08-16
fields:
  gauges: {{list_of: {{name: name of the gauge, price: price in crowns, sources: {{list_of: url}}}}}}
  best: {{fields: {{name: the gauge that lasts longest, hours: {{type: number}}, sources: {{list_of: url}}}}}}
rubric:
  sequential:
    enough: {{check: count(gauges) >= 2, description: Two gauges are named, critical: true}}
    gauges:
      weight: 2
      for_each: gauges
      as: gauge
      min: 2
      each:
        parallel:
          given: {{check: "given(gauge.name, gauge.price)", critical: true}}
          price: {{claim: "The {{gauge.name}} costs {{gauge.price}}", sources: gauge.sources}}
    best:
      graded:
        named: {{score: 0.5, check: "contains(best.name, 'Heron')"}}
        sourced: {{score: 1, claim: "The {{best.name}} lasts {{best.hours}} hours", sources: best.sources}}
"""
ANSWER = """\
## Gauges

### Kestrel 4
- Price: 900 crowns
- Source: SITE/gauges

### Heron 2
- Price: 1,350 crowns
- Source: SITE/history

## Best
- Name: Heron 2
- Hours: 120
- Source: SITE/gauges
"""
LEAVES = {
    "enough": ("passed", None),
    "gauges/1/given": ("passed", None),
    "gauges/1/price": ("passed", None),
    "gauges/2/given": ("passed", None),
    "gauges/2/price": ("failed", "refuted"),
    "best/named": ("passed", None),
    "best/sourced": ("skipped", "gated"),
}


PAGES = {
    "/gauges": Reply.html(
        "<title>Gauges</title><h1>Gauges</h1><p>The Kestrel 4 costs 900 crowns.</p>"
        "<p>The Heron 2 lasts 120 hours, and it is the gauge that most of our customers choose.</p>"
    ),
    "/history": Reply.html(
        "<title>History</title><h1>History</h1><p>Pellard has made gauges since the year 1931, "
        "first for ships and then for lighthouses of the north.</p>"
    ),
}


@pytest.fixture
def site() -> Iterator[str]:
    with entered_in_thread(server := StandInWeb(PAGES)):
        yield server.url("")


@pytest.fixture
def home(service_home: Path) -> Path:
    (service_home / "judges").mkdir()
    (service_home / "judges" / "gauges.yaml").write_text(TASK)
    return service_home


def environment(home: Path, site: str) -> dict[str, str]:
    allowed = site.removeprefix("http://")
    variables = {"ASSAY_JUDGES": str(home / "judges"), "ASSAY_EGRESS_ALLOW": allowed, **sandbox_variables()}
    return environment_for(home, **variables)


@pytest.fixture
def client(home: Path, site: str) -> Iterator[httpx.Client]:
    """Run ``assay serve`` on any free port; yield a client."""
    with (
        running_service(home, environment(home, site), "--workers", "1") as service,
        httpx.Client(base_url=service.url, timeout=240, trust_env=False, transport=PatientTransport()) as client,
    ):
        yield client


def assay(home: Path, site: str, *arguments: str) -> str:
    ended = run_command(home, environment(home, site), *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_yaml_task_is_judged_shown_estimated_bundled_and_replayed(home: Path, site: str, client: httpx.Client) -> None:
    answers = [{"name": "answer_1", "text": ANSWER.replace("SITE", site)}]
    submission = {"agent": "walker", "task_id": "gauges", "answers": answers}
    listed = {task["task_id"]: task for task in client.get("/v1/tasks").json()["items"]}
    assert (listed["gauges"]["kind"], listed["gauges"]["version"]) == ("native", "7")

    estimate = client.post("/v1/estimates", json=submission)
    assert estimate.status_code == 200, estimate.text

    response = client.post("/v1/submissions", json=submission)
    assert response.status_code == 202, response.text
    url, deadline = response.json()["jobs"][0]["url"], time.monotonic() + 240
    while (job := client.get(url).json())["finished_at"] is None:
        assert time.monotonic() < deadline, job
        time.sleep(0.1)
    assert job["status"] == "succeeded", job
    result = client.get(f"/v1/results/{job['result_id']}").json()
    sha256 = hashlib.sha256(TASK.encode()).hexdigest()
    assert result["script"] == {"name": "gauges", "version": "7", "kind": "native", "sha256": sha256}
    assert {leaf["id"]: (leaf["outcome"], leaf["reason"]) for leaf in leaves_of(result)} == LEAVES
    assert result["score"]["value"] == pytest.approx(1 / 3)

    page = client.get(f"/results/{job['result_id']}", headers={"Accept": "text/html"})
    assert page.status_code == 200
    for text in ("Which gauges does Pellard sell", "The Kestrel 4 costs 900 crowns", "Two gauges are named"):
        assert text in page.text
    lint = client.get(f"/v1/results/{job['result_id']}/lint").json()
    assert lint["items"] == []

    exported = json.loads(assay(home, site, "bundle", "export", "--agent", "walker", "--out", "b.zip", "--json"))
    assert (exported["results"], exported["absent"]) == ([job["result_id"]], [])
    with zipfile.ZipFile(home / "b.zip") as archive:
        assert archive.read(f"scripts/{sha256}.yaml") == TASK.encode()
    replayed = json.loads(assay(home, site, "bundle", "replay", "b.zip", "--json"))
    assert [(each["differences"], each["unchecked"]) for each in replayed["results"]] == [([], None)]
