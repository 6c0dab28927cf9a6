from __future__ import annotations

import re

import pytest

from judges.llm.families import FAMILIES, family_of, is_reasoning_model, params_for

STEADY = (
    "gpt-4o gpt-4.1-mini gpt-3.5-turbo chatgpt-4o-latest gpt-5-chat-latest claude-sonnet-4-5 gemini-2.5-pro "
    "us.anthropic.claude-3-7-sonnet-20250219-v1:0 meta-llama/Llama-3.1-70B qwen2.5-72b deepseek-chat"
)


@pytest.mark.parametrize("model", STEADY.split())
def test_models_that_accept_a_temperature_get_zero(model: str):
    assert params_for(model) == {"temperature": 0.0}


@pytest.mark.parametrize(
    "model",
    [
        "o4-mini",
        "o3",
        "o1-preview",
        "gpt-5",
        "gpt-5-mini",
        "gpt-5.1",
        "gpt-4o-search-preview",
        "deepseek-r1",
        "qwq-32b",
    ],
)
def test_models_that_reject_a_temperature_get_none(model: str):
    assert family_of(model) is not None
    assert params_for(model) == {}


@pytest.mark.parametrize("model", ["my-model", "lexical", "phi-4", "oscar"])
def test_unknown_models_get_no_parameters(model: str):
    assert family_of(model) is None
    assert params_for(model) == {}


def test_only_the_default_model_gets_a_reasoning_effort():
    assert params_for("gpt-6-luna") == params_for("gpt-6-luna-2026-09-22") == {"reasoning_effort": "max"}
    assert params_for("gpt-6-sol") == params_for("gpt-6.1-terra") == {}


@pytest.mark.parametrize(
    "model", ["gpt-6.1-sol", "o3", "claude-opus-5-5", "us.anthropic.claude-haiku-5-5", "gemini-3-pro"]
)
def test_reasoning_models_are_recognized(model: str):
    assert is_reasoning_model(model)
    assert "temperature" not in params_for(model)


def test_family_names_are_unique_and_patterns_are_valid():
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert all(re.compile(family.pattern) for family in FAMILIES)
