from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, HttpUrl, ValidationError

from judges.grounding.provenance import KnownUrls, drop_invented

ANSWER = """Ida Norrstad, see [her page](https://www.velm.example/ida?utm_source=x) and https://velm.example/list.
Also www.karrow.example/plain."""
KNOWN = KnownUrls(ANSWER, ["https://linked.example/target"])


class Person(BaseModel):
    name: str
    page: str | None = None
    plain: str = ""
    urls: list[str] = Field(default_factory=list)


class Group(BaseModel):
    people: list[Person] = Field(default_factory=list)
    by_name: dict[str, str | None] = Field(default_factory=dict)


class Strict(BaseModel):
    page: HttpUrl


class Aliased(BaseModel):
    page: str | None = Field(default=None, alias="Page-URL")


@pytest.mark.parametrize(
    "url",
    [
        "https://www.velm.example/ida?utm_source=x",
        "https://velm.example/ida",
        "http://velm.example/list/",
        "www.karrow.example/plain",
        "https://karrow.example/plain",
        "https://linked.example/target",
    ],
)
def test_an_address_of_the_text_or_its_links_is_known_in_any_spelling(url: str):
    assert url in KNOWN


@pytest.mark.parametrize(
    "url",
    ["https://velm.example/", "https://velm.example/lis", "https://evil.example/list", "https://velm.example/other"],
)
def test_other_addresses_are_not_known(url: str):
    assert url not in KNOWN


def test_a_value_whose_addresses_are_all_real_is_returned_itself():
    person = Person(name="Ida", page="https://velm.example/ida", urls=["https://velm.example/list"])
    assert drop_invented(person, KNOWN) == (person, ())


def test_invented_addresses_go_wherever_they_are():
    group = Group(
        people=[Person(name="Ida", page="https://made.up/", urls=["https://velm.example/list", "https://made.up/2"])],
        by_name={"Ida": "https://made.up/3"},
    )
    kept, dropped = drop_invented(group, KNOWN)
    assert kept == Group(people=[Person(name="Ida", urls=["https://velm.example/list"])], by_name={"Ida": None})
    assert dropped == ("https://made.up/", "https://made.up/2", "https://made.up/3")


def test_a_plain_text_field_becomes_empty():
    kept, dropped = drop_invented(Person(name="Ida", plain="https://made.up/"), KNOWN)
    assert kept.plain == ""
    assert dropped == ("https://made.up/",)


def test_text_that_merely_mentions_an_address_is_left_alone():
    person = Person(name="Ida", plain="as https://made.up/ says")
    assert drop_invented(person, KNOWN) == (person, ())


def test_fields_with_an_alias_are_read_back():
    kept, dropped = drop_invented(Aliased.model_validate({"Page-URL": "https://made.up/"}), KNOWN)
    assert (kept.page, dropped) == (None, ("https://made.up/",))


def test_a_class_that_needs_an_address_has_no_honest_value_without_one():
    assert drop_invented(Strict(page=HttpUrl("https://velm.example/ida")), KNOWN)[1] == ()
    with pytest.raises(ValidationError):
        drop_invented(Strict(page=HttpUrl("https://made.up/")), KNOWN)


def test_an_item_of_which_nothing_occurs_was_made_up():
    group = Group(people=[Person(name="Ida Norrstad"), Person(name="Olaf Brekke", plain="born 1899")])
    kept, dropped = drop_invented(group, KNOWN)
    assert kept == Group(people=[Person(name="Ida Norrstad")])
    assert dropped == ("Olaf Brekke, born 1899",)


@pytest.mark.parametrize(
    "item",
    [
        Person(name="I. Norrstad"),
        Person(name="somebody", plain="in lower case"),
        Person(name="Olaf Brekke", page="https://velm.example/ida"),
        Person(name="Brekke, son of Ida"),
    ],
)
def test_an_item_that_has_anything_of_the_text_is_left_to_judges(item: Person):
    assert drop_invented(Group(people=[item]), KNOWN) == (Group(people=[item]), ())
