"""Generated values, with which a judge declares its rubric without an answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from judges.analysis.task_tests.judge_file import GeneratedValuesClient, generate_values
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


async def test_client_collects_the_generated_texts() -> None:
    client = GeneratedValuesClient()
    request = LLMRequest(model="made up", messages=(), purpose="extract", schema=Survey)

    reply = await client.complete(request)

    assert reply.parsed is not None
    assert {"the town", "the name 3", "stone"} <= client.texts.keys()
