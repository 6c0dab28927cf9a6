"""Values that JSON Schemas of reply classes accept, as pydantic generates them."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from typing import Annotated, Any, Literal

import pytest
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


LAMP = json_schema_of(Lamp)


def fitted(field: str, value: Any) -> Any:
    return fit(value, LAMP["properties"][field], LAMP)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("watts", "87", 87),
        ("lit", "yes", True),
        ("built", "2020-01-02", "2020-01-02"),
        ("kind", "desk", "desk"),
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
        ("watts", "101"),
        ("built", "12 May 1931"),
        ("kind", "floor"),
        ("parts", [{"tags": "a"}]),
    ],
)
def test_value_that_does_not_fit_is_rejected(field: str, value: Any):
    with pytest.raises(Misfit):
        fitted(field, value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 10}}},
        {"type": "string", "pattern": "(a+)+$", "minLength": "x", "format": []},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}} for _ in range(10)]}}},
    ],
)
def test_hostile_schema_ends(schema: dict[str, Any]):
    values: list[Any] = ["a" * 50 + "!", 3, [{}], {"x": 1}, None]
    for value in values:
        with suppress(Misfit):
            fit(value, schema, schema)
    object_in(schema, schema)
