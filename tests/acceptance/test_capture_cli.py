"""`assay pages capture` with a real browser and web server, including kill and interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import COLD, warm_assay
from tests.standin.web import Answer, Reply, StandInWeb, Visit

pytestmark = pytest.mark.browser

WORDS = "Two benches stand by the gate of Vellmar, and one of them is green. "
PAGES = 8


class Served:
    """Web site that runs in a separate event loop."""

    def __init__(self) -> None:
        pages: dict[str, Answer] = {f"/{n}": self._page for n in range(PAGES)}
        pages["/login"] = Reply.html("<title>Sign in</title><form><input type=password></form>")
        self.web = StandInWeb(pages)
        self.limit: int | None = None
        """Number of requests for pages that are answered; None: all."""

    async def _page(self, visit: Visit) -> Reply:
        is_answered = self.limit is None or sum(self.web.hits.values()) <= self.limit
        return Reply.html(
            f"<title>{visit.path[1:]}</title><p>Page {visit.path[1:]}. {WORDS * 3}",
            delay_s=0.0 if is_answered else 600.0,
        )


@pytest.fixture
def site() -> Iterator[Served]:
    served = Served()
    with entered_in_thread(served.web):
        yield served


CAPTURE = ("pages", "capture", "--agent", "otter")


@pytest.fixture
def home(site: Served, service_home: Path) -> Path:
    """Folder with an answer that cites all pages of the site."""
    cited = [f"[{path}]({site.web.url(path)})" for path in [*(f"/{n}" for n in range(PAGES)), "/login", "/gone"]]
    answers = service_home / "answers" / "otter" / "bridge"
    answers.mkdir(parents=True)
    (answers / "answer_1.md").write_text("\n".join(cited))
    return service_home


def command(home: Path, site: Served, *arguments: str, **more: str) -> dict[str, Any]:
    """Return the arguments for ``subprocess`` that run the program in that folder."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    mine = {
        "ASSAY_DATA_DIR": str(home / "data"),
        "ASSAY_EGRESS_ALLOW": site.web.host_port,
        **sandbox_variables(),
        **more,
    }
    return {"args": [warm_assay(), *arguments], "cwd": home, "env": outside | mine, "text": True}


def run(home: Path, site: Served, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(**command(home, site, *arguments, **more), capture_output=True, timeout=240, check=False)


def test_killed_capture_continues_where_it_stopped(home: Path, site: Served) -> None:
    arguments = (*CAPTURE, "--max-pages", "1")
    log = home / "first.log"
    site.limit = 4  # the rest is left for the second run
    cold = command(home, site) | {"args": [*COLD, *arguments]}
    with log.open("w") as output:
        first = subprocess.Popen(**cold, stderr=output)
    try:
        deadline = time.monotonic() + 240
        while log.read_text().count("ok ") < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait(240)
    site.limit = None
    captured_before = {path.name for path in (home / "data" / "captures").glob("page_*.json")}
    assert 3 <= len(captured_before) < PAGES

    second = run(home, site, *arguments, "--json")

    assert second.returncode == 3, second.stderr
    pages = {page["url"]: page for page in json.loads(second.stdout)["pages"]}
    assert len(pages) == PAGES + 2
    known = [page for page in pages.values() if page["known"]]
    assert {f"{page['page_id']}.json" for page in known} == captured_before
    assert pages[site.web.url("/login")]["outcome"] == "login_wall"
    assert all(site.web.hits[f"/{n}"] <= 2 for n in range(PAGES))
    assert (
        sum(site.web.hits[f"/{n}"] for n in range(PAGES)) <= PAGES + 1
    )  # one page was in progress when the process was killed
    assert "captured before" in second.stderr and "pages/min" in second.stderr
