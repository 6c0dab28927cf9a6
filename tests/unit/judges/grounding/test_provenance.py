from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, HttpUrl, ValidationError

from judges.extractor import KnownUrls, drop_invented

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
        "http://velm.example/list/",
        "https://karrow.example/plain",
        "https://linked.example/target",
    ],
)
def test_url_of_the_text_or_its_links_is_known_in_any_spelling(url: str):
    assert url in KNOWN


@pytest.mark.parametrize(
    "url",
    ["https://velm.example/", "https://evil.example/list"],
)
def test_other_urls_are_not_known(url: str):
    assert url not in KNOWN


def test_value_with_known_urls_is_unchanged():
    person = Person(name="Ida", page="https://velm.example/ida", urls=["https://velm.example/list"])
    assert drop_invented(person, KNOWN) == (person, ())


def test_invented_urls_are_dropped_in_nested_values():
    group = Group(
        people=[Person(name="Ida", page="https://made.up/", urls=["https://velm.example/list", "https://made.up/2"])],
        by_name={"Ida": "https://made.up/3"},
    )
    kept, dropped = drop_invented(group, KNOWN)
    assert kept == Group(people=[Person(name="Ida", urls=["https://velm.example/list"])], by_name={"Ida": None})
    assert dropped == ("https://made.up/", "https://made.up/2", "https://made.up/3")


def test_invented_url_in_a_text_field_becomes_empty():
    kept, dropped = drop_invented(Person(name="Ida", plain="https://made.up/"), KNOWN)
    assert kept.plain == ""
    assert dropped == ("https://made.up/",)


def test_field_with_an_alias_is_supported():
    kept, dropped = drop_invented(Aliased.model_validate({"Page-URL": "https://made.up/"}), KNOWN)
    assert (kept.page, dropped) == (None, ("https://made.up/",))


def test_required_url_that_is_invented_fails_validation():
    assert drop_invented(Strict(page=HttpUrl("https://velm.example/ida")), KNOWN)[1] == ()
    with pytest.raises(ValidationError):
        drop_invented(Strict(page=HttpUrl("https://made.up/")), KNOWN)


def test_item_that_does_not_occur_in_the_text_is_dropped():
    group = Group(people=[Person(name="Ida Norrstad"), Person(name="Olaf Brekke", plain="born 1899")])
    kept, dropped = drop_invented(group, KNOWN)
    assert kept == Group(people=[Person(name="Ida Norrstad")])
    assert dropped == ("Olaf Brekke, born 1899",)


@pytest.mark.parametrize(
    "item",
    [
        Person(name="I. Norrstad"),
        Person(name="Olaf Brekke", page="https://velm.example/ida"),
    ],
)
def test_item_that_partly_occurs_in_the_text_is_not_dropped(item: Person):
    assert drop_invented(Group(people=[item]), KNOWN) == (Group(people=[item]), ())
