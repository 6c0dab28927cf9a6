"""Mutation tests of the shipped judges with the demo answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import judges.tasks
from answers.citations import unique_urls
from app.demo import EXPECTED, examples_dir
from app.demo.expected import page_texts
from judges.analysis.mutation.mutation_test import MutationTest, report_json
from judges.result import native_summary
from judges.trial import try_judge

JUDGES = Path(judges.tasks.__path__[0])
TEXTS = page_texts()


async def report_of(agent: str, task: str, *, seed: int, per_kind: int | None) -> dict[str, Any]:
    async def judge(text: str) -> dict[str, Any]:
        return native_summary(await try_judge(JUDGES / f"{task}.py", text, TEXTS), agent_name=agent)

    answer = (examples_dir() / agent / task / "answer_1.md").read_text("utf-8")
    testing = MutationTest(judge, answer)
    base = await testing.base()
    pages = {url: TEXTS[url] for url in unique_urls(answer) if url in TEXTS}
    runs = await testing.run(base, pages, seed=seed, per_kind=per_kind)
    return report_json(base, runs, seed=seed, model="lexical")


@pytest.mark.parametrize("task", sorted(EXPECTED["demo"]))
async def test_every_mutation_of_correct_answer_is_detected(task: str) -> None:
    report = await report_of("demo", task, seed=0, per_kind=None)

    assert (report["missed"], report["strays"], report["not_judged"]) == (0, 0, 0)
    assert report["leaves"]["never_tested"] in ([], ["museum/wheelchairs"])  # has no number or name
    assert report["expected"] >= 30
