"""Extraction by the lexical judge: values found in different layouts, none invented."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, HttpUrl, create_model

from answers.citations import unique_urls
from judges.llm import lexical


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


def test_record_without_a_value_is_still_listed():
    found = fill(
        Operas, "# Two operas\n## Rusalka\nComposer: Antonín Dvořák\nPremiere: 1901\n## Jenůfa\nPremiere: 1904"
    )
    assert isinstance(found, Operas)
    assert [(opera.title, opera.composer) for opera in found.operas] == [
        ("Rusalka", "Antonín Dvořák"),
        ("Jenůfa", None),
    ]


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


@pytest.mark.parametrize("mark", ["1. ", "- ", ""], ids=["numbered", "bullet", "plain"])
def test_name_ends_at_its_bold_text(mark: str):
    text = (
        f"{mark}**Millau Viaduct** Opened near a town over a wide valley. ([source](https://a.example/m))\n"
        f"{mark}**Duge Bridge** hangs over the **Beipan** river. https://a.example/d\n"
    )
    assert fill(Bridges, text) == Bridges(
        bridges=[
            Bridge(name="Millau Viaduct", url="https://a.example/m"),
            Bridge(name="Duge Bridge", url="https://a.example/d"),
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


def test_list_below_its_label_is_read():
    class Packing(BaseModel):
        items_to_bring: list[str]

    assert fill(Packing, "Items to bring:\n- rope\n- two *lamps*\n\nThat is all.") == Packing(
        items_to_bring=["rope", "two lamps"]
    )


def test_nested_model_is_read_from_its_own_section():
    class Price(BaseModel):
        amount: int | None = None

    class Offer(BaseModel):
        rent: Price = Price()
        deposit: Price | None = None
        fee: Price | None = None

    found = fill(Offer, "## Rent\nAmount: 900\n\n## Deposit\nAmount: 1800\n")
    assert found == Offer(rent=Price(amount=900), deposit=Price(amount=1800), fee=None)


def test_label_can_match_the_description():
    class Trip(BaseModel):
        leg_1: str | None = Field(None, description="first train, departure")

    assert fill(Trip, "Departure: 9:40\nFare: 12 crowns") == Trip(leg_1="9:40")


def test_missing_values_have_their_defaults():
    assert fill(Operas, "I could not find anything, sorry.") == Operas()
    assert fill(Hotel, "Name: Lindenhof\nRooms: many") == Hotel(name="Lindenhof")


@pytest.mark.parametrize("kind", [int, str])
def test_missing_required_value_is_none(kind: type):
    count = create_model("Count", bridges=(kind, ...))
    assert fill(count, "There are many of them.").bridges is None
    assert fill(count, "Bridges: 12") == count(bridges=kind(12))


def test_value_of_the_wrong_type_is_omitted():
    class Colour(Enum):
        RED = "red"

    class Flag(BaseModel):
        colour: Colour | None = None

    assert fill(Flag, "Colour: green") == Flag()
    assert fill(Flag, "Colour: red") == Flag(colour=Colour.RED)


class Person(BaseModel):
    name: str = ""
    mentor: Person | None = None
    pupils: list[Person] = []


def test_recursive_class_is_supported():
    found = fill(Person, "# People\n## Ada\nMentor: Mary\n### Pupils\n- Charles\n- Grace\n")
    assert isinstance(found, Person)
    assert [pupil.name for pupil in found.pupils] == ["Charles", "Grace"]


def test_links_of_a_page_are_matched_by_their_text():
    page = "# Operas\n- Rusalka\n- Jenůfa\n"
    found = fill(Operas, page, "Rusalka\thttps://scores.example/r\nJenůfa\thttps://scores.example/j\n")
    assert isinstance(found, Operas)
    assert [opera.urls for opera in found.operas] == [["https://scores.example/r"], ["https://scores.example/j"]]


MARKS = ["# ", "## ", "- ", "1. ", "* ", "  - ", "| ", " | ", "|---|---|\n", "\n", "\n\n", ": ", "; ", ", ", ". "]
EMPHASIS = ["**", "`", "_", " \u2013 ", "(", ")", "[", "](", "[1]: ", "\u202e", "\x00"]
LINKS = ["https://a.example/x?y=1", "www.b.example", "<https://c.example/>"]
LABELS = ["Title", "Composer", "premiere year", "Name", "Rooms", "Amenities", "opened", "Stars", "Summary"]
VALUES = ["1901", "1,024.50", "12 May 1931", "yes", "Rusalka", "the lake", "and", "İstanbul", "ﬁ", "five", "Straße"]
TEXTS = st.lists(st.sampled_from([*MARKS, *EMPHASIS, *LINKS, *LABELS, *VALUES]) | st.text(max_size=5), max_size=60).map(
    "".join
)


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [found for each in value.values() for found in strings(each)]
    if isinstance(value, list):
        return [found for each in value for found in strings(each)]
    return [value] if isinstance(value, str) else []


@given(TEXTS, st.sampled_from([Operas, Opera, Hotel, Person]))
def test_every_extracted_string_occurs_in_the_text(text: str, schema: type[BaseModel]):
    found = fill(schema, text).model_dump(exclude={"website"})
    bare = text.replace("*", "").replace("`", "")
    for value in strings(found):
        assert value in text or value in bare or value in unique_urls(text)


@given(TEXTS, st.text(max_size=30))
def test_links_of_a_page_come_only_from_its_list_or_text(text: str, words: str):
    found = fill(Operas, text, f"{words}\thttps://only.example/")
    assert isinstance(found, Operas)
    for opera in found.operas:
        assert set(opera.urls) <= {"https://only.example/", *unique_urls(text)}
