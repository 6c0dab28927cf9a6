"""A task in YAML end to end: submission over HTTP, result page, forecast, and a bundle that is verified and replayed.

The real server, its fork server and a real browser; only the model (``lexical``) and the web are replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import psutil
import pytest

from tests.fakes.folders import service_folder
from tests.fakes.patient_http import PatientTransport
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import warm_assay

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


class Site(BaseHTTPRequestHandler):
    pages: ClassVar[dict[str, str]] = {
        "/gauges": "<title>Gauges</title><h1>Gauges</h1><p>The Kestrel 4 costs 900 crowns.</p>"
        "<p>The Heron 2 lasts 120 hours, and it is the gauge that most of our customers choose.</p>",
        "/history": "<title>History</title><h1>History</h1><p>Pellard has made gauges since the year 1931, "
        "first for ships and then for lighthouses of the north.</p>",
    }

    def do_GET(self) -> None:
        body = self.pages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((body or "<h1>Not found</h1>").encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def home() -> Iterator[Path]:
    folder = service_folder("assay-yaml-tasks-")
    (folder / "judges").mkdir()
    (folder / "judges" / "gauges.yaml").write_text(TASK)
    yield folder
    for process in psutil.process_iter(["cmdline"]):
        if str(folder) in " ".join(process.info["cmdline"] or []):
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def environment(home: Path, site: str) -> dict[str, str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "OPENAI_"))}
    return outside | {
        "ASSAY_DATA_DIR": str(home / "data"),
        "ASSAY_JUDGES": str(home / "judges"),
        "ASSAY_MODEL": "lexical",
        "ASSAY_EGRESS_ALLOW": site.removeprefix("http://"),
        **sandbox_variables(),
    }


@pytest.fixture
def client(home: Path, site: str) -> Iterator[httpx.Client]:
    """Run ``assay serve`` on any free port; yield a client."""
    log = home / "log"
    with log.open("w") as output:
        command = [warm_assay(), "serve", "--port", "0", "--workers", "1"]
        process = subprocess.Popen(command, env=environment(home, site), cwd=home, stderr=output, stdout=output)
    try:
        deadline = time.monotonic() + 240
        while not (said := re.findall(r"assay serves at (http://\S+?):? ", log.read_text())):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        with httpx.Client(base_url=said[-1], timeout=240, trust_env=False, transport=PatientTransport()) as client:
            yield client
    finally:
        process.terminate()
        process.wait(240)


def assay(home: Path, site: str, *arguments: str) -> str:
    ended = subprocess.run(
        [warm_assay(), *arguments],
        env=environment(home, site),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def leaves(node: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    if not node["children"]:
        return {node["id"]: (node["outcome"], node["reason"])}
    return {name: end for child in node["children"] for name, end in leaves(child).items()}


def test_yaml_task_is_judged_shown_forecast_bundled_and_replayed(home: Path, site: str, client: httpx.Client) -> None:
    answers = [{"name": "answer_1", "text": ANSWER.replace("SITE", site)}]
    submission = {"agent": "walker", "task_id": "gauges", "answers": answers}
    listed = {task["task_id"]: task for task in client.get("/v1/tasks").json()["items"]}
    assert (listed["gauges"]["kind"], listed["gauges"]["version"]) == ("native", "7")

    forecast = client.post("/v1/forecasts", json=submission)
    assert forecast.status_code == 200, forecast.text

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
    assert leaves(result["eval_breakdown"][0]["verification_tree"]) == LEAVES
    assert result["score"]["value"] == pytest.approx(1 / 3)
    expected = forecast.json()["total"]["calls"]
    assert expected["low"] <= result["usage"]["calls"] <= expected["high"]

    page = client.get(f"/results/{job['result_id']}", headers={"Accept": "text/html"})
    assert page.status_code == 200
    for text in ("Which gauges does Pellard sell", "The Kestrel 4 costs 900 crowns", "Two gauges are named"):
        assert text in page.text
    lint = client.get(f"/v1/results/{job['result_id']}/lint").json()
    assert lint["items"] == []

    exported = json.loads(assay(home, site, "bundle", "export", "--agent", "walker", "--out", "b.zip", "--json"))
    assert (exported["results"], exported["absent"]) == ([job["result_id"]], [])
    with zipfile.ZipFile(home / "b.zip") as archive:
        [script] = [name for name in archive.namelist() if "/data/scripts/" in name]
        assert script.endswith(f"/{sha256}.yaml")
        assert archive.read(script) == TASK.encode()
        assert sha256 in archive.read(script.partition("/data/")[0] + "/data/ro-crate-metadata.json").decode()
    assert assay(home, site, "bundle", "verify", "b.zip").strip() == f"root {exported['root']}"
    replayed = json.loads(assay(home, site, "bundle", "replay", "b.zip", "--run-scripts", "--json"))
    assert replayed["scripts_run"] is True
    assert [(each["differences"], each["unchecked"]) for each in replayed["results"]] == [([], None)]
