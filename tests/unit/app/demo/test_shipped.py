"""Shipped answers, their expected scores and the committed data sheet match."""

from __future__ import annotations

import httpx

from answers.citations import unique_urls
from answers.public_layout import read_folder
from answers.submission import Submission
from app.demo.expected import EXPECTED, examples_dir
from app.demo.site import HOST, PORT, demo_app


def shipped() -> list[Submission]:
    return [submission for agent in sorted(EXPECTED) for submission in read_folder(examples_dir(), agent)]


def test_each_expected_score_has_one_answer():
    found = {(one.agent, one.task_id): [answer.name for answer in one.answers] for one in shipped()}
    assert found == {(agent, task): ["answer_1.md"] for agent, tasks in EXPECTED.items() for task in tasks}
    assert sorted(path.name for path in examples_dir().iterdir()) == sorted(EXPECTED)


async def test_only_invented_citations_are_missing():
    transport = httpx.ASGITransport(demo_app())
    missing: dict[str, set[str]] = {}
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}:{PORT}") as client:
        for submission in shipped():
            for url in unique_urls(submission.answers[0].text):
                if (await client.get(url)).status_code == 404:
                    missing.setdefault(submission.agent, set()).add(submission.task_id)
    assert missing == {"demo-inventive": {"velm_directors", "pellard_gauges", "karrow_visit"}}
