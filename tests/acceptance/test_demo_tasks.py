"""The nine shipped answers, judged on the demo's real site by a real browser: every leaf ends as docs/demo.md says.

The whole path but for HTTP and the database, which tests of their own cover.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from answers.bundle import read_folder
from answers.submission import Answer
from app.demo import EXPECTED, DemoSite, examples_dir
from app.demo.shipped import page_texts
from app.demo.site import HOST, PORT
from app.pipeline import evaluate
from app.runtime import open_runtime
from tests.fakes.sandbox import unsandboxed_here
from tests.fakes.settings import settings_for_tests

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CASES = [(agent, task) for agent, tasks in EXPECTED.items() for task in tasks]
Results = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return asyncio.run(judge_all(tmp_path_factory.mktemp("data")))


async def judge_all(data_dir: Path) -> Results:
    """Every result by agent and task. The site has a port of its own here, so that a running demo is not in the way."""
    results: Results = {}
    async with DemoSite(port=0) as site:
        settings = settings_for_tests(
            data_dir=data_dir, egress_allow=frozenset({site.egress_allow}), browser_unsandboxed=unsandboxed_here()
        )
        async with open_runtime(settings) as runtime, asyncio.TaskGroup() as group:

            async def one(agent: str, task: str, answer: Answer) -> None:
                results[agent, task] = await evaluate(runtime, judge=runtime.judge(task), agent=agent, answer=answer)

            for agent in EXPECTED:
                for submission in read_folder(examples_dir(), agent):
                    text = submission.answers[0].text.replace(f"{HOST}:{PORT}", site.egress_allow)
                    answer = Answer(name=submission.answers[0].name, text=text)
                    group.create_task(one(agent, submission.task_id, answer))
    return results


def leaves(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The leaves of a result by id."""

    def below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not node["children"]:
            yield node
        for child in node["children"]:
            yield from below(child)

    return {leaf["id"]: leaf for leaf in below(result["eval_breakdown"][0]["verification_tree"])}


@pytest.mark.parametrize(("agent", "task"), CASES)
def test_every_leaf_ends_as_expected(results: Results, agent: str, task: str):
    expected = EXPECTED[agent][task]
    found = leaves(results[agent, task])
    assert len(found) == expected.leaves
    missed = {id: (leaf["outcome"], leaf["reason"]) for id, leaf in found.items() if leaf["outcome"] != "passed"}
    assert missed == dict(expected.missed)


@pytest.mark.parametrize(("agent", "task"), CASES)
def test_the_score_and_its_bounds_are_the_ones_worked_out_by_hand(results: Results, agent: str, task: str):
    expected, result = EXPECTED[agent][task], results[agent, task]
    bounds = {"low": pytest.approx(expected.low), "high": pytest.approx(expected.high)}
    value = None if expected.value is None else pytest.approx(expected.value)
    assert result["score"] == {"value": value, **bounds}
    assert result["final_score"] == pytest.approx(expected.low)
    assert result["status"] == ("incomplete" if expected.value is None else "complete")


@pytest.mark.parametrize(("agent", "task"), CASES)
def test_what_a_page_supports_is_quoted_from_it(results: Results, agent: str, task: str):
    """So the strict score is the score: no verdict rests on the judge's word alone."""
    result = results[agent, task]
    assert result["score_strict"] == result["score"]
    supported = [leaf for leaf in leaves(result).values() if leaf["outcome"] == "passed" and leaf["sources"]]
    assert all(leaf["quotes"] for leaf in supported)
    assert result["model"] == "lexical"


@pytest.mark.parametrize(
    ("task", "leaf", "quote"),
    [
        ("velm_directors", "lecture/speaker", "Henrik Aldous gives the autumn lecture on 14 November 2025"),
        ("pellard_gauges", "gauges/kestrel_6/battery", "The battery of the Kestrel 6 lasts 75 hours"),
        ("pellard_gauges", "gauges/heron_2/price", "The Heron 2 costs 1,350 crowns"),
        ("karrow_visit", "talk/speaker", "Speaker: Noor Castellane"),
        ("karrow_visit", "museum/opens", "From Tuesday to Saturday it is open from 10:00 to 17:00"),
        ("karrow_visit", "ferry/arrives", "Saturday | 8:40 | 9:25"),
    ],
    ids=["late", "late too", "pdf", "lazy", "under a banner", "table"],
)
def test_a_real_browser_saw_what_plain_http_does_not_show(results: Results, task: str, leaf: str, quote: str):
    (found, *_) = leaves(results["demo", task])[leaf]["quotes"]
    assert quote in found["text"]


def test_the_wall_is_recorded_as_what_it_is(results: Results):
    pages = {page["url"].partition("/museum/")[2]: page for page in results["demo-careless", "karrow_visit"]["pages"]}
    assert pages["members"]["outcome"] == "login_wall"
    assert pages["talks"]["outcome"] == "ok"


def test_the_shipped_texts_of_the_pages_are_what_a_browser_shows(results: Results):
    """Trials without a browser, such as `assay tasks test`, go by them."""
    shipped = {
        url.partition(f":{PORT}")[2]: hashlib.sha256(text.encode()).hexdigest() for url, text in page_texts().items()
    }
    seen = {
        urlsplit(page["url"]).path: page["bodies"]["text"]
        for result in results.values()
        for page in result["pages"]
        if page["outcome"] == "ok"
    }
    assert seen == shipped
