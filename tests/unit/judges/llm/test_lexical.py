"""Lexical judge: supported and refuted claims, quotes, and rejected requests."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from judges.errors import LLMOutputUnusable
from judges.grounding.folding import fold
from judges.grounding.quotes import find_quote
from judges.llm.client import LLMRequest
from judges.llm.lexical import MODEL, LexicalClient, decide
from judges.prompting.rendering import BinaryEvalResult

BRIDGE = """# The Aldermoor Bridge
The Aldermoor Bridge crosses the river Tarn at Wexcombe. It was opened to traffic on 3 September 1884 by the engineer \
Clara Hensley. Its span is 1,250 m, and it carries two lanes and a footpath.

Construction cost £92,000. Hensley had won the competition in 1879 against the London firm Marsh & Sons. \
Josef Brandt painted the bridge in 1901. Marie Duval photographed it in 1923.

The bridge is not lit at night. Cyclists may use the footpath, but horses may not.
"""
LAKES = """# Lakes of the Oster plateau
| Lake | Area | Greatest depth | Outflow |
|---|---|---|---|
| Lake Ymir | 41.5 km² | 102 m | Skarn |
| Lake Brann | 12 km² | 87 m | Oster |
| Lake Ymir Minor | 3.1 km² | 9 m | none |
"""
PHONE = """# Fennec X2
Home
Shop

## Display
6.1 inches

## Battery
4,500 mAh

## Weight
182 grams
"""


def judged(claim: str, page: str | None = None, *, answer: str = "", task: str = "") -> bool:
    parts = {"answer": answer, "task": task} | ({} if page is None else {"page": page})
    return decide(claim, parts).result


@pytest.mark.parametrize(
    "claim",
    [
        "The Aldermoor Bridge was opened in 1884",
        "The Aldermoor Bridge opened on September 3, 1884",
        "The Aldermoor Bridge was opened on 1884-09-03.",
        "The page states that the Aldermoor Bridge has a span of 1250 m",
        "According to the article, Clara Hensley opened the Aldermoor Bridge",
        "Hensley won the competition in 1879",
        "Josef Brandt painted the bridge in 1901",
        "The bridge is not lit at night",
        "The construction of the bridge cost £92,000, as stated on the page",
    ],
)
def test_claim_stated_in_one_passage_is_supported(claim: str):
    assert judged(claim, BRIDGE)


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("The Aldermoor Bridge was opened in 1885", "another year"),
        ("The Aldermoor Bridge was opened on 4 September 1884", "another day"),
        ("The Aldermoor Bridge has a span of 1,520 m", "digits turned round"),
        ("Clara Hensley won the competition in 1884", "the year of another sentence"),
        ("Marie Duval painted the bridge in 1901", "the name of another sentence"),
        ("Josef Brandt painted the bridge in 1923", "the year of another sentence"),
        ("Edwin Clark opened the Aldermoor Bridge", "a name that is nowhere"),
        ("The bridge is lit at night", "the page says it is not"),
        ("The Aldermoor Bridge is made of pink granite from Sweden", "nothing of it"),
        ("", "an empty claim"),
        ("of the and it is", "words that say nothing"),
    ],
)
def test_claim_not_stated_in_any_passage_is_refuted(claim: str, why: str):
    assert not judged(claim, BRIDGE), why


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Lake Brann has an area of 12 km²", True),
        ("Lake Brann is 87 m deep", True),
        ("The greatest depth of Lake Ymir is 102 m", True),
        ("Lake Brann has an area of 41.5 km²", False),
        ("The greatest depth of Lake Brann is 102 m", False),
        ("The outflow of Lake Ymir is the Skarn", True),
        ("The outflow of Lake Brann is the Skarn", False),
    ],
)
def test_table_is_read_by_row_and_column(claim: str, expected: bool):
    assert judged(claim, LAKES) is expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The Fennec X2 weighs 182 g", False),  # unknown abbreviation of "grams", so not supported
        ("The Fennec X2 weighs 182 grams", True),
        ("The battery of the Fennec X2 has 4500 mAh", True),
        ("The battery of the Fennec X2 has 182 mAh", False),
        ("The display of the Fennec X3 measures 6.1 inches", False),
    ],
)
def test_values_are_read_under_their_headings(claim: str, expected: bool):
    assert judged(claim, PHONE) is expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("'Ada Byron' and 'Byron, Ada' are the same person", True),
        ("'A. Byron' and 'Ada Byron' are the same person", True),
        ("'Dr. Ada M. Byron' is the same person as 'Ada Byron'", True),
        ("'José Muñoz' and 'Jose Munoz' refer to the same person", True),
        ("'Shaun O'Neil' matches 'O'Neil'", True),
        ('"Ada Byron" and "Ada Lovelace" are the same person', False),
        ("'John A. Smith' and 'John B. Smith' are the same person", False),
        ("'Fennec X2' and 'Fennec X3' are the same product", False),
        ("'Lovelace' and 'Ada Lovelace' are the same person", True),
        ("'Ada' and 'Ada Lovelace' are the same person", False),
        ("'12 May 1931' and '1931-05-12' are the same date", True),
        ("'1,200' and '1200' are equal", True),
        ("'' and 'Ada Byron' are the same person", False),
        ("'Ada Byron' and 'Charles Babbage' are not the same person", True),
    ],
)
def test_two_quoted_names_are_compared_without_a_page(claim: str, expected: bool):
    assert judged(claim, answer="nothing to see") is expected


def test_claim_without_a_page_is_judged_by_the_answer():
    assert judged("The answer says that Lisbon has 12 bridges", answer="I counted: Lisbon has 12 bridges.")
    assert not judged("The answer says that Lisbon has 13 bridges", answer="I counted: Lisbon has 12 bridges.")


def test_empty_page_supports_nothing_even_if_the_answer_does():
    assert not judged("Lisbon has 12 bridges", page="", answer="Lisbon has 12 bridges.")


def test_reasoning_names_the_missing_term():
    opinion = decide("Clara Hensley opened the bridge in 1999", {"page": BRIDGE})
    assert "1999" in opinion.reasoning
    assert opinion.quotes == []


@pytest.mark.parametrize(
    ("claim", "page"),
    [("The Aldermoor Bridge was opened in 1884", BRIDGE), ("The battery of the Fennec X2 has 4500 mAh", PHONE)],
)
def test_quotes_occur_in_the_page_and_pass_quote_verification(claim: str, page: str):
    (quote,) = decide(claim, {"page": page}).quotes
    assert quote in page
    assert find_quote(fold(page), quote)


def test_sentence_that_denies_the_claim_is_quoted():
    opinion = decide("The bridge is lit at night", {"page": BRIDGE})
    assert opinion.quotes == ["The bridge is not lit at night."]


def test_very_long_sentence_is_quoted_up_to_a_word_boundary():
    page = "The tower of Ost has 214 steps " + "and one more landing " * 60
    (quote,) = decide("The tower of Ost has 214 steps", {"page": page}).quotes
    assert len(quote) <= 500
    assert page.startswith(quote + " ")


def request(**changes: object) -> LLMRequest:
    values: dict[str, object] = {
        "model": MODEL,
        "messages": (),
        "schema": BinaryEvalResult,
        "purpose": "verify",
        "parts": {"claim": "Lake Brann is 87 m deep", "page": LAKES, "answer": "", "task": ""},
    }
    return LLMRequest(**(values | changes))  # type: ignore[arg-type]


async def test_reply_names_the_lexical_model_and_costs_nothing():
    reply = await LexicalClient().complete(request())
    assert reply.model == "lexical"
    assert reply.parsed == BinaryEvalResult.model_validate_json(reply.text)
    assert isinstance(reply.parsed, BinaryEvalResult)
    assert reply.parsed.result is True
    assert reply.parsed.quotes == ["| Lake Brann | 12 km² | 87 m | Oster |"]
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.usd) == (1, 0, 0.0)


async def test_equal_requests_get_equal_replies():
    client = LexicalClient()
    assert await client.complete(request(vote=0)) == await client.complete(request(vote=2))


async def test_class_of_the_public_toolkit_without_quotes_is_supported():
    class BinaryEvalResult(BaseModel):
        reasoning: str
        result: bool

    parsed = (await LexicalClient().complete(request(schema=BinaryEvalResult))).parsed
    assert isinstance(parsed, BinaryEvalResult)
    assert parsed.result


async def test_extraction_reads_the_page_with_its_links_or_else_the_answer():
    class Lake(BaseModel):
        name: str = ""
        depth: str | None = None
        url: str | None = None

    page = "## Lake Brann\nDepth: 87 m\n"
    parts = {"answer": "## Lake Ymir\nDepth: 102 m\n", "prompt": "Read it."}
    links = {"page": page, "page_links": "Lake Brann\thttps://lakes.example/brann"}
    of_answer = await LexicalClient().complete(request(purpose="extract", schema=Lake, parts=parts))
    of_page = await LexicalClient().complete(request(purpose="extract", schema=Lake, parts=parts | links))
    assert of_answer.parsed == Lake(depth="102 m")
    assert of_page.parsed == Lake(depth="87 m", url="https://lakes.example/brann")
    assert of_page.model == "lexical"


@pytest.mark.parametrize("changes", [{"purpose": "free"}, {"schema": None}])
async def test_free_text_requests_are_rejected(changes: dict[str, object]):
    with pytest.raises(LLMOutputUnusable):
        await LexicalClient().complete(request(**changes))


async def test_long_page_does_not_block_the_event_loop():
    page = "Every stone of the quay at Brann was cut by hand. " * 3_000
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    await LexicalClient().complete(request(parts={"claim": "Lake Brann is 87 m deep", "page": page}))
    counting.cancel()
    assert turns > 0  # work in the event loop's thread would block it


@given(claim=st.text(max_size=200), page=st.text(max_size=400))
def test_any_two_texts_are_judged_and_quotes_are_verbatim(claim: str, page: str):
    opinion = decide(claim, {"page": page, "answer": claim, "task": page})
    assert opinion.reasoning
    assert all(quote in page for quote in opinion.quotes)


@given(st.sampled_from(BRIDGE.replace("\n", " ").split(". ")), st.integers(1000, 9999))
def test_number_that_is_not_on_the_page_is_never_supported(sentence: str, number: int):
    if str(number) not in BRIDGE.replace(",", ""):
        assert not judged(f"{sentence} {number}", BRIDGE)
