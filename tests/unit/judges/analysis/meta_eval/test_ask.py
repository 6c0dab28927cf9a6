from __future__ import annotations

import hashlib

import pytest

from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.labels import HumanDecision, Label, LabelledPage
from judges.analysis.meta_eval.items import ask_all, items_of
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.verifier import Verifier
from rubrics.verdict import Outcome
from tests.fakes.llm import RuleLLM

URL = "https://pellard.example/heron-2"
TEXT = "The Heron 2 costs 430 crowns."
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


async def nothing_stored(page_id: str) -> Evidence:
    raise NoEvidence(page_id, CaptureOutcome.EMPTY, "no such capture is stored here", gone=False, capture=None)


def priced(*pages: LabelledPage, claim: str = "The Heron 2 costs 430 crowns", **fields) -> Label:
    defaults = {"human": HumanDecision.PASSED, "sources": (URL,), "task": "What does it cost?", "answer": "430 crowns."}
    return Label(claim=claim, pages=pages, **(defaults | fields))


async def judge_labels(llm: RuleLLM, *labels: Label, stored=nothing_stored, votes: int = 3):
    block_builder = BlockBuilder(b"x" * 32)
    judge = Verifier(llm, "scripted", block_builder=block_builder, pages=PagePreparer(block_builder))
    return await ask_all(items_of(labels), judge, stored=stored, votes=votes)


async def test_judge_gets_the_claim_page_answer_and_task_of_the_label() -> None:
    llm = RuleLLM(lambda request: True)
    (asked,) = await judge_labels(llm, priced(LabelledPage(url=URL, text=TEXT, sha256=DIGEST)))

    assert (asked.judge, len(asked.verdict.votes)) == (True, 2)
    parts = llm.requests[0].parts
    assert (parts["claim"], parts["page"], parts["answer"]) == ("The Heron 2 costs 430 crowns", TEXT, "430 crowns.")
    assert parts["task"] == "What does it cost?"
    assert asked.verdict.prompt is not None and asked.verdict.prompt.startswith("verify_page@")


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ((), "lists no page for this URL"),
        ((LabelledPage(url=URL, page_id="page_7"),), "no such capture"),
        ((LabelledPage(url=URL, text=TEXT, sha256="0" * 64),), "differs from the one in the label"),
    ],
)
async def test_missing_or_different_page_is_not_judged_without_a_request(pages, why) -> None:
    llm = RuleLLM()
    (asked,) = await judge_labels(llm, priced(*pages))

    assert (asked.judge, asked.verdict.outcome) == (None, Outcome.NOT_JUDGED)
    assert why in asked.verdict.reasoning
    assert llm.requests == []
