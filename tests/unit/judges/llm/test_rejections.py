from __future__ import annotations

import pytest

from judges.errors import LLMCircuitOpen, LLMError, LLMQuotaExhausted, LLMRejected, LLMUnavailable, RejectionScope
from judges.llm.client import LLMRequest
from judges.llm.rejections import RejectionMonitor
from judges.prompting.verdict_reply import BinaryEvalResult
from tests.fakes.llm import RuleLLM

ENDPOINT, MODEL, REQUEST = RejectionScope.ENDPOINT, RejectionScope.MODEL, RejectionScope.REQUEST
ASKED = LLMRequest(model="m", messages=(), schema=BinaryEvalResult)


async def watched(fault: LLMError, model: str = "m") -> LLMRejected | None:
    watch = RejectionMonitor(RuleLLM(lambda request: fault), model)
    with pytest.raises(type(fault)):
        await watch.complete(ASKED)
    return watch.refusal


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
async def test_what_a_key_a_payment_or_a_permission_would_mend_is_remembered(fault: LLMError):
    assert await watched(fault) is fault


@pytest.mark.parametrize(
    "fault",
    [
        LLMRejected("a parameter it does not take", status=400, scope=MODEL),
        LLMRejected("too long", status=400, scope=REQUEST),
        LLMUnavailable("busy", status=503),
    ],
)
async def test_what_another_request_might_not_meet_is_not(fault: LLMError):
    assert await watched(fault) is None


async def test_a_model_that_is_not_the_runs_own_does_not_stop_the_run():
    fault = LLMRejected("no such model", status=404, scope=MODEL, no_such_model=True)
    assert await watched(fault, "another") is None


async def test_a_wrong_key_stops_the_run_whichever_model_met_it():
    fault = LLMRejected("wrong key", status=401, scope=ENDPOINT)
    assert await watched(fault, "another") is fault
