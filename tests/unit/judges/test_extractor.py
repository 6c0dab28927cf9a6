from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from judges.errors import ExtractionFailed, LLMCircuitOpen, LLMError, LLMOutputUnusable, LLMUnavailable, UnusableKind
from judges.extractor import ExtractionQuestion, Extractor
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Style
from rubrics.verdict import Reason, Usage
from tests.fakes.llm import RuleLLM
from tests.fakes.pages import page

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
ANSWER = "Ida, see https://velm.example/ida"


class Found(BaseModel):
    name: str = ""
    urls: list[str] = Field(default_factory=list)


def extractor(llm: RuleLLM, style: Style = Style.NATIVE) -> Extractor:
    return Extractor(llm, "gpt-6-luna", block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER), style=style)


async def test_values_are_extracted_from_the_answer():
    llm = RuleLLM(values={"Found": Found(name="Ida", urls=["https://velm.example/ida"])})
    found = (
        await extractor(llm).extract(
            Found, ExtractionQuestion(prompt="The name", task="t", answer=ANSWER, instruction="exactly")
        )
    ).value
    assert found == Found(name="Ida", urls=["https://velm.example/ida"])
    (request,) = llm.requests
    assert (request.purpose, request.schema) == ("extract", Found)
    assert (request.parts["prompt"], request.parts["instruction"]) == ("The name", "exactly")


async def test_public_scripts_get_the_unfiltered_reply():
    llm = RuleLLM(values={"Found": Found(urls=["https://made.up/"])})
    found = (
        await extractor(llm, Style.COMPAT).extract(Found, ExtractionQuestion(prompt="x", task="t", answer=ANSWER))
    ).value
    assert found.urls == ["https://made.up/"]


async def test_urls_of_a_page_can_be_its_own_url_or_in_its_text_or_links():
    evidence = page("https://a.example/p", "See https://b.example/x.", links=(("C", "https://c.example/y"),))
    urls = ["https://a.example/p", "https://b.example/x", "https://c.example/y", "https://velm.example/ida"]
    llm = RuleLLM(values={"Found": Found(urls=urls)})
    extraction = await extractor(llm).extract(
        Found, ExtractionQuestion(prompt="x", task="t", answer=ANSWER, evidence=evidence)
    )
    assert extraction.value.urls == urls[:3]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (LLMUnavailable("503"), Reason.LLM_UNAVAILABLE),
        (LLMCircuitOpen("no"), Reason.LLM_REJECTED),
        (LLMOutputUnusable(UnusableKind.REFUSED, "no", usage=Usage(calls=2)), Reason.LLM_OUTPUT_UNUSABLE),
    ],
)
async def test_failed_extraction_raises_with_cause_and_usage(fault: LLMError, reason: Reason):
    llm = RuleLLM(values={"Found": fault})
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(llm).extract(Found, ExtractionQuestion(prompt="x", task="t", answer=ANSWER))
    assert caught.value.cause_reason is reason
    assert caught.value.usage == fault.usage
