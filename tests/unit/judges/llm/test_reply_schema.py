"""Replies whose class exists only in a task file's process."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from openai import pydantic_function_tool
from pydantic import AnyUrl, BaseModel, Field

from judges.errors import JudgeBug
from judges.llm.call_recording import schema_of
from judges.llm.client import LLMRequest
from judges.llm.encoding import request_key
from judges.llm.json_schema import ReplySchema, json_schema_of
from judges.llm.openai import response_format
from judges.prompting.rendering import BinaryEvalResult


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
    colour: Colour = Field(Colour.RED, description="Its colour")
    kind: Literal["desk", "wall"] | None = None
    watts: Annotated[int, Field(ge=0)] = 3
    shade: Inner = Field(default_factory=Inner, description="Its shade")
    parts: list[Inner] = []
    copy_: bool = Field(False, alias="copy")  # pydantic has a method of this name
    from_: str | None = Field(None, alias="from")


class Priced(BaseModel):
    prices: dict[str, float] = {}


class Node(BaseModel):
    name: str
    below: list[Node] = []


def schema_of_class(model: type[BaseModel]) -> ReplySchema:
    return ReplySchema(model.__name__, json.dumps(model.model_json_schema()))


@pytest.mark.parametrize("model", [Lamp, Priced, Node])
def test_request_is_the_same_with_the_class_and_with_its_schema(model: type[BaseModel]):
    schema = schema_of_class(model)
    assert json_schema_of(schema) == model.model_json_schema()
    assert json.dumps(response_format(schema)) == json.dumps(response_format(model))
    assert schema_of(schema) == schema_of(model)
    keys = {
        request_key(LLMRequest(model="m", messages=(), schema=each), provider="p", endpoint="e", params={})
        for each in (schema, model)
    }
    assert len(keys) == 1


def test_strict_schema_is_the_one_of_the_sdk():
    described = response_format(schema_of_class(Lamp))["json_schema"]
    assert described == {
        "name": "Lamp",
        "schema": pydantic_function_tool(Lamp)["function"].get("parameters"),
        "strict": True,
    }


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000])
def test_text_that_is_no_json_object_is_rejected(text: str):
    with pytest.raises(JudgeBug):
        json_schema_of(ReplySchema("Odd", text))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/None", "title": "x"},
        {"properties": {"a": {"$ref": "#", "title": "x"}}},
    ],
)
def test_schema_that_cannot_be_made_strict_is_a_bug_of_the_judge(schema: dict[str, Any]):
    with pytest.raises(JudgeBug, match="the schema of Odd is invalid"):
        response_format(ReplySchema("Odd", json.dumps(schema)))


T = TypeVar("T")


class Free(BaseModel):
    by_name: dict[str, int] = {}


class Nested(BaseModel):
    frees: list[Free] = []


class Box(BaseModel, Generic[T]):
    value: T


def test_verdict_has_a_strict_schema_with_all_fields_required():
    asked = response_format(BinaryEvalResult)["json_schema"]
    assert (asked["name"], asked["strict"]) == ("BinaryEvalResult", True)
    assert asked["schema"]["required"] == ["reasoning", "result", "quotes"]
    assert asked["schema"]["additionalProperties"] is False


@pytest.mark.parametrize("schema", [Free, Nested])
def test_schema_with_free_keys_is_not_strict(schema: type[BaseModel]):
    asked = response_format(schema)["json_schema"]
    assert asked["strict"] is False


def test_schema_name_contains_only_allowed_characters():
    assert response_format(Box[int])["json_schema"]["name"] == "Box_int_"
