"""`assay pages capture` with a real browser and web server, including kill and interruption."""

from __future__ import annotations

import json
import os
import shutil
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
from tests.standin.archive import StandInArchive
from tests.standin.web import Answer, Reply, StandInWeb, Visit

pytestmark = pytest.mark.browser

WORDS = "Two benches stand by the gate of Vellmar, and one of them is green. "
PAGES = 8


class Served:
    """Web site and archive that run in a separate event loop."""

    def __init__(self) -> None:
        pages: dict[str, Answer] = {f"/{n}": self._page for n in range(PAGES)}
        pages["/login"] = Reply.html("<title>Sign in</title><form><input type=password></form>")
        self.web, self.archive = StandInWeb(pages), StandInArchive({})
        self.limit: int | None = None
        """Number of requests for pages that are answered; None: all."""

    async def _page(self, visit: Visit) -> Reply:
        is_answered = self.limit is None or sum(self.web.hits.values()) <= self.limit
        return Reply.html(
            f"<title>{visit.path[1:]}</title><p>Page {visit.path[1:]}. {WORDS * 3}",
            delay_s=0.0 if is_answered else 600.0,
        )

    def archive_gone_page(self) -> None:
        """Store a copy of a page in the archive that the site no longer has."""
        gone = self.web.url("/gone")
        self.archive.copies[gone] = {"20250601080000": ""}
        self.archive.pages[f"/web/20250601080000id_/{gone}"] = Reply.html(
            f"<title>Old</title><p>As it was. {WORDS * 3}"
        )


@pytest.fixture
def site() -> Iterator[Served]:
    served = Served()
    with entered_in_thread(served.web, served.archive):
        served.archive_gone_page()
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
        "ASSAY_EGRESS_ALLOW": f"{site.web.host_port},{site.archive.host_port}",
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


def test_captures_can_be_exported_imported_and_indexed_again(home: Path, site: Served) -> None:
    captured = run(home, site, *CAPTURE, ASSAY_WAYBACK=site.archive.url(""))
    assert captured.returncode == 3, captured.stderr
    assert site.archive.hits["/wayback/available"] == 2  # for the missing page and for the login wall
    exported = run(home, site, "pages", "export", "--agent", "otter", "--out", "ours.zip", "--json")
    assert exported.returncode == 3, exported.stderr
    [task] = json.loads(exported.stdout)["tasks"]
    assert (task["pages"], task["without"]) == (PAGES + 1, [site.web.url("/login")])

    elsewhere = {"ASSAY_DATA_DIR": str(home / "elsewhere")}
    imported = run(home, site, "pages", "import", "ours.zip", "--json", **elsewhere)
    assert imported.returncode == 0, imported.stderr
    [row] = json.loads(imported.stdout)["imported"]
    assert (row["new"], row["same"], row["damaged"]) == (PAGES + 1, 0, 0)
    shutil.rmtree(home / "elsewhere" / "captures")
    indexed = run(home, site, "admin", "restore", "--index-only", "--check", "--json", **elsewhere)
    assert indexed.returncode == 0, indexed.stderr
    [index] = json.loads(indexed.stdout)["indices"].values()
    assert (index["sound"], index["captures"], index["rows"]) == (True, PAGES + 1, PAGES + 1)
