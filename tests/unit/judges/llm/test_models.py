"""Models that a provider does not have: recognition of the error, shutdown warnings, suggestions."""

from __future__ import annotations

import pytest

from judges.errors import LLMRejected, RejectionScope
from judges.llm.error_mapping import ErrorResponse, error_for_response
from judges.llm.models import (
    family_of,
    is_missing_model_error,
    is_reasoning_model,
    params_for,
)

MISSING = [
    # status, code and message of OpenAI, Azure, vLLM, LiteLLM, Ollama, Bedrock and others
    (404, "model_not_found", "The model `gpt-6-lunna` does not exist or you do not have access to it."),
    (400, "", "The model `o4-mini` has been deprecated, learn more here: https://example.com"),
    (404, "DeploymentNotFound", "The API deployment for this resource does not exist."),
    (400, "400", "litellm.BadRequestError: Invalid model name passed in model=gpt-9. Call `/v1/models`"),
    (403, "", "The requested model 'gpt-6-luna' is not available for this API key, or the model name is invalid."),
    (404, "api_error", "model 'llama9' not found"),
    (400, "ValidationException", "The provided model identifier is invalid."),
    (400, "invalid_request_error", "Model Not Exist"),
    (400, "invalid_model", "Invalid model: mistral-huge"),
]
OTHERS = [
    (400, "unsupported_parameter", "Unsupported parameter: 'temperature' is not supported with this model."),
    (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
    (400, "", "This model does not support image input."),
    (401, "invalid_api_key", "Incorrect API key provided: sk-1"),
    (500, "", "The model `x` does not exist"),
]


@pytest.mark.parametrize(("status", "code", "message"), MISSING)
def test_every_wording_of_a_missing_model_has_model_scope(status: int, code: str, message: str):
    error = error_for_response(ErrorResponse(provider="openai", status=status, code=code, message=message), now=0)
    assert isinstance(error, LLMRejected)
    assert error.no_such_model
    assert error.scope is RejectionScope.MODEL


@pytest.mark.parametrize(("status", "code", "message"), OTHERS)
def test_other_errors_are_not_recognized_as_a_missing_model(status: int, code: str, message: str):
    assert not is_missing_model_error(status, code, message)


STEADY = "gpt-4o gpt-3.5-turbo gpt-5-chat-latest claude-sonnet-4-5 gemini-2.5-pro meta-llama/Llama-3.1-70B qwen2.5-72b"
REASONING = "o4-mini o3 gpt-5 gpt-5.1 gpt-6.1-sol claude-opus-5-5 us.anthropic.claude-haiku-5-5 gemini-3-pro"


def test_only_models_that_accept_a_temperature_get_one():
    assert [model for model in STEADY.split() if params_for(model) != {"temperature": 0.0}] == []
    assert [model for model in REASONING.split() if not is_reasoning_model(model) or params_for(model)] == []
    assert [model for model in ("my-model", "lexical", "oscar") if family_of(model) or params_for(model)] == []


def test_only_the_default_model_gets_a_reasoning_effort():
    assert params_for("gpt-6-luna") == params_for("gpt-6-luna-2026-09-22") == {"reasoning_effort": "max"}
    assert params_for("gpt-6-sol") == {}
