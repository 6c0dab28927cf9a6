from __future__ import annotations

from judges.llm.families import family_of, is_reasoning_model, params_for

STEADY = "gpt-4o gpt-3.5-turbo gpt-5-chat-latest claude-sonnet-4-5 gemini-2.5-pro meta-llama/Llama-3.1-70B qwen2.5-72b"
REASONING = "o4-mini o3 gpt-5 gpt-5.1 gpt-6.1-sol claude-opus-5-5 us.anthropic.claude-haiku-5-5 gemini-3-pro"


def test_only_models_that_accept_a_temperature_get_one():
    assert [model for model in STEADY.split() if params_for(model) != {"temperature": 0.0}] == []
    assert [model for model in REASONING.split() if not is_reasoning_model(model) or params_for(model)] == []
    assert [model for model in ("my-model", "lexical", "oscar") if family_of(model) or params_for(model)] == []


def test_only_the_default_model_gets_a_reasoning_effort():
    assert params_for("gpt-6-luna") == params_for("gpt-6-luna-2026-09-22") == {"reasoning_effort": "max"}
    assert params_for("gpt-6-sol") == {}
