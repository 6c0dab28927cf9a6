"""Blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any

import httpx

from app.client import wire
from app.client.errors import ApiError
from app.client.sessions import SuiteSession
from app.client.values import Event, Job, Receipt
from app.client.waiting import JobWait


class Client:
    """Client of one server. Raises only the exceptions of ``app.client.errors``. Close it, or use it with ``with``."""

    def __init__(
        self,
        url: str = wire.DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout_s: float = wire.TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            headers=wire.headers(api_key),
            timeout=timeout_s,
            limits=wire.LIMITS,
            transport=transport,
            trust_env=False,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def submit(
        self,
        agent: str,
        task_id: str,
        answers: Iterable[tuple[str, str | Mapping[str, Any]]],
        *,
        model: str | None = None,
        run: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Submit answers of one agent to one task. Returns immediately; each answer becomes a job.

        ``answers`` are pairs of a name and a text, or of a name and the JSON reply of a model provider.
        """
        body = wire.submission(agent, task_id, answers, model=model, run=run, metadata=metadata)
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return wire.parse_as(Receipt.from_json, self._call("POST", "/v1/submissions", json=body, headers=headers))

    def submit_check(self, report: Mapping[str, Any], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Start a citation check, which is a job. ``report`` is the body of ``POST /v1/checks``."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return wire.parse_as(dict, self._call("POST", "/v1/checks", json=dict(report), headers=headers))

    def check(self, check_id: str) -> dict[str, Any]:
        """Return a citation check. Its ``document`` is None until it has a result."""
        return wire.parse_as(dict, self._call("GET", f"/v1/checks/{check_id}"))

    def verify(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reward of an answer, or of each one of a batch. ``request`` is the body of ``POST /v1/verify``."""
        timeout_s = wire.verification_timeout_s(request)
        found = self._call("POST", "/v1/verify", json=dict(request), timeout=timeout_s)
        return wire.parse_as(dict, found)

    def start_rescore(self, selection: Mapping[str, Any], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Judge stored answers again. ``selection`` is the body of ``POST /v1/rescores``."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return wire.parse_as(dict, self._call("POST", "/v1/rescores", json=dict(selection), headers=headers))

    def rescore(self, rescore_id: str) -> dict[str, Any]:
        """Return a rescore with the old and new scores side by side."""
        return wire.parse_as(dict, self._call("GET", f"/v1/rescores/{rescore_id}"))

    def cancel_rescore(self, rescore_id: str) -> None:
        self._call("POST", f"/v1/rescores/{rescore_id}/cancel")

    def rescorable(self, *, agent: str | None = None, task_id: str | None = None) -> list[dict[str, Any]]:
        """Return the answers that a rescore of an agent or task would judge, each with the ``id`` of its job."""
        params = wire.query(agent=agent, task_id=task_id)
        found = self._call("GET", "/v1/rescores/answers", params=params)
        return wire.parse_as(lambda body: list(body["items"]), found)

    def job(self, job_id: str) -> Job:
        return wire.parse_as(Job.from_json, self._call("GET", f"/v1/jobs/{job_id}"))

    def jobs(self, *, status: str | None = None, agent: str | None = None, task_id: str | None = None) -> Iterator[Job]:
        """Yield all matching jobs, newest first."""
        for item in self._items("/v1/jobs", wire.query(status=status, agent=agent, task_id=task_id)):
            yield wire.parse_as(Job.from_json, item)

    def cancel(self, job_id: str) -> None:
        self._call("POST", f"/v1/jobs/{job_id}/cancel")

    def retry(self, job_id: str) -> None:
        self._call("POST", f"/v1/jobs/{job_id}/retry")

    def wait(
        self,
        job_ids: Iterable[str],
        *,
        timeout_s: float | None = None,
        poll_s: float = wire.POLL_S,
        on_update: Callable[[Job], None] | None = None,
    ) -> list[Job]:
        """Poll until all jobs have ended, and return them in the order of ``job_ids``.

        If the server is busy, the request is repeated after its ``Retry-After`` time.

        Raises:
            WaitTimeout: ``timeout_s`` passed before all jobs ended.
        """
        job_wait = JobWait(job_ids, timeout_s=timeout_s, on_update=on_update)
        while pending := job_wait.pending():
            for job_id in pending:
                try:
                    job_wait.update(self.job(job_id))
                except ApiError as error:
                    time.sleep(job_wait.retry_delay_s(error))
            if job_wait.pending():
                job_wait.check_deadline()
                time.sleep(poll_s)
        return job_wait.jobs()

    def events(self, job_id: str, *, after: str | None = None) -> Iterator[Event]:
        """Yield the events of a job until it ends; with ``after``, only those after the event with this id."""
        headers = {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": after})
        reader = wire.EventReader()
        path = f"/v1/jobs/{job_id}/events"
        with wire.transport_errors(self.url), self._http.stream("GET", path, headers=headers, timeout=None) as response:
            if response.is_error:
                response.read()
                wire.read_json(response)
            for line in response.iter_lines():
                event = reader.feed(line)
                if event is not None:
                    yield event

    def result(self, result_id: str) -> dict[str, Any]:
        return wire.parse_as(dict, self._call("GET", f"/v1/results/{result_id}"))

    def results(self, *, agent: str | None = None, task_id: str | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over all matching results, newest first."""
        return self._items("/v1/results", wire.query(agent=agent, task_id=task_id))

    def answer(self, result_id: str) -> str:
        """Return the answer that a result judges, unchanged."""
        with wire.transport_errors(self.url):
            return wire.read_text(self._http.get(f"/v1/results/{result_id}/answer"))

    def history(self, agent: str) -> Iterator[dict[str, Any]]:
        """Iterate over the results of an agent without trees, newest first: answer, run, submission, time."""
        return self._items(f"/v1/agents/{agent}/history", {})

    def summary(self, agent: str, *, run: str | None = None) -> dict[str, Any]:
        """Return the summary of an agent, or of one run."""
        params = wire.query(run=run)
        return wire.parse_as(dict, self._call("GET", f"/v1/agents/{agent}/summary", params=params))

    def compare(self, first: str, others: Iterable[str]) -> dict[str, Any]:
        """Compare agents, ``agent@run`` or results with ``first``: scores, flipped leaves and their causes."""
        params = {"a": first, "b": list(others)}
        return wire.parse_as(dict, self._call("GET", "/v1/compare", params=params))

    def flips(self, first: str, second: str) -> Iterator[dict[str, Any]]:
        """Iterate over all leaves whose outcome differs between the two sides, with the causes."""
        return self._items("/v1/compare/flips", {"a": first, "b": second})

    def sensitivity(self, result_id: str) -> dict[str, Any]:
        """Return the leaves of a result whose inversion would change its score most."""
        return wire.parse_as(dict, self._call("GET", f"/v1/results/{result_id}/sensitivity"))

    def order_sensitivity(self, first: str, second: str) -> dict[str, Any]:
        """Return how stable the order of two sides is if leaves, votes or weights change."""
        params = {"a": first, "b": second}
        return wire.parse_as(dict, self._call("GET", "/v1/compare/sensitivity", params=params))

    def consistency(self, task_id: str) -> dict[str, Any]:
        """Return how consistent the judge of a task is over repeated judging of the same inputs."""
        return wire.parse_as(dict, self._call("GET", f"/v1/tasks/{task_id}/consistency"))

    def forecast(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Estimate calls, tokens and cost: of retried ``jobs``, or of an agent's new ``answers`` to a task.

        ``question`` is the body of ``POST /v1/forecasts``.
        """
        return wire.parse_as(dict, self._call("POST", "/v1/forecasts", json=dict(question)))

    def usage(self, *, by: Iterable[str] = (), agent: str | None = None, task_id: str | None = None) -> dict[str, Any]:
        """Return calls, tokens and cost of models, grouped by agent, task_id, model, role or day."""
        params = {**wire.query(agent=agent, task_id=task_id), "by": list(by)}
        return wire.parse_as(dict, self._call("GET", "/v1/usage", params=params))

    def compare_suite_runs(self, suite: str, first: str, second: str) -> dict[str, Any]:
        """Compare two finished runs of a suite, paired by step and task. Differences are second - first."""
        params = {"a": first, "b": second}
        return wire.parse_as(dict, self._call("GET", f"/v1/suites/{suite}/compare", params=params))

    def suite_leaderboard(self, suite: str) -> list[dict[str, Any]]:
        """Return the ranked runs of a suite, in groups of equal split, protocol and metric."""
        found = self._call("GET", f"/v1/suites/{suite}/leaderboard")
        return wire.parse_as(lambda body: list(body["groups"]), found)

    def start_session(self, suite: str, options: Mapping[str, Any]) -> SuiteSession:
        """Start a session over a suite: ``mind2web`` or ``mm-mind2web``.

        ``options`` is the body of ``POST /v1/suites/{suite}/sessions``.
        """
        started = self._call("POST", f"/v1/suites/{suite}/sessions", json=dict(options))
        return wire.parse_as(partial(SuiteSession, self._call), started)

    def session(self, suite: str, session_id: str) -> SuiteSession:
        """Resume a session."""
        found = self._call("GET", f"/v1/suites/{suite}/sessions/{session_id}")
        return wire.parse_as(partial(SuiteSession, self._call), found)

    def tasks(self) -> list[dict[str, Any]]:
        return list(self._items("/v1/tasks", {}))

    def providers(self) -> list[dict[str, Any]]:
        """Return all model providers and their status."""
        return wire.parse_as(lambda body: list(body["items"]), self._call("GET", "/v1/providers"))

    def pause_provider(self, provider: str, *, reason: str) -> dict[str, Any]:
        """Pause requests to a provider until it is resumed. Jobs that need it wait."""
        return wire.parse_as(dict, self._call("POST", f"/v1/providers/{provider}/pause", json={"reason": reason}))

    def resume_provider(self, provider: str) -> dict[str, Any]:
        """Resume requests to a provider."""
        return wire.parse_as(dict, self._call("POST", f"/v1/providers/{provider}/resume"))

    def healthy(self) -> bool:
        """Return whether the server responds and can accept work."""
        with wire.transport_errors(self.url):
            return self._http.get("/readyz").is_success

    def _call(self, method: str, path: str, **options: Any) -> Any:
        with wire.transport_errors(self.url):
            return wire.read_json(self._http.request(method, path, **options))

    def _items(self, path: str, params: Mapping[str, str | int]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            items, cursor = wire.page(self._call("GET", path, params={**params, **wire.query(cursor=cursor)}))
            yield from items
            if cursor is None:
                return
