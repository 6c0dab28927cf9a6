"""Generated values, with which a judge declares its rubric without an answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from judges.analysis.mutation.judge_file import GeneratedValuesClient, generate_values
from judges.errors import LLMOutputUnusable
from judges.llm.client import LLMRequest


class Material(StrEnum):
    STONE = "stone"
    STEEL = "steel"


class Bridge(BaseModel):
    name: str
    built: Annotated[int, Field(ge=1000, le=1001)]
    source_urls: list[str]


class Survey(BaseModel):
    bridges: list[Bridge]
    town: str | None
    material: Material
    kind: Literal["road", "rail"]
    finished: bool


def test_every_field_is_filled_with_a_value_of_its_type() -> None:
    values = Survey.model_validate(generate_values(Survey))

    assert (values.town, values.material, values.kind, values.finished) == ("the town", "stone", "road", True)
    assert len(values.bridges) == 3


def test_entries_of_a_list_differ() -> None:
    bridges = Survey.model_validate(generate_values(Survey)).bridges

    assert [bridge.name for bridge in bridges] == ["the name 1", "the name 2", "the name 3"]
    assert len({url for bridge in bridges for url in bridge.source_urls}) == 9


def test_numbers_stay_within_their_limits() -> None:
    assert [bridge.built for bridge in Survey.model_validate(generate_values(Survey)).bridges] == [1001, 1000, 1000]


def test_recursive_schema_terminates() -> None:
    class Part(BaseModel):
        name: str
        parts: list[Part] = []

    assert Part.model_validate(generate_values(Part)).parts


async def test_client_collects_the_generated_texts() -> None:
    client = GeneratedValuesClient()
    request = LLMRequest(model="made up", messages=(), purpose="extract", schema=Survey)

    reply = await client.complete(request)

    assert reply.parsed is not None
    assert {"the town", "the name 3", "stone"} <= client.texts.keys()


async def test_free_text_requests_are_rejected() -> None:
    with pytest.raises(LLMOutputUnusable):
        await GeneratedValuesClient().complete(LLMRequest(model="made up", messages=(), purpose="free", schema=None))
