from __future__ import annotations

import hashlib

import pytest

from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.labels import HumanDecision, Label, LabelledPage
from judges.analysis.meta_eval.items import MAX_CONCURRENT_ITEMS, ask_all, items_of
from judges.errors import LLMUnavailable
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.trial import evidence_of
from judges.verifier import Verifier
from rubrics.verdict import Outcome, Reason
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


async def test_stored_pages_are_found_by_page_id() -> None:
    wanted = []

    async def stored(page_id: str) -> Evidence:
        wanted.append(page_id)
        return evidence_of(URL, TEXT)

    (asked,) = await judge_labels(
        RuleLLM(), priced(LabelledPage(url=f"{URL}/", page_id="page_7", sha256=DIGEST)), stored=stored
    )
    assert (asked.judge, wanted) == (True, ["page_7"])


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ((), "lists no page for this URL"),
        ((LabelledPage(url=URL),), "neither the text nor the page_id of the page"),
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


async def test_claim_about_the_answer_alone_needs_no_page() -> None:
    (asked,) = await judge_labels(RuleLLM(lambda request: False), priced(sources=None))
    assert asked.judge is False


async def test_claim_with_an_empty_source_list_sends_no_request() -> None:
    (asked,) = await judge_labels(RuleLLM(), priced(sources=()))
    assert (asked.judge, asked.verdict.reason) == (None, Reason.NO_SOURCE)


async def test_unavailable_model_is_not_a_verdict() -> None:
    page = LabelledPage(url=URL, text=TEXT)
    (asked,) = await judge_labels(RuleLLM(lambda request: LLMUnavailable("down")), priced(page))
    assert (asked.judge, asked.verdict.reason) == (None, Reason.LLM_UNAVAILABLE)


async def test_undecided_items_are_not_judged_and_concurrency_is_limited() -> None:
    llm = RuleLLM()
    page = LabelledPage(url=URL, text=TEXT)
    unclear = priced(page, human=HumanDecision.UNCLEAR, claim="It is blue")
    asked = await judge_labels(
        llm, unclear, *(priced(page, claim=f"Claim {n}") for n in range(3 * MAX_CONCURRENT_ITEMS)), votes=1
    )

    assert [one.item.label.claim for one in asked] == [f"Claim {n}" for n in range(3 * MAX_CONCURRENT_ITEMS)]
    assert llm.max_in_flight <= MAX_CONCURRENT_ITEMS
