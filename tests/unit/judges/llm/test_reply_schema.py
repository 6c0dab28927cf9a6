"""Replies whose class exists only in a task file's process."""

from __future__ import annotations

import json
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import pydantic_function_tool
from pydantic import AnyUrl, BaseModel, Field

from judges.errors import JudgeBug, LLMOutputUnusable
from judges.llm.call_recording import schema_of
from judges.llm.chat_body import response_format
from judges.llm.client import LLMRequest
from judges.llm.encoding import request_key
from judges.llm.json_schema import ReplySchema, ReplyType, as_reply, json_schema_of
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply


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


@pytest.mark.parametrize("model", [Lamp, Inner, Priced, Node])
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


@pytest.mark.parametrize("model", [Lamp, Inner, Node])
def test_strict_schema_is_the_one_of_the_sdk(model: type[BaseModel]):
    described = response_format(schema_of_class(model))["json_schema"]
    assert described == {
        "name": model.__name__,
        "schema": pydantic_function_tool(model)["function"].get("parameters"),
        "strict": True,
    }


def test_building_a_request_leaves_the_schema_unchanged():
    before = json.dumps(json_schema_of(Lamp))
    response_format(Lamp)
    assert json.dumps(json_schema_of(Lamp)) == before


def read(text: str, reply_type: ReplyType) -> Any:
    return read_reply(RawReply(text=text, finish=FinishReason.STOP, model="m"), reply_type, purpose="extract")


@pytest.mark.parametrize("text", ['{"name": 3}', '```json\n{"copy": true}\n```', '[{"lamp": {"from": "here"}}]'])
def test_types_of_values_are_left_to_the_original_class(text: str):
    assert read(text, schema_of_class(Lamp)) is None


@pytest.mark.parametrize("text", ["", "no object", '{"colour"', "[1]", '{"shape": "round"}'])
def test_reply_without_any_field_of_the_class_is_unusable(text: str):
    for reply_type in (Lamp, schema_of_class(Lamp)):
        with pytest.raises(LLMOutputUnusable):
            read(text, reply_type)


def test_values_become_text_only():
    values = {"name": "Lux", "copy": True, "parts": [{"tags": ["ä"], "url": None}], "from": "here"}
    text, parsed = as_reply(values, schema_of_class(Lamp))
    assert (json.loads(text), parsed) == (values, None)
    text, parsed = as_reply(values, Lamp)
    assert (json.loads(text)["copy"], parsed) == (True, Lamp.model_validate(values))


@pytest.mark.parametrize("text", ["{", "[]", "3", '"' + "x" * 1_000_001 + '"', "[" * 100_000])
def test_text_that_is_no_json_object_is_rejected(text: str):
    with pytest.raises(JudgeBug):
        json_schema_of(ReplySchema("Odd", text))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/None", "title": "x"},
        {"$ref": 3, "title": "x"},
        {"properties": {"a": 3}},
        {"properties": {"a": {"$ref": "#", "title": "x"}}},
    ],
)
def test_schema_that_cannot_be_made_strict_is_a_bug_of_the_judge(schema: dict[str, Any]):
    with pytest.raises(JudgeBug, match="the schema of Odd is invalid"):
        response_format(ReplySchema("Odd", json.dumps(schema)))


KEYWORDS = ["type", "properties", "items", "anyOf", "allOf", "enum", "$ref", "$defs", "required", "default", "title"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["object", "#/$defs/title", "#/properties/type", "#"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), below, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), json_values))
def test_any_json_object_is_a_schema_or_a_bug_of_the_judge(schema: dict[str, Any]):
    described = ReplySchema("Odd", json.dumps(schema))
    with suppress(JudgeBug):
        response_format(described)
    with suppress(LLMOutputUnusable):
        read('{"type": 1}', described)
