"""Values in responses of the server. Unknown fields are ignored; ``Job.raw`` contains all fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a job. A total of 0 means unknown or nothing to do."""

    pages_done: int = 0
    pages_total: int = 0
    leaves_done: int = 0
    leaves_total: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Progress:
        return cls(
            pages_done=int(data.get("pages_done") or 0),
            pages_total=int(data.get("pages_total") or 0),
            leaves_done=int(data.get("leaves_done") or 0),
            leaves_total=int(data.get("leaves_total") or 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Error of a job without a result: ``code`` for programs, ``detail`` and an optional ``traceback`` for people."""

    code: str
    detail: str
    traceback: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> JobError:
        return cls(code=str(data["code"]), detail=str(data.get("detail") or ""), traceback=data.get("traceback"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRef:
    """Job in a receipt. ``answer`` is the name of the answer, ``url`` the path to poll."""

    id: str
    answer: str
    status: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Accepted submission with its jobs, one per answer."""

    id: str
    agent: str
    task_id: str
    jobs: tuple[JobRef, ...]

    @property
    def job_ids(self) -> tuple[str, ...]:
        return tuple(job.id for job in self.jobs)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Receipt:
        jobs = tuple(
            JobRef(id=str(job["id"]), answer=str(job["answer"]), status=str(job["status"]), url=str(job["url"]))
            for job in data["jobs"]
        )
        return cls(id=str(data["id"]), agent=str(data["agent"]), task_id=str(data["task_id"]), jobs=jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """State of a job. ``status``: queued, running, succeeded, failed or cancelled."""

    id: str
    status: str
    stage: str | None
    progress: Progress
    attempts: int
    error: JobError | None
    result_id: str | None
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_paused(self) -> bool:
        """Whether it waits for somebody to fix what ``error`` says: a key, a model, a budget."""
        return self.stage == "paused"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        error = data.get("error")
        result_id = data.get("result_id")
        return cls(
            id=str(data["id"]),
            status=str(data["status"]),
            stage=data.get("stage"),
            progress=Progress.from_json(data.get("progress") or {}),
            attempts=int(data.get("attempts") or 0),
            error=None if error is None else JobError.from_json(error),
            result_id=None if result_id is None else str(result_id),
            created_at=_parse_time(data.get("created_at")),
            started_at=_parse_time(data.get("started_at")),
            finished_at=_parse_time(data.get("finished_at")),
            raw=dict(data),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Server-sent event with parsed JSON ``data``. Pass ``id`` as ``after`` to resume behind it."""

    id: str | None
    name: str
    data: Any


def _parse_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
