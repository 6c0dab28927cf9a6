"""Extraction into classes that cannot be filled: a failed extraction, never a crash."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, field_validator
from pydantic.v1 import BaseModel as OldModel

from mind2web2 import LLMClient
from tests.compat.scripted import ScriptedClient, initialized_evaluator
from tests.standin.llm import StandInLLM


class Opaque:
    """Type without a JSON schema."""


class Trimmed(BaseModel):
    name: str | None = "nobody"

    @field_validator("name", mode="before")
    @classmethod
    def trim(cls, name: Any) -> str:
        return name.strip()  # type: ignore[no-any-return]  # raises AttributeError for null


class Calling(BaseModel):
    call: Callable[[], int] | None = None


class Holding(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: Opaque | None = None


class Old(OldModel):
    name: str = "nobody"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandInLLM]:
    async with StandInLLM() as running:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        yield running


@pytest.mark.parametrize(
    ("kind", "recorded"),
    [
        (Trimmed, {"name": "nobody"}),
        (Calling, {"call": None}),
        (Holding, {"thing": None}),
        (Old, {"name": "nobody"}),
    ],
)
async def test_class_that_cannot_be_filled_gives_defaults_and_an_incomplete_result(
    kind: Any, recorded: dict[str, Any], server: StandInLLM
):
    e = initialized_evaluator(LLMClient("openai", is_async=True))
    assert isinstance(await e.extract("Who?", kind), kind)
    summary = e.get_summary()
    assert summary["status"] == "incomplete"
    assert summary["eval_breakdown"][0]["info"] == [{"extraction": recorded}]


@pytest.mark.parametrize("form", [dict, json.dumps])
async def test_keys_of_a_custom_client_may_differ_in_letter_case(form: Callable[[dict[str, Any]], Any]):
    class Raw(ScriptedClient):
        def _extracted(self, schema: type[BaseModel]) -> Any:
            return form({"NAME": " Ada "})

    e = initialized_evaluator(Raw())
    assert (await e.extract("Who?", Trimmed)).name == "Ada"
