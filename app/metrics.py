"""Figures for Prometheus. One registry per application object, so that nothing is global."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
_REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JOB_BUCKETS = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_LAG_CHECK_S = 0.5


class Metrics:
    """What is counted. Attributes are the instruments."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        here: Any = {"registry": self._registry}
        self.requests = Counter("assay_http_requests_total", "HTTP requests", ["method", "route", "status"], **here)
        self.request_seconds = Histogram(
            "assay_http_request_seconds", "Time to answer a request", ["route"], buckets=_REQUEST_BUCKETS, **here
        )
        self.jobs = Gauge("assay_jobs", "Jobs by status", ["status"], **here)
        self.attempts = Counter("assay_job_attempts_total", "Ended attempts by outcome", ["outcome"], **here)
        self.job_seconds = Histogram("assay_job_seconds", "Time to judge an answer", buckets=_JOB_BUCKETS, **here)
        self.pages = Counter("assay_pages_total", "Pages that answers cited, by outcome", ["outcome"], **here)
        self.llm_calls = Counter("assay_llm_calls_total", "Model calls in stored results", ["model", "cached"], **here)
        self.llm_tokens = Counter("assay_llm_tokens_total", "Tokens in stored results", ["model", "direction"], **here)
        self.llm_usd = Counter(
            "assay_llm_usd_total", "Cost of stored results, where the price is known", ["model"], **here
        )
        self.loop_lag = Gauge("assay_event_loop_lag_seconds", "How late the event loop woke up last", **here)

    def count_result(self, result: dict[str, Any], seconds: float) -> None:
        """Count what a stored result says about pages and models."""
        self.job_seconds.observe(seconds)
        model, usage = str(result.get("model")), result.get("usage") or {}
        cached = int(usage.get("cached_calls", 0))
        self.llm_calls.labels(model, "yes").inc(cached)
        self.llm_calls.labels(model, "no").inc(max(0, int(usage.get("calls", 0)) - cached))
        self.llm_tokens.labels(model, "input").inc(int(usage.get("input_tokens", 0)))
        self.llm_tokens.labels(model, "output").inc(int(usage.get("output_tokens", 0)))
        self.llm_usd.labels(model).inc(float(usage.get("usd") or 0.0))
        for page in result.get("pages", ()):
            self.pages.labels(str(page.get("outcome"))).inc()

    async def watch_loop(self) -> None:
        """Measure the event loop's lag until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(_LAG_CHECK_S)
            self.loop_lag.set(max(0.0, loop.time() - before - _LAG_CHECK_S))

    def expose(self) -> bytes:
        """The present figures in Prometheus's text format."""
        return generate_latest(self._registry)
