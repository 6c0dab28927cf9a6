"""Lexical judge: supported and refuted claims, quotes, and rejected requests."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, HttpUrl

from judges.grounding.folding import fold
from judges.grounding.quotes import find_quote
from judges.llm import lexical
from judges.llm.lexical import decide

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
        "The Aldermoor Bridge opened on September 3, 1884",
        "The page states that the Aldermoor Bridge has a span of 1250 m",
        "Hensley won the competition in 1879",
        "The construction of the bridge cost £92,000, as stated on the page",
    ],
)
def test_claim_stated_in_one_passage_is_supported(claim: str):
    assert judged(claim, BRIDGE)


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("The Aldermoor Bridge was opened in 1885", "another year"),
        ("The Aldermoor Bridge has a span of 1,520 m", "digits turned round"),
        ("Marie Duval painted the bridge in 1901", "the name of another sentence"),
        ("Edwin Clark opened the Aldermoor Bridge", "a name that is nowhere"),
        ("The bridge is lit at night", "the page says it is not"),
        ("", "an empty claim"),
    ],
)
def test_claim_not_stated_in_any_passage_is_refuted(claim: str, why: str):
    assert not judged(claim, BRIDGE), why


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Lake Brann has an area of 12 km²", True),
        ("Lake Brann has an area of 41.5 km²", False),
        ("The outflow of Lake Ymir is the Skarn", True),
        ("The outflow of Lake Brann is the Skarn", False),
    ],
)
def test_table_is_read_by_row_and_column(claim: str, expected: bool):
    assert judged(claim, LAKES) is expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The Fennec X2 weighs 182 grams", True),
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
        ('"Ada Byron" and "Ada Lovelace" are the same person', False),
        ("'John A. Smith' and 'John B. Smith' are the same person", False),
        ("'12 May 1931' and '1931-05-12' are the same date", True),
        ("'' and 'Ada Byron' are the same person", False),
        ("'Ada Byron' and 'Charles Babbage' are not the same person", True),
    ],
)
def test_two_quoted_names_are_compared_without_a_page(claim: str, expected: bool):
    assert judged(claim, answer="nothing to see") is expected


def test_claim_without_a_page_is_judged_by_the_answer():
    assert judged("The answer says that Lisbon has 12 bridges", answer="I counted: Lisbon has 12 bridges.")
    assert not judged("The answer says that Lisbon has 13 bridges", answer="I counted: Lisbon has 12 bridges.")


def test_quotes_occur_in_the_page_and_pass_quote_verification():
    (quote,) = decide("The Aldermoor Bridge was opened in 1884", {"page": BRIDGE}).quotes
    assert quote in BRIDGE
    assert find_quote(fold(BRIDGE), quote)


@given(st.sampled_from(BRIDGE.replace("\n", " ").split(". ")), st.integers(1000, 9999))
def test_number_that_is_not_on_the_page_is_never_supported(sentence: str, number: int):
    if str(number) not in BRIDGE.replace(",", ""):
        assert not judged(f"{sentence} {number}", BRIDGE)


def fill(schema: type[BaseModel], text: str, page_links: str = "") -> Any:
    return lexical.fill(schema, text, page_links)[1]


class Opera(BaseModel):
    title: str = ""
    composer: str | None = None
    premiere_year: int | None = None
    urls: list[str] = []


class Operas(BaseModel):
    operas: list[Opera] = []
    summary: str | None = None


class Hotel(BaseModel):
    name: str = ""
    price_per_night: float | None = None
    rooms: int | None = None
    breakfast: bool | None = None
    opened: date | None = None
    stars: Literal["three", "four", "five"] | None = None
    amenities: list[str] | None = None
    website: HttpUrl | None = None


NUMBERED = """Here are two operas:

1. **Rusalka** \u2013 composer: Antonín Dvořák; premiere year: 1901 ([score](https://scores.example/rusalka))
2. **Jenůfa** \u2013 composer: Leoš Janáček; premiere year: 1904. See https://scores.example/jenufa.

Summary: both are Czech.
"""
SECTIONS = """# Two operas

## Rusalka
- Composer: Antonín Dvořák
- Premiere: 1901
- Link: <https://scores.example/rusalka>

## Jenůfa
- Composer: Leoš Janáček
- Premiere: 1904
- Link: [score](https://scores.example/jenufa)

## Summary
Both are Czech.
"""
TABLE = """| # | Title | Composer | Premiere | Source |
|--:|---|---|---|---|
| 1 | Rusalka | Antonín Dvořák | 1901 | [score](https://scores.example/rusalka) |
| 2 | **Jenůfa** | Leoš Janáček | 1904 | https://scores.example/jenufa |

**Summary:** both are Czech.
"""


@pytest.mark.parametrize("text", [NUMBERED, SECTIONS, TABLE], ids=["numbered", "sections", "table"])
def test_same_records_are_read_from_every_layout(text: str):
    found = fill(Operas, text)
    assert isinstance(found, Operas)
    assert found.operas == [
        Opera(title="Rusalka", composer="Antonín Dvořák", premiere_year=1901, urls=["https://scores.example/rusalka"]),
        Opera(title="Jenůfa", composer="Leoš Janáček", premiere_year=1904, urls=["https://scores.example/jenufa"]),
    ]
    assert (found.summary or "").endswith("are Czech")


class Bridge(BaseModel):
    name: str | None = None
    height: str | None = None
    country: str | None = None
    url: str | None = None


class Bridges(BaseModel):
    bridges: list[Bridge] = []


BOLD_LEADS = """The tallest bridges are:

**Millau Viaduct** https://a.example/m
   - Height: 336 m
   - Country: France
**Duge Bridge** https://a.example/d
   - Height: 565 m
   - Country: China
"""
NUMBERED_HEADINGS = """### Bridge 1: Millau Viaduct
**Height**: 336 m
**Country**: France
**Reference URL**: https://a.example/m

### Bridge 2: Duge Bridge
**Height**: 565 m
**Country**: China
**Reference URL**: https://a.example/d
"""
LINKED_HEADINGS = """## [Millau Viaduct](https://a.example/m)
Height: 336 m. Country: France.

## [Duge Bridge](https://a.example/d)
Height: 565 m. Country: China.
"""
PARAGRAPHS = """Name: Millau Viaduct
Height: 336 m
Country: France
URL: https://a.example/m

Name: Duge Bridge
Height: 565 m
Country: China
URL: https://a.example/d
"""
ITEMS = """- Millau Viaduct: height: 336 m, country: France (https://a.example/m)
- Duge Bridge: height: 565 m, country: China (source: https://a.example/d)
"""


@pytest.mark.parametrize(
    "text",
    [BOLD_LEADS, NUMBERED_HEADINGS, LINKED_HEADINGS, PARAGRAPHS, ITEMS],
    ids=["bold", "headings", "linked headings", "plain", "items"],
)
def test_layouts_common_in_answers_are_read(text: str):
    assert fill(Bridges, text) == Bridges(
        bridges=[
            Bridge(name="Millau Viaduct", height="336 m", country="France", url="https://a.example/m"),
            Bridge(name="Duge Bridge", height="565 m", country="China", url="https://a.example/d"),
        ]
    )


HOTEL = """# Hotel Lindenhof

**Name:** Lindenhof am See
**Price per night:** 129.50 EUR
Rooms: 1,024
Breakfast: yes
Opened: 1931-05-12
Stars: four
Amenities: sauna, bicycles and a boat
Website: https://lindenhof.example/
"""


def test_values_are_converted_to_their_types():
    hotel = fill(Hotel, HOTEL)
    assert isinstance(hotel, Hotel)
    assert hotel.name == "Lindenhof am See"
    assert (hotel.price_per_night, hotel.rooms, hotel.breakfast) == (129.5, 1024, True)
    assert (hotel.opened, hotel.stars) == (date(1931, 5, 12), "four")
    assert hotel.amenities == ["sauna", "bicycles", "a boat"]
    assert str(hotel.website) == "https://lindenhof.example/"


def test_missing_values_have_their_defaults():
    assert fill(Operas, "I could not find anything, sorry.") == Operas()
    assert fill(Hotel, "Name: Lindenhof\nRooms: many") == Hotel(name="Lindenhof")


@pytest.mark.parametrize(
    ("claim", "page"),
    [
        ("Old pilot station", "An old pilot house. Two states met there."),
        ("The report has 120 pages", "The report has 120 chapters."),
        ("He had no notion of sources", "He had not heard of answers."),
    ],
)
def test_words_that_look_like_common_ones_are_compared(claim: str, page: str):
    found = lexical.closest(claim, page)
    assert found is not None and {lexical.key(claim.split()[-1])} <= found[3]
