from __future__ import annotations

import pytest

from app.observability.metrics import Metrics, RequestMetrics
from judges.errors import LLMUnavailable
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.observed import ObservedLLM
from rubrics.verdict import Usage


class Model:
    """Model that returns or raises the given results in order."""

    def __init__(self, *ends: LLMReply | Exception) -> None:
        self._ends = list(ends)

    async def complete(self, request: LLMRequest) -> LLMReply:
        end = self._ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    async def aclose(self) -> None:
        pass


def reply(*, cached: bool = False) -> LLMReply:
    return LLMReply(text="yes", parsed=None, model="m", usage=Usage(), cached=cached)


async def test_requests_are_timed_and_counted_by_outcome():
    metrics = Metrics()
    model = Model(reply(), reply(cached=True), LLMUnavailable("down"))
    client = ObservedLLM(model, (RequestMetrics(metrics),))
    request = LLMRequest(model="m", messages=())
    await client.complete(request)
    await client.complete(request)
    with pytest.raises(LLMUnavailable):
        await client.complete(request)
    figures = metrics.expose().decode()
    assert 'assay_llm_requests_total{model="m",outcome="answered"} 1.0' in figures
    assert 'assay_llm_requests_total{model="m",outcome="cached"} 1.0' in figures
    assert 'assay_llm_requests_total{model="m",outcome="LLMUnavailable"} 1.0' in figures
    assert 'assay_llm_seconds_count{model="m"} 1.0' in figures
