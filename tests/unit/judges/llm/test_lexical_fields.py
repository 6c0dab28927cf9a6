"""Extraction by the lexical judge from answers it has never seen: what is found, and that nothing is made up."""

from __future__ import annotations

import time
from datetime import date
from enum import Enum
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges.llm.lexical_fields import fill
from pydantic import BaseModel, Field, HttpUrl

from answers.citations import unique_urls
from judges.errors import LLMOutputUnusable


class Opera(BaseModel):
    title: str = ""
    composer: str | None = None
    premiere_year: int | None = None
    urls: list[str] = []


class Operas(BaseModel):
    operas: list[Opera] = []
    summary: str | None = None


class Hotel(BaseModel):
    name: str
    price_per_night: float | None = None
    rooms: int | None = None
    breakfast: bool | None = None
    opened: date | None = None
    stars: Literal["three", "four", "five"] | None = None
    amenities: list[str] = []
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
- Link: [score][1]

## Summary
Both are Czech.

[1]: https://scores.example/jenufa
"""
TABLE = """| # | Title | Composer | Premiere | Source |
|--:|---|---|---|---|
| 1 | Rusalka | Antonín Dvořák | 1901 | [score](https://scores.example/rusalka) |
| 2 | **Jenůfa** | Leoš Janáček | 1904 | https://scores.example/jenufa |

**Summary:** both are Czech.
"""
SENTENCES = """- *Rusalka* has the composer Antonín Dvořák and had its premiere in 1901 (https://scores.example/rusalka).
- *Jenůfa* has the composer Leoš Janáček and had its premiere in 1904 (https://scores.example/jenufa).
"""


@pytest.mark.parametrize(
    "text", [NUMBERED, SECTIONS, TABLE, SENTENCES], ids=["numbered", "sections", "table", "sentences"]
)
def test_reads_the_same_records_from_every_layout(text: str):
    found = fill(Operas, text)
    assert isinstance(found, Operas)
    assert [opera.composer for opera in found.operas] == ["Antonín Dvořák", "Leoš Janáček"]
    assert [opera.premiere_year for opera in found.operas] == [1901, 1904]
    assert [opera.urls for opera in found.operas] == [
        ["https://scores.example/rusalka"],
        ["https://scores.example/jenufa"],
    ]


@pytest.mark.parametrize("text", [NUMBERED, SECTIONS, TABLE], ids=["numbered", "sections", "table"])
def test_takes_a_records_name_from_its_heading_bold_words_or_first_cell(text: str):
    found = fill(Operas, text)
    assert isinstance(found, Operas)
    assert [opera.title for opera in found.operas] == ["Rusalka", "Jenůfa"]
    assert (found.summary or "").endswith("are Czech")


class Bridge(BaseModel):
    name: str | None = None
    height: str | None = None
    country: str | None = None
    url: str | None = None


class Bridges(BaseModel):
    bridges: list[Bridge] = []


BOLD_LEADS = """The tallest bridges are:

**1. Millau Viaduct** https://a.example/m
   - Height: 336 m
   - Country: France
**2. Duge Bridge** https://a.example/d
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
PARAGRAPHS = """Name: Millau Viaduct
Height: 336 m
Country: France
URL: https://a.example/m

Name: Duge Bridge
Height: 565 m
Country: China
URL: https://a.example/d
"""
NOTES = """- Millau Viaduct: height: 336 m, country: France [^1]
- Duge Bridge: height: 565 m, country: China [2]

[^1]: see https://a.example/m
[2] https://a.example/d
"""


@pytest.mark.parametrize(
    "text", [BOLD_LEADS, NUMBERED_HEADINGS, PARAGRAPHS, NOTES], ids=["bold", "headings", "plain", "notes"]
)
def test_reads_the_layouts_that_assistants_like(text: str):
    assert fill(Bridges, text) == Bridges(
        bridges=[
            Bridge(name="Millau Viaduct", height="336 m", country="France", url="https://a.example/m"),
            Bridge(name="Duge Bridge", height="565 m", country="China", url="https://a.example/d"),
        ]
    )


def test_a_long_hostile_text_is_read_in_time():
    text = "- a: b: c, d: https://a.example/x [1]\n[1] https://b.example\n" * 1_500
    began = time.perf_counter()
    fill(Bridges, text)
    assert time.perf_counter() - began < 10


HOTEL = """# Hotel Lindenhof

**Name:** Lindenhof am See
**Price per night:** 129.50 EUR
Rooms: 1,024
Breakfast: yes
Opened: 12 May 1931
Stars: Four stars
Amenities: sauna, bicycles and a boat
Website: https://lindenhof.example/
"""


def test_reads_each_value_as_its_type_wants_it():
    hotel = fill(Hotel, HOTEL)
    assert isinstance(hotel, Hotel)
    assert hotel.name == "Lindenhof am See"
    assert (hotel.price_per_night, hotel.rooms, hotel.breakfast) == (129.5, 1024, True)
    assert (hotel.opened, hotel.stars) == (date(1931, 5, 12), "four")
    assert hotel.amenities == ["sauna", "bicycles", "a boat"]
    assert str(hotel.website) == "https://lindenhof.example/"


def test_reads_a_list_below_its_label():
    class Packing(BaseModel):
        items_to_bring: list[str]

    assert fill(Packing, "Items to bring:\n- rope\n- two *lamps*\n\nThat is all.") == Packing(
        items_to_bring=["rope", "two lamps"]
    )


def test_a_nested_model_is_read_from_its_own_section():
    class Price(BaseModel):
        amount: int | None = None

    class Offer(BaseModel):
        rent: Price = Price()
        deposit: Price = Price()

    found = fill(Offer, "## Rent\nAmount: 900\n\n## Deposit\nAmount: 1800\n")
    assert found == Offer(rent=Price(amount=900), deposit=Price(amount=1800))


def test_a_label_may_match_the_description_or_an_alias():
    class Trip(BaseModel):
        leg_1: str | None = Field(None, description="first train, departure")
        fare: str | None = Field(None, alias="ticketPrice")

    found = fill(Trip, "Departure: 9:40\nTicket price: 12 crowns")
    assert found == Trip(leg_1="9:40", ticketPrice="12 crowns")


def test_what_is_not_there_stays_at_its_default():
    assert fill(Operas, "I could not find anything, sorry.") == Operas()
    assert fill(Hotel, "Name: Lindenhof\nRooms: many").model_dump(exclude_none=True) == {
        "name": "Lindenhof",
        "amenities": [],
    }


def test_a_required_number_that_is_missing_is_a_fault():
    class Count(BaseModel):
        bridges: int

    with pytest.raises(LLMOutputUnusable, match="Count"):
        fill(Count, "There are many bridges.")
    assert fill(Count, "Bridges: 12") == Count(bridges=12)


def test_a_required_text_that_is_missing_is_empty():
    assert fill(Hotel, "Nothing here.") == Hotel(name="")


def test_a_value_of_the_wrong_kind_is_left_out():
    class Colour(Enum):
        RED = "red"

    class Flag(BaseModel):
        colour: Colour | None = None

    assert fill(Flag, "Colour: green") == Flag()
    assert fill(Flag, "Colour: Red") == Flag(colour=Colour.RED)


class Person(BaseModel):
    name: str = ""
    mentor: Person | None = None
    pupils: list[Person] = []


def test_a_class_within_itself_comes_to_an_end():
    found = fill(Person, "# People\n## Ada\nMentor: Mary\n### Pupils\n- Charles\n- Grace\n")
    assert isinstance(found, Person)
    assert [pupil.name for pupil in found.pupils] == ["Charles", "Grace"]


def test_a_wrong_value_under_an_alias_is_left_out():
    class Ticket(BaseModel):
        price: int | None = Field(None, alias="ticketPrice", gt=100)
        notes: list = []

    assert fill(Ticket, "Ticket price: 12\nNotes: cash, card").model_dump() == {"price": None, "notes": []}


def test_links_of_a_page_are_found_by_their_words():
    page = "# Operas\n- Rusalka\n- Jenůfa\n"
    found = fill(Operas, page, "Rusalka\thttps://scores.example/r\nJenůfa\thttps://scores.example/j\n")
    assert isinstance(found, Operas)
    assert [opera.urls for opera in found.operas] == [["https://scores.example/r"], ["https://scores.example/j"]]


FRAGMENTS = [
    *(
        "# ",
        "## ",
        "- ",
        "1. ",
        "* ",
        "  - ",
        "| ",
        " | ",
        "|---|---|\n",
        "\n",
        "\n\n",
        ": ",
        "; ",
        ", ",
        ". ",
        "**",
        "`",
        "_",
    ),
    *(
        " \u2013 ",
        "(",
        ")",
        "[",
        "](",
        "[1]: ",
        "https://a.example/x?y=1",
        "www.b.example",
        "<https://c.example/>",
        "\u202e",
        "\x00",
    ),
    *(
        "Title",
        "Composer",
        "premiere year",
        "Name",
        "Rooms",
        "Amenities",
        "opened",
        "1901",
        "1,024.50",
        "12 May 1931",
        "yes",
    ),
    *("Rusalka", "the lake", "and", "İstanbul", "ﬁ", "five", "Straße"),
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=60).map("".join)


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [found for each in value.values() for found in strings(each)]
    if isinstance(value, list):
        return [found for each in value for found in strings(each)]
    return [value] if isinstance(value, str) else []


@given(TEXTS, st.sampled_from([Operas, Opera, Hotel]))
def test_never_crashes_and_never_says_what_the_text_does_not(text: str, schema: type[BaseModel]):
    found = fill(schema, text).model_dump(exclude={"stars", "website"})
    bare = text.replace("*", "").replace("`", "")
    for value in strings(found):
        assert value in text or value in bare or value in unique_urls(text)


@given(TEXTS, st.text(max_size=30))
def test_links_of_a_page_come_only_from_its_list(text: str, words: str):
    found = fill(Operas, text, f"{words}\thttps://only.example/")
    assert isinstance(found, Operas)
    for opera in found.operas:
        assert set(opera.urls) <= {"https://only.example/", *unique_urls(text)}
