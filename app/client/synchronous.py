"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

import httpx

from app.client import wire
from app.client.errors import ApiError
from app.client.values import Event, Job, Receipt
from app.client.waiting import Waiting


class Client:
    """Talks to one server. Raises only ``app.client.errors``. Close it, or use it with ``with``."""

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
            base_url=self.url, headers=wire.headers(api_key), timeout=timeout_s, transport=transport, trust_env=False
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
        answers: Iterable[tuple[str, str]],
        *,
        model: str | None = None,
        run: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Hand in (name, text) answers of one agent to one task; returns at once, one job per answer."""
        body = wire.submission(agent, task_id, answers, model=model, run=run, metadata=metadata)
        extra = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return wire.as_value(Receipt.read, self._call("POST", "/v1/submissions", json=body, headers=extra))

    def job(self, job_id: str) -> Job:
        return wire.as_value(Job.read, self._call("GET", f"/v1/jobs/{job_id}"))

    def jobs(self, *, status: str | None = None, agent: str | None = None, task_id: str | None = None) -> Iterator[Job]:
        """All jobs that match, newest first."""
        for item in self._items("/v1/jobs", wire.query(status=status, agent=agent, task_id=task_id)):
            yield wire.as_value(Job.read, item)

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
        """Poll until every job is done, and give them in the order asked for. A busy server is asked again.

        Raises:
            WaitTimeout: ``timeout_s`` is over first.
        """
        waiting = Waiting(job_ids, timeout_s=timeout_s, on_update=on_update)
        while pending := waiting.pending():
            for job_id in pending:
                try:
                    waiting.seen(self.job(job_id))
                except ApiError as busy:
                    time.sleep(waiting.told_to_wait(busy))
            if waiting.pending():
                waiting.check_deadline()
                time.sleep(poll_s)
        return waiting.jobs()

    def events(self, job_id: str, *, after: str | None = None) -> Iterator[Event]:
        """A job's events as they come, the terminal one last; ``after`` resumes behind an event's id."""
        extra = {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": after})
        reader = wire.EventReader()
        path = f"/v1/jobs/{job_id}/events"
        with wire.translated(self.url), self._http.stream("GET", path, headers=extra, timeout=None) as response:
            if response.is_error:
                response.read()
                wire.read(response)
            for line in response.iter_lines():
                event = reader.feed(line)
                if event is not None:
                    yield event

    def result(self, result_id: str) -> dict[str, Any]:
        return wire.as_value(dict, self._call("GET", f"/v1/results/{result_id}"))

    def results(self, *, agent: str | None = None, task_id: str | None = None) -> Iterator[dict[str, Any]]:
        """All results that match, newest first."""
        return self._items("/v1/results", wire.query(agent=agent, task_id=task_id))

    def answer(self, result_id: str) -> str:
        """The answer that a result judges, as it was handed in."""
        with wire.translated(self.url):
            return wire.read_text(self._http.get(f"/v1/results/{result_id}/answer"))

    def history(self, agent: str) -> Iterator[dict[str, Any]]:
        """Where each result of an agent comes from, newest first: its answer, run, submission and time."""
        return self._items(f"/v1/agents/{agent}/history", {})

    def summary(self, agent: str, *, run: str | None = None) -> dict[str, Any]:
        """An agent's figures, or those of one run of it."""
        params = wire.query(run=run)
        return wire.as_value(dict, self._call("GET", f"/v1/agents/{agent}/summary", params=params))

    def compare(self, first: str, others: Iterable[str]) -> dict[str, Any]:
        """Agents, ``agent@run`` or results against the first of them, and which leaves flipped and why."""
        params = {"a": first, "b": list(others)}
        return wire.as_value(dict, self._call("GET", "/v1/compare", params=params))

    def flips(self, first: str, second: str) -> Iterator[dict[str, Any]]:
        """Every leaf that did not come out the same on both sides, and why."""
        return self._items("/v1/compare/flips", {"a": first, "b": second})

    def sensitivity(self, result_id: str) -> dict[str, Any]:
        """Which leaves of a result, flipped, would change its score most."""
        return wire.as_value(dict, self._call("GET", f"/v1/results/{result_id}/sensitivity"))

    def order_sensitivity(self, first: str, second: str) -> dict[str, Any]:
        """Whether who is ahead of the two stays ahead when leaves, votes or weights change."""
        params = {"a": first, "b": second}
        return wire.as_value(dict, self._call("GET", "/v1/compare/sensitivity", params=params))

    def consistency(self, task_id: str) -> dict[str, Any]:
        """How steady a task's judge is with itself."""
        return wire.as_value(dict, self._call("GET", f"/v1/tasks/{task_id}/consistency"))

    def forecast(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What judging would take: of ``jobs`` done again, or of an ``agent``'s ``answers`` to a ``task_id``."""
        return wire.as_value(dict, self._call("POST", "/v1/forecasts", json=dict(question)))

    def usage(self, *, by: Iterable[str] = (), agent: str | None = None, task_id: str | None = None) -> dict[str, Any]:
        """What models were asked and cost, told apart by agent, task_id, model, role or day."""
        params = {**wire.query(agent=agent, task_id=task_id), "by": list(by)}
        return wire.as_value(dict, self._call("GET", "/v1/usage", params=params))

    def tasks(self) -> list[dict[str, Any]]:
        return list(self._items("/v1/tasks", {}))

    def providers(self) -> list[dict[str, Any]]:
        """The providers of models, and which of them are paused."""
        return wire.as_value(lambda body: list(body["items"]), self._call("GET", "/v1/providers"))

    def pause_provider(self, provider: str, *, reason: str) -> dict[str, Any]:
        """Leave a provider alone until it is resumed; jobs that need it wait."""
        return wire.as_value(dict, self._call("POST", f"/v1/providers/{provider}/pause", json={"reason": reason}))

    def resume_provider(self, provider: str) -> dict[str, Any]:
        """Ask a provider again."""
        return wire.as_value(dict, self._call("POST", f"/v1/providers/{provider}/resume"))

    def healthy(self) -> bool:
        """Whether a server answers and can take work."""
        with wire.translated(self.url):
            return self._http.get("/readyz").is_success

    def _call(self, method: str, path: str, **kw: Any) -> Any:
        with wire.translated(self.url):
            return wire.read(self._http.request(method, path, **kw))

    def _items(self, path: str, params: Mapping[str, str | int]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            items, cursor = wire.page(self._call("GET", path, params={**params, **wire.query(cursor=cursor)}))
            yield from items
            if cursor is None:
                return
