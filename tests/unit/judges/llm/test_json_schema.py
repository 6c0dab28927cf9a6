"""Values that JSON Schemas of reply classes accept, as pydantic generates them."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, HttpUrl

from judges.llm.json_schema import Misfit, fit, json_schema_of, object_in


class Part(BaseModel):
    tags: list[str] = []
    weight: float | None = None


class Lamp(BaseModel):
    name: str
    kind: Literal["desk", "wall"] | None = None
    watts: Annotated[int, Field(ge=0, le=100)] | None = None
    lit: bool | None = None
    built: date | None = None
    page: HttpUrl | None = None
    parts: list[Part] = []
    code: int | str | None = None


class Node(BaseModel):
    name: str
    below: list[Node] = []


LAMP = json_schema_of(Lamp)


def fitted(field: str, value: Any) -> Any:
    return fit(value, LAMP["properties"][field], LAMP)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", "Lux", "Lux"),
        ("watts", "87", 87),
        ("lit", "yes", True),
        ("built", "2020-01-02", "2020-01-02"),
        ("page", "https://a.example/x", "https://a.example/x"),
        ("kind", "desk", "desk"),
        ("code", "87", "87"),
        ("code", 87, 87),
        ("parts", [{"tags": ["a"], "weight": "1.5"}], [{"tags": ["a"], "weight": 1.5}]),
        ("watts", None, None),
    ],
)
def test_value_is_converted_to_the_type_that_fits(field: str, value: Any, expected: Any):
    assert fitted(field, value) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 3),
        ("name", None),
        ("watts", "101"),
        ("watts", "many"),
        ("built", "12 May 1931"),
        ("page", "no address"),
        ("kind", "floor"),
        ("parts", "a part"),
        ("parts", [{"tags": "a"}]),
    ],
)
def test_value_that_does_not_fit_is_rejected(field: str, value: Any):
    with pytest.raises(Misfit):
        fitted(field, value)


def test_missing_required_value_is_rejected():
    with pytest.raises(Misfit, match="required"):
        fit({"watts": 3}, LAMP, LAMP)


@pytest.mark.slow
@given(
    st.builds(
        Lamp,
        name=st.text(max_size=5),
        watts=st.none() | st.integers(0, 100),
        parts=st.lists(st.builds(Part, tags=st.lists(st.text(max_size=3), max_size=2)), max_size=2),
        page=st.none(),
    )
)
def test_every_value_of_the_class_fits_its_schema(lamp: Lamp):
    value = lamp.model_dump(mode="json", by_alias=True)
    assert fit(value, LAMP, LAMP) == value


def test_schema_that_refers_to_itself_is_followed_as_far_as_the_value_goes():
    schema = json_schema_of(Node)
    value = {"name": "a", "below": [{"name": "b", "below": [{"name": "c", "below": []}]}]}
    assert fit(value, schema, schema) == value
    with pytest.raises(Misfit):
        fit({"name": "a", "below": [{"below": []}]}, schema, schema)


def test_fields_with_objects_are_recognised():
    assert object_in(LAMP["properties"]["parts"], LAMP) == (LAMP["$defs"]["Part"], True)
    assert object_in(LAMP["properties"]["name"], LAMP) == (None, False)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 10}}},
        {"type": "string", "pattern": "(a+)+$", "minLength": "x", "format": []},
        {"type": "integer", "minimum": "x", "enum": 3},
        {"type": ["string"], "properties": 3, "required": "x"},
        {"anyOf": 3, "items": 3, "$defs": 3},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}} for _ in range(10)]}}},
    ],
)
def test_hostile_schema_ends(schema: dict[str, Any]):
    values: list[Any] = ["a" * 50 + "!", 3, [{}], {"x": 1}, None]
    for value in values:
        with suppress(Misfit):
            fit(value, schema, schema)
    object_in(schema, schema)
