from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, Field, ValidationError

from judges.errors import JudgeBug
from judges.isolation.schema_model import schema_model
from judges.llm.chat_body import response_format
from judges.llm.client import LLMRequest
from judges.llm.encoding import request_key


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Inner(BaseModel):
    """An inner one."""

    url: AnyUrl | None = None
    tags: list[str] = Field(default_factory=list)


class Lamp(BaseModel):
    """A lamp."""

    name: str = Field(description="What it is called")
    colour: Colour = Colour.RED
    kind: Literal["desk", "wall"] | None = None
    watts: Annotated[int, Field(ge=0)] = 3
    parts: list[Inner] = []
    prices: dict[str, float] = {}
    copy_: bool = Field(False, alias="copy")  # pydantic has a method of this name
    from_: str | None = Field(None, alias="from")


class Node(BaseModel):
    name: str
    below: list[Node] = []


def made_of(schema: type[BaseModel]) -> type[BaseModel]:
    return schema_model(schema.__name__, json.dumps(schema.model_json_schema()))


@pytest.mark.parametrize("schema", [Lamp, Inner, Node])
def test_stand_in_has_the_same_schema_and_request_key(schema: type[BaseModel]):
    made = made_of(schema)
    assert made.model_json_schema() == schema.model_json_schema()
    assert response_format(made) == response_format(schema)
    keys = {
        request_key(LLMRequest(model="m", messages=(), schema=each), provider="p", endpoint="e", params={})
        for each in (made, schema)
    }
    assert len(keys) == 1


def test_equal_schemas_give_one_class():
    assert made_of(Lamp) is made_of(Lamp)
    assert made_of(Lamp) is not made_of(Inner)


def test_values_of_an_object_are_kept_unchanged():
    values = {"name": "Lux", "copy": True, "parts": [{"tags": ["a"], "url": None}], "from": "here", "new": 1}
    for made in (made_of(Lamp).model_validate(values), made_of(Lamp).model_validate_json(json.dumps(values))):
        assert json.loads(made.model_dump_json(by_alias=True, exclude_unset=True)) == values


def test_type_errors_are_left_to_the_original_class():
    made = made_of(Lamp)
    for text in ('{"name": 3}', "[1]", "null"):
        assert isinstance(made.model_validate_json(text, strict=True), made)
    with pytest.raises(ValidationError, match="Invalid JSON"):
        made.model_validate_json("{")


def test_returned_schema_can_be_modified():
    made_of(Lamp).model_json_schema().clear()
    assert made_of(Lamp).model_json_schema() == Lamp.model_json_schema()


@pytest.mark.parametrize("schema", ["{", "[]", "3", '"' + "x" * 1_000_001 + '"', "[" * 100_000])
def test_invalid_schema_is_rejected(schema: str):
    with pytest.raises(JudgeBug):
        schema_model("Odd", schema)


WORDS = [
    "type",
    "properties",
    "items",
    "anyOf",
    "enum",
    "$ref",
    "$defs",
    "required",
    "default",
    "_x",
    "a b",
    "1",
    "copy",
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "anyOf",
                    "enum",
                    "$ref",
                    "$defs",
                    "required",
                    "default",
                    "_x",
                    "a b",
                    "1",
                ]
            ),
            below,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["type", "properties", "$defs", "required", "title", "$ref"]), json_values))
def test_any_json_object_gives_a_class(schema: dict[str, Any]):
    assert issubclass(schema_model("Odd", json.dumps(schema)), BaseModel)
