"""The three shipped judges: loading, rubric structure, and a score of 0 for answers without content.

tests/acceptance/test_demo_tasks.py checks their results for the demo's answers and pages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import judges.tasks
from answers.submission import Answer
from app.demo.expected import EXPECTED
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.extractor import Extractor
from judges.llm.lexical import MODEL, LexicalClient
from judges.loader import load_judges
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.runner import Judgement, JudgeTools, run_judge
from judges.verifier import Verifier
from rubrics.verdict import Outcome

CATALOGUE = load_judges([Path(judges.tasks.__path__[0])])
TASKS = sorted(EXPECTED["demo"])


async def judged(task: str, text: str) -> Judgement:
    """Judge with the lexical judge while every cited page is gone."""

    async def gone(url: str) -> Evidence:
        raise NoEvidence(url, CaptureOutcome.HTTP_ERROR, "HTTP status 404", gone=True, capture=None)

    llm, block_builder = LexicalClient(), BlockBuilder(b"any secret will do for a test")
    pages = PagePreparer(block_builder)
    tools = JudgeTools(
        verifier=Verifier(llm, MODEL, block_builder=block_builder, pages=pages),
        extractor=Extractor(llm, MODEL, block_builder=block_builder, pages=pages),
        evidence_for=gone,
    )
    return await run_judge(CATALOGUE.judges[task], Answer(name="answer_1.md", text=text), tools)


def test_only_the_shipped_tasks_are_loaded():
    assert sorted(CATALOGUE.judges) == TASKS
    assert CATALOGUE.broken == {}


@pytest.mark.parametrize("task", TASKS)
async def test_answer_without_content_scores_zero(task: str):
    judgement = await judged(task, "See http://127.0.0.1:8765/museum and decide for yourself.")
    assert judgement.score.value == 0.0
    assert all(leaf.verdict and leaf.verdict.outcome is not Outcome.PASSED for leaf in judgement.rubric.leaves())
