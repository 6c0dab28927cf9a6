from __future__ import annotations

import pytest

from judges.errors import LLMCircuitOpen, LLMError, LLMQuotaExhausted, LLMRejected, LLMUnavailable, RejectionScope
from judges.llm.client import LLMRequest
from judges.llm.observed import ObservedLLM, RejectionMonitor
from judges.prompting.rendering import BinaryEvalResult
from tests.fakes.llm import RuleLLM

ENDPOINT, MODEL, REQUEST = RejectionScope.ENDPOINT, RejectionScope.MODEL, RejectionScope.REQUEST
ASKED = LLMRequest(model="m", messages=(), schema=BinaryEvalResult)


async def recorded_rejection(fault: LLMError, model: str = "m") -> LLMRejected | None:
    monitor = RejectionMonitor(model)
    with pytest.raises(type(fault)):
        await ObservedLLM(RuleLLM(lambda request: fault), (monitor,)).complete(ASKED)
    return monitor.rejection


@pytest.mark.parametrize(
    "fault",
    [
        LLMRejected("wrong key", status=401, scope=ENDPOINT),
        LLMRejected("no access", status=403, scope=MODEL),
        LLMRejected("no such model", status=404, scope=MODEL, no_such_model=True),
        LLMQuotaExhausted("no money", status=429, scope=ENDPOINT),
        LLMCircuitOpen("not sent", status=401, scope=ENDPOINT),
    ],
)
async def test_rejection_that_stops_the_run_is_recorded(fault: LLMError):
    assert await recorded_rejection(fault) is fault


@pytest.mark.parametrize(
    "fault",
    [
        LLMRejected("a parameter it does not take", status=400, scope=MODEL),
        LLMRejected("too long", status=400, scope=REQUEST),
        LLMUnavailable("busy", status=503),
    ],
)
async def test_error_of_a_single_request_is_not_recorded(fault: LLMError):
    assert await recorded_rejection(fault) is None


async def test_missing_model_other_than_that_of_the_run_is_not_recorded():
    fault = LLMRejected("no such model", status=404, scope=MODEL, no_such_model=True)
    assert await recorded_rejection(fault, "another") is None


async def test_wrong_key_is_recorded_for_any_model():
    fault = LLMRejected("wrong key", status=401, scope=ENDPOINT)
    assert await recorded_rejection(fault, "another") is fault
