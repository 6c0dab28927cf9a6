"""Model client that records metrics of its requests."""

from __future__ import annotations

import time

from app.observability.metrics import Metrics
from judges.errors import JudgeError
from judges.llm.client import LLMClient, LLMReply, LLMRequest


class MeteredClient:
    """Model client that counts and times the requests to ``client``.

    Cached replies and errors are counted but not timed.
    """

    def __init__(self, client: LLMClient, metrics: Metrics) -> None:
        self._client = client
        self._metrics = metrics

    async def complete(self, request: LLMRequest) -> LLMReply:
        began = time.monotonic()
        try:
            reply = await self._client.complete(request)
        except JudgeError as error:
            self._metrics.llm_requests.labels(request.model, type(error).__name__).inc()
            raise
        if reply.cached:
            self._metrics.llm_requests.labels(request.model, "cached").inc()
        else:
            self._metrics.llm_requests.labels(request.model, "answered").inc()
            self._metrics.llm_seconds.labels(request.model).observe(time.monotonic() - began)
        return reply

    async def aclose(self) -> None:
        await self._client.aclose()
