"""A page that the settings deny is named with its remedy, and captured as soon as the settings allow it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.program import environment_for, run_command
from tests.fakes.sandbox import sandbox_variables
from tests.standin.web import Reply, StandInWeb

pytestmark = pytest.mark.browser

JUDGE = """
from judges.registry import judge

@judge(task="bridge", description="When was the old bridge of Vellmar built?")
async def bridge(ctx):
    urls = [word for word in ctx.answer.text.split() if word.startswith("http")]
    for n, url in enumerate(urls):
        ctx.verify(f"built{n}", "The old bridge of Vellmar was built in 1764", sources=[url])
"""
PAGE = "<!doctype html><title>Vellmar</title><h1>Vellmar</h1><p>The old bridge of Vellmar was built in 1764.</p>"


@pytest.fixture
def site() -> Iterator[str]:
    """Address (host:port) of a local site that every setting denies by default."""
    with entered_in_thread(server := StandInWeb(default_answer=Reply.html(PAGE))):
        yield server.host_port


@pytest.fixture
def home(site: str, service_home: Path) -> Path:
    (service_home / "judges.d").mkdir()
    (service_home / "judges.d" / "bridge.py").write_text(JUDGE)
    answers = service_home / "answers" / "otter" / "bridge"
    answers.mkdir(parents=True)
    (answers / "answer_1.md").write_text(f"In 1764: http://{site}/a http://{site}/b")

    return service_home


def environment(home: Path, allowed: str) -> dict[str, str]:
    variables = {"ASSAY_JUDGES": str(home / "judges.d"), "ASSAY_EGRESS_ALLOW": allowed, **sandbox_variables()}
    return environment_for(home, **variables)


def assay(home: Path, allowed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(home, environment(home, allowed), *arguments)


def assert_denied(errors: str, site: str) -> None:
    assert "not judged: 2 claims" in errors, errors
    assert f"  2 pages denied: {site} is not in ASSAY_EGRESS_ALLOW (" in errors
    assert f"    Add {site} to ASSAY_EGRESS_ALLOW." in errors


def test_evaluate_names_denied_pages_and_captures_them_when_allowed(home: Path, site: str) -> None:
    command = ("evaluate", "--agent", "otter", "--cache", "cache", "--json")
    denied = assay(home, "", *command)
    assert denied.returncode == 3
    assert_denied(denied.stderr, site)
    assert "run the same command again" in denied.stderr

    allowed = assay(home, site, *command)
    assert allowed.returncode == 0, allowed.stderr
    assert json.loads(allowed.stdout)["answers"][0]["score"]["value"] == 1.0
    assert "not judged" not in allowed.stderr
