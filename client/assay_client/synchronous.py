"""Blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay_client import wire
from assay_client.errors import ApiError
from assay_client.operations import Operations
from assay_client.values import Job, Receipt
from assay_client.waiting import JobWait

if TYPE_CHECKING:
    from assay_client import types


class Client(Operations):
    """Client of one server: a method for each operation of the API, and shortcuts for their usual combinations.

    Raises only the exceptions of ``assay_client.errors``. Close it, or use it with ``with``.
    """

    def __enter__(self) -> Client:
        return self

    def submit(
        self,
        agent: str,
        task_id: str,
        answers: Iterable[tuple[str, str | Mapping[str, Any]]],
        *,
        model: str | None = None,
        run: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        evidence: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        evidence_policy: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Submit answers of one agent to one task. Returns immediately; each answer becomes a job.

        ``answers`` are pairs of a name and a text, or of a name and the JSON reply of a model provider. ``evidence``
        has the pages that the agent supplied by the name of the answer.
        """
        body = wire.submission(
            agent,
            task_id,
            answers,
            model=model,
            run=run,
            metadata=metadata,
            evidence=evidence,
            evidence_policy=evidence_policy,
        )
        return wire.parse_as(Receipt.from_json, self.create_submission(body, idempotency_key=idempotency_key))

    def wait(
        self,
        job_ids: Iterable[str],
        *,
        timeout_s: float | None = None,
        poll_s: float = wire.POLL_S,
        on_update: Callable[[Job], None] | None = None,
    ) -> list[Job]:
        """Poll until all jobs have ended or are paused, and return them in the order of ``job_ids``.

        If the server is busy, the request is repeated after its ``Retry-After`` time.

        Raises:
            WaitTimeout: ``timeout_s`` passed before all jobs ended.
        """
        job_wait = JobWait(job_ids, timeout_s=timeout_s, on_update=on_update)
        while pending := job_wait.pending():
            for job_id in pending:
                try:
                    job_wait.update(wire.parse_as(Job.from_json, self.get_job(job_id)))
                except ApiError as error:
                    time.sleep(job_wait.retry_delay_s(error))
            if job_wait.pending():
                job_wait.check_deadline()
                time.sleep(poll_s)
        return job_wait.jobs()

    def verify_answer(self, body: types.VerifyIn | Mapping[str, Any]) -> types.RewardOut:
        """Verify one answer and return its reward. Waits longer than the deadline of the request."""
        return self._json("POST", "/v1/verify", json=body, timeout=wire.verification_timeout_s(body))

    def verify_answers(self, body: types.VerifyIn | Mapping[str, Any]) -> types.RewardsOut:
        """Verify the ``items`` of a batch and return their rewards. Waits longer than the deadline of the request."""
        return self._json("POST", "/v1/verify", json=body, timeout=wire.verification_timeout_s(body))

    def healthy(self) -> bool:
        """Return whether the server responds and can accept work."""
        with wire.transport_errors(self.url):
            return self._http.get("/readyz").is_success
