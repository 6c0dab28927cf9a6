"""Metrics of model requests."""

from __future__ import annotations

from app.observability.metrics import Metrics
from judges.errors import LLMError
from judges.llm.client import LLMReply, LLMRequest


class RequestMetrics:
    """Observer that counts model requests by outcome, and times those that were sent and answered."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        self._metrics.llm_requests.labels(request.model, "cached" if reply.cached else "answered").inc()
        if not reply.cached:
            self._metrics.llm_seconds.labels(request.model).observe(seconds)

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        self._metrics.llm_requests.labels(request.model, type(error).__name__).inc()

    def cancelled(self, request: LLMRequest) -> None:
        """Do nothing: whether the request was answered is unknown."""
