from __future__ import annotations

from typing import Generic, TypeVar

import pytest
from pydantic import BaseModel

from judges.llm.chat_body import response_format
from judges.prompting.rendering import BinaryEvalResult

T = TypeVar("T")


class Inner(BaseModel):
    name: str | None = None


class Outer(BaseModel):
    people: list[Inner] = []


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


def test_nested_classes_are_strict():
    schema = response_format(Outer)["json_schema"]["schema"]
    assert schema["$defs"]["Inner"]["additionalProperties"] is False
    assert schema["$defs"]["Inner"]["required"] == ["name"]


@pytest.mark.parametrize("schema", [Free, Nested])
def test_schema_with_free_keys_is_not_strict(schema: type[BaseModel]):
    asked = response_format(schema)["json_schema"]
    assert asked["strict"] is False


def test_schema_name_contains_only_allowed_characters():
    assert response_format(Box[int])["json_schema"]["name"] == "Box_int_"
