"""Models that a provider does not have: recognition of the error, shutdown warnings, suggestions."""

from __future__ import annotations

import pytest

from judges.errors import LLMRejected, RejectionScope
from judges.llm.error_mapping import ErrorResponse, error_for_response
from judges.llm.missing_models import (
    is_missing_model_error,
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
