"""Request and response models of submissions, jobs, pages and tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from answers.submission import AnswerContent
from app.api.documents import DocumentIn
from app.api.evidence import Evidence
from app.api.examples import EXAMPLE_ANSWER
from app.api.paging import PageRequest
from app.api.request_fields import WHOLE_NUMBER, AnswerName, AnswerReply, AnswerText, Metadata, Model, Name, WebhookUrl
from app.storage.records import Job, JobError, JobKind, JobStatus, SubmissionRecord
from cache.capture import Blob, Capture

Item = TypeVar("Item")
Row = TypeVar("Row")
MAX_ANSWERS = 100
Priority: TypeAlias = Annotated[
    int, Field(ge=-100, le=100, description="Jobs with a higher priority start first"), WHOLE_NUMBER
]
BudgetUsd: TypeAlias = Annotated[
    float,
    Field(gt=0, le=1_000_000, allow_inf_nan=False, description="Maximum cost of model calls in US dollars"),
]


EvidencePolicyText: TypeAlias = Annotated[
    Literal["captured", "fallback", "supplied"],
    Field(
        description="How pages that agents supply are used: not at all (captured), where a capture is not evidence "
        "(fallback), or instead of captures (supplied: nothing is opened). Default: as the task says, else captured. A "
        "task can limit it"
    ),
]


_EXAMPLE_REPLY: dict[str, Any] = {
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "The ferry leaves at 8:40",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "start_index": 0,
                            "end_index": 24,
                            "url": "https://example.org/page",
                            "title": "A page",
                        }
                    ],
                }
            ],
        }
    ]
}


class RecordModel(BaseModel):
    """Response model that takes its fields from a record, by name, and those of nested models from nested records."""

    @classmethod
    def of_record(cls, record: object, **others: object) -> Self:
        """Return the model with the fields of ``record``, except ``others``, which the record lacks or replaces."""
        names = cls.model_fields.keys() - others.keys()
        return cls.model_validate({name: getattr(record, name) for name in names} | others, from_attributes=True)


class OpenModel(BaseModel):
    """Response model that passes fields on that it does not name."""

    model_config = ConfigDict(extra="allow")


class ScoreOut(BaseModel):
    """A score. ``value`` is null while leaves that were not judged could change it; then the bounds differ."""

    value: float | None = None
    low: float
    high: float


_CONTENTS: Final = {"text": "string", "reply": "object", "document": "object"}
"""Fields of which an answer has one, with their types in JSON."""


class AnswerIn(BaseModel):
    """One answer in a request: its ``text``, the JSON ``reply`` of a model provider, or a ``document``."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "oneOf": [
                {
                    "required": [given],
                    "properties": {
                        name: {"type": kind if name == given else "null"} for name, kind in _CONTENTS.items()
                    },
                }
                for given in _CONTENTS
            ]
        },
    )

    name: AnswerName
    text: AnswerText | None = None
    reply: AnswerReply | None = None
    document: DocumentIn | None = None
    evidence: Evidence = []

    @property
    def content(self) -> AnswerContent:
        return (self.text or "") if self.reply is None else self.reply

    @model_validator(mode="after")
    def _either(self) -> AnswerIn:
        if sum(each is not None for each in (self.text, self.reply, self.document)) != 1:
            raise ValueError("send exactly one of text, reply and document")
        return self


class SubmissionIn(BaseModel):
    """Answers of one agent to one task."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "agent": "my-agent",
                "task_id": "karrow_visit",
                "answers": [
                    {"name": "answer_1", "text": EXAMPLE_ANSWER},
                    {"name": "answer_2", "reply": _EXAMPLE_REPLY},
                ],
            }
        },
    )

    agent: Name
    task_id: Name
    answers: list[AnswerIn] = Field(min_length=1, max_length=MAX_ANSWERS)
    model: Model | None = None
    run: Name | None = Field(None, description="Label that groups submissions")
    metadata: Metadata | None = None
    priority: Priority = 0
    budget_usd: BudgetUsd | None = None
    webhook_url: WebhookUrl | None = None
    evidence_policy: EvidencePolicyText | None = None


class SubmissionChangeIn(BaseModel):
    """Change of a submission."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": {"budget_usd": 2.5}})

    budget_usd: BudgetUsd | None = Field(
        description="New budget; null: no limit. Jobs that are paused for this budget continue"
    )


class JobRefOut(BaseModel):
    """Reference to a job of a submission."""

    id: str
    answer: str
    status: JobStatus
    url: str

    @classmethod
    def of(cls, job: Job) -> JobRefOut:
        return cls(id=job.id, answer=job.answer_name, status=job.status, url=f"/v1/jobs/{job.id}")


class AcceptedOut(RecordModel):
    """An accepted submission."""

    id: str
    agent: str
    task_id: str
    jobs: list[JobRefOut]


class WebhookRefOut(BaseModel):
    """The webhook of a submission."""

    id: str
    url: str
    secret: str | None = Field(None, description="Key of the signatures; only in the first response")


class AcceptedSubmissionOut(AcceptedOut):
    """An accepted submission, with its webhook if the request had a ``webhook_url``."""

    webhook: WebhookRefOut | None = None


class AcceptedArchiveOut(BaseModel):
    """The accepted submissions of an archive, one per agent and task."""

    submissions: list[AcceptedOut]


class SubmissionOut(AcceptedOut):
    """A submission with the current status of its jobs."""

    model: str | None
    run: str | None
    metadata: dict[str, Any]
    created_at: datetime
    priority: int
    budget_usd: float | None
    spent_usd: float

    @classmethod
    def of(cls, record: SubmissionRecord, jobs: list[Job], *, spent_usd: float) -> SubmissionOut:
        return cls.of_record(record, spent_usd=round(spent_usd, 6), jobs=[JobRefOut.of(job) for job in jobs])


class ProgressOut(BaseModel):
    """Progress of a job."""

    pages_done: int
    pages_total: int
    leaves_done: int
    leaves_total: int


class JobStateOut(RecordModel):
    """Current state of a job of any kind."""

    id: str
    model: str | None
    status: JobStatus
    stage: str | None
    attempts: int
    error: JobError | None
    result_id: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobOut(JobStateOut):
    """Current state of a job."""

    kind: JobKind
    submission_id: str
    agent: str
    task_id: str
    answer: str
    run: str | None
    progress: ProgressOut

    @classmethod
    def of(cls, job: Job, **more: object) -> Self:
        return cls.of_record(job, answer=job.answer_name, progress=job, **more)


class ListedJobOut(JobOut):
    """A job in a list, with its score."""

    score: ScoreOut | None = Field(description="null: no result yet, or a result without a score")


class PageOut(RecordModel):
    """A capture: one attempt to load a URL."""

    id: str
    url: str
    final_url: str | None
    outcome: str = Field(description="Outcome of the capture, such as ok, blocked or timeout")
    problem: bool = Field(description="The capture is not evidence: claims that cite it are not judged")
    detail: str = Field(description="Explanation of the outcome")
    http_status: int | None
    kind: str
    title: str
    captured_at: datetime
    duration_s: float
    backend: str = Field(description="Capture backend, such as browser:chromium or http")
    chain: list[str] = Field(description="URLs of the redirects that were followed")
    headers: dict[str, str]
    versions: dict[str, str] = Field(description="Versions of the browser and its driver")
    hidden_words: int = Field(description="Words in the document that are not visible; they are no evidence")
    gone: bool = Field(description="The source is known not to exist: 404, 410 or no such host")
    source: str = Field(description="web, wayback, upload, import or supplied (by the agent, with its answer)")
    provenance: dict[str, str] = Field(
        description="Details for every source but web: the uploader, or the date of the archived copy"
    )
    alias_of: str | None = Field(
        description="The capture that this one refers to: another URL led "
        "to the same page, or a person corrected the URL"
    )
    owner: str | None = Field(description="The capture is used for the answers of this owner only; null: for all")
    blobs: dict[str, Blob] = Field(description="Stored bodies by name, such as text, screenshot-0 or pdf")

    @classmethod
    def of(cls, capture: Capture) -> PageOut:
        return cls.of_record(capture, problem=not capture.is_evidence)


class TaskOut(BaseModel):
    """A task. ``error``: why its file cannot be loaded."""

    task_id: str
    status: str = Field(description="ready or broken")
    kind: str | None
    name: str | None
    version: str | None
    sha256: str | None
    description: str
    file: str | None = Field(description="Name of the task file; null if the task was not loaded from a file")
    error: str | None = None


class ListOut(BaseModel, Generic[Item]):
    """One page of a list, newest first. Pass ``next_cursor`` as ``cursor`` to get the next page."""

    items: list[Item]
    next_cursor: str | None = None

    @classmethod
    def page(
        cls, rows: Sequence[Row], paging: PageRequest, key: Callable[[Row], str], out: Callable[[Row], Item]
    ) -> ListOut[Item]:
        """Return the page of a list from up to ``paging.limit + 1`` rows. ``key`` is the cursor of a row."""
        shown, next_cursor = paging.split(rows, key)
        return cls(items=[out(row) for row in shown], next_cursor=next_cursor)


class LintFindingOut(RecordModel):
    """One finding of the rubric linter: the rule, the id of the node, and a message that states the
    problem and how to fix it.
    """

    code: str
    node_id: str
    message: str


class ProblemErrorOut(BaseModel):
    """Error of one input field."""

    path: str
    message: str


class ProblemOut(BaseModel):
    """Error response (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str | None = Field(None, description="X-Request-ID of the response")
    errors: list[ProblemErrorOut] | None = None
