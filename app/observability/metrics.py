"""Prometheus metrics. Each application has its own registry; there is no global state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from judges.errors import LLMError
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.observed import RequestObserver

CONTENT_TYPE = CONTENT_TYPE_LATEST
_REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JOB_BUCKETS = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_REPLY_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
_SHARE_BUCKETS = tuple(tenth / 10 for tenth in range(11))
_LAG_CHECK_S = 0.5


class Metrics:
    """Metrics of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        options: Any = {"registry": self._registry}
        self.requests = Counter("assay_http_requests_total", "HTTP requests", ["method", "route", "status"], **options)
        self.request_seconds = Histogram(
            "assay_http_request_seconds", "Time to answer a request", ["route"], buckets=_REQUEST_BUCKETS, **options
        )
        self.jobs = Gauge("assay_jobs", "Jobs by status", ["status"], **options)
        self.stages = Gauge("assay_jobs_at_stage", "Unfinished jobs by stage", ["stage"], **options)
        self.stage_seconds = Histogram(
            "assay_stage_seconds", "Duration of a job's stages", ["stage"], buckets=_JOB_BUCKETS, **options
        )
        self.attempts = Counter("assay_job_attempts_total", "Finished job attempts by outcome", ["outcome"], **options)
        self.webhooks = Counter("assay_webhook_attempts_total", "Sent webhooks by outcome", ["outcome"], **options)
        self.job_seconds = Histogram("assay_job_seconds", "Time to judge an answer", buckets=_JOB_BUCKETS, **options)
        self.pages = Counter("assay_pages_total", "Cited pages by capture outcome", ["outcome"], **options)
        self.llm_calls = Counter(
            "assay_llm_calls_total", "Model calls in stored results", ["model", "cached"], **options
        )
        self.llm_tokens = Counter(
            "assay_llm_tokens_total", "Tokens in stored results", ["model", "direction"], **options
        )
        self.llm_usd = Counter(
            "assay_llm_usd_total", "Cost of stored results, if the price is known", ["model"], **options
        )
        self.llm_requests = Counter(
            "assay_llm_requests_total", "Model requests by outcome", ["model", "outcome"], **options
        )
        self.llm_seconds = Histogram(
            "assay_llm_seconds",
            "Time to a usable reply, including queueing and retries",
            ["model"],
            buckets=_REPLY_BUCKETS,
            **options,
        )
        self.shared_replies = Counter(
            "assay_shared_replies_total",
            "Lookups and writes of the reply cache that workers share, by event",
            ["event"],
            **options,
        )
        self.verifications = Counter(
            "assay_verifications_total",
            "Verified rewards by outcome, and why they are masked",
            ["outcome", "reason"],
            **options,
        )
        self.verification_seconds = Histogram(
            "assay_verification_seconds", "Time to verify an answer", buckets=_REPLY_BUCKETS, **options
        )
        self.verification_overhead_seconds = Histogram(
            "assay_verification_overhead_seconds",
            "Time to verify an answer in which neither a model request nor a capture ran",
            buckets=_REQUEST_BUCKETS,
            **options,
        )
        self.rewards = Histogram(
            "assay_reward", "Unmasked rewards: compatible and strict", ["score"], buckets=_SHARE_BUCKETS, **options
        )
        self.loop_lag = Gauge("assay_event_loop_lag_seconds", "Latest measured lag of the event loop", **options)

    def count_result(self, result: dict[str, Any], seconds: float) -> None:
        """Count the pages, model calls, tokens and cost of a stored result."""
        self.job_seconds.observe(seconds)
        for stage, name in (("capturing", "capture_s"), ("judging", "judge_s")):
            if name in (timing := result.get("timing") or {}):
                self.stage_seconds.labels(stage).observe(float(timing[name]))
        model, usage = str(result.get("model")), result.get("usage") or {}
        cached = int(usage.get("cached_calls", 0))
        self.llm_calls.labels(model, "yes").inc(cached)
        self.llm_calls.labels(model, "no").inc(max(0, int(usage.get("calls", 0)) - cached))
        self.llm_tokens.labels(model, "input").inc(int(usage.get("input_tokens", 0)))
        self.llm_tokens.labels(model, "output").inc(int(usage.get("output_tokens", 0)))
        self.llm_usd.labels(model).inc(float(usage.get("usd") or 0.0))
        for page in result.get("pages", ()):
            self.pages.labels(str(page.get("outcome"))).inc()

    async def monitor_event_loop(self) -> None:
        """Measure the event loop lag until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(_LAG_CHECK_S)
            self.loop_lag.set(max(0.0, loop.time() - before - _LAG_CHECK_S))

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Serve the metrics over HTTP from a thread. Return a function that stops the server.

        Raises:
            OSError: The server cannot listen on ``host`` and ``port``.
        """
        server, thread = start_http_server(port, host, self._registry)

        def end() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return end

    def expose(self) -> bytes:
        """Return the metrics in the Prometheus text format."""
        return generate_latest(self._registry)


class RequestMetrics(RequestObserver):
    """Observer that counts model requests by outcome, and times those that were sent and answered."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        self._metrics.llm_requests.labels(request.model, "cached" if reply.cached else "answered").inc()
        if not reply.cached:
            self._metrics.llm_seconds.labels(request.model).observe(seconds)

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        self._metrics.llm_requests.labels(request.model, type(error).__name__).inc()
