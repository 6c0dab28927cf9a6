"""Models that a provider does not have: recognition of the error, shutdown warnings, suggestions."""

from __future__ import annotations

import asyncio
import json
from datetime import date

import pytest

from judges.errors import LLMRejected, RejectionScope
from judges.llm.error_mapping import ErrorResponse, error_for_response
from judges.llm.missing_models import (
    ListedModel,
    ModelList,
    is_missing_model_error,
    missing_model_message,
    read_models,
    shutdown_of,
    shutdown_warning,
    suggestions,
)
from judges.llm.pricing import Prices

TODAY = date(2026, 11, 22)

MISSING = [
    # status, code and message of OpenAI, Azure, vLLM, LiteLLM, Ollama, Bedrock and others
    (404, "model_not_found", "The model `gpt-6-lunna` does not exist or you do not have access to it."),
    (400, "model_not_found", "The requested model 'o4-mini' does not exist."),
    (400, "", "The model `o4-mini` has been deprecated, learn more here: https://example.com"),
    (404, "DeploymentNotFound", "The API deployment for this resource does not exist."),
    (404, "NotFoundError", "The model `qwen` does not exist."),
    (400, "400", "litellm.BadRequestError: Invalid model name passed in model=gpt-9. Call `/v1/models`"),
    (403, "", "The requested model 'gpt-6-luna' is not available for this API key, or the model name is invalid."),
    (404, "api_error", "model 'llama9' not found"),
    (404, "not_found_error", 'model "llama9" not found, try pulling it first'),
    (400, "ValidationException", "The provided model identifier is invalid."),
    (404, "ResourceNotFoundException", "This model version has reached the end of its life."),
    (400, "model_decommissioned", "The model `mixtral-8x7b` has been decommissioned and is no longer supported."),
    (400, "invalid_request_error", "Model Not Exist"),
    (400, "", "openai/gpt-99 is not a valid model ID"),
    (404, "", "models/gemini-9 is not found for API version v1beta"),
    (400, "invalid_model", "Invalid model: mistral-huge"),
    (400, "unknown_model", "Unknown model: gpt-9"),
    (404, "", "404 page not found"),
]
OTHERS = [
    (400, "unsupported_parameter", "Unsupported parameter: 'temperature' is not supported with this model."),
    (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
    (400, "", "Invalid schema for response_format 'Verdict': 'model' is not a valid key"),
    (400, "", "This model does not support image input."),
    (400, "", "Invalid model parameter: seed must be an integer"),
    (401, "invalid_api_key", "Incorrect API key provided: sk-1"),
    (403, "", "Your account has no access in this region"),
    (500, "", "The model `x` does not exist"),
    (503, "", "the model is being loaded"),
    (429, "insufficient_quota", "You exceeded your current quota"),
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


@pytest.mark.parametrize(
    ("shutdown", "expected"),
    [
        (None, None),
        (date(2027, 1, 22), None),  # 61 days
        (date(2027, 1, 21), "gpt-4o shuts down on 2027-01-21 (in 60 days)"),
        (date(2026, 11, 23), "gpt-4o shuts down on 2026-11-23 (in 1 day)"),
        (date(2026, 11, 22), "gpt-4o was shut down on 2026-11-22"),
        (date(2026, 10, 23), "gpt-4o was shut down on 2026-10-23"),
    ],
)
def test_shutdown_warning_starts_sixty_days_ahead(shutdown: date | None, expected: str | None):
    warning = shutdown_warning("gpt-4o", shutdown, today=TODAY)
    assert warning == (expected and f"{expected}: choose another model with ASSAY_MODEL or --model")


def test_shutdown_date_of_the_server_overrides_the_price_table():
    listed = [ListedModel("gpt-4o", date(2027, 3, 1)), ListedModel("mine", date(2026, 12, 1))]
    assert shutdown_of("gpt-4o", listed, Prices(), vendor="openai") == date(2027, 3, 1)
    assert shutdown_of("gpt-4o", [], Prices(), vendor="openai") == date(2027, 1, 14)
    assert shutdown_of("mine", listed, Prices(), vendor="openai") == date(2026, 12, 1)


def test_shutdown_date_of_the_price_table_applies_only_to_its_vendor():
    assert shutdown_of("gpt-4o", [], Prices(), vendor=None) is None  # Azure has its own dates


def test_mistyped_name_gets_suggestions_of_usable_models():
    assert suggestions("gtp-6-luna", (), Prices(), today=TODAY)[0] == "gpt-6-luna"
    assert "o4-mini" not in suggestions("o4-mimi", (), Prices(), today=TODAY)
    listed = [ListedModel("llama-3.3-70b"), ListedModel("llama-3.1-8b", date(2026, 1, 1))]
    assert suggestions("lama-3.3-70b", listed, Prices(), today=TODAY) == ("llama-3.3-70b",)


def test_error_names_the_shutdown_the_suggestion_and_the_setting():
    expected = missing_model_message("openai: 404 no such model", "gpt6-luna", (), Prices())
    assert expected.startswith("openai: 404 no such model (")
    assert "did you mean gpt-6-luna or gpt-5.6-luna?" in expected
    assert "ASSAY_MODEL" in expected
    assert "o4-mini was shut down on 2026-10-23" in missing_model_message("openai: 404", "o4-mini", (), Prices())


def test_invalid_entries_are_skipped():
    entries = [{"id": "a", "shutdown_date": "2027-01-14"}, {"id": 3}, "b", {}, {"id": "c", "shutdown_date": "soon"}]
    found = read_models(json.dumps({"data": entries}))
    assert found == (ListedModel("a", date(2027, 1, 14)), ListedModel("c"))
    assert read_models("[]") == read_models('{"data": 3}') == ()


class Server:
    """Backend that lists models or fails."""

    provider = "openai"

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.asked = 0

    async def models(self) -> str:
        self.asked += 1
        await asyncio.sleep(0)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


async def test_model_list_is_requested_once_for_concurrent_callers():
    server = Server('{"data": [{"id": "a"}]}')
    models = ModelList(server)
    found = await asyncio.gather(*(models.listed() for _ in range(5)))
    assert found == [(ListedModel("a"),)] * 5
    assert server.asked == 1


@pytest.mark.parametrize("reply", ["not JSON", ConnectionError("refused"), '{"data": {}}'])
async def test_failed_model_list_is_empty_and_not_requested_again(reply: str | Exception):
    server = Server(reply)
    models = ModelList(server)
    assert await models.listed() == await models.listed() == ()
    assert server.asked == 1


async def test_model_list_is_requested_again_after_hours():
    now = [0.0]
    server = Server('{"data": [{"id": "a"}]}', '{"data": [{"id": "b"}]}')
    models = ModelList(server, clock=lambda: now[0])
    await models.listed()
    now[0] = 7 * 3600.0
    assert await models.listed() == (ListedModel("b"),)


async def test_latest_returns_without_waiting_for_the_list():
    models = ModelList(Server('{"data": [{"id": "a"}]}'))
    assert models.latest() == ()
    assert await models.listed() == models.latest() == (ListedModel("a"),)
