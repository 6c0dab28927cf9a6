"""Request and response models of cited URLs and page changes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from app.api.models import RecordModel
from app.api.paging import NAME_PATTERN
from app.api.request_fields import FETCHABLE_URL
from app.storage.cited_urls import CitedUrl, DependentResult
from cache.urls import MAX_URL_CHARS

Action: TypeAlias = Literal["add", "edit", "delete", "flag", "unflag", "review", "unreview"]


class CitedUrlOut(RecordModel):
    """A cited URL and its state."""

    key: str = Field(description="Identifies all spellings of the URL; cursor of the list")
    url: str
    tasks: list[str]
    leaves: int = Field(description="Leaves of the newest results that cite it")
    open_leaves: int = Field(description="Number of these leaves that were not judged")
    answers: int
    added: bool = Field(description="A person added it to a task")
    deleted: bool
    problem: bool = Field(description="It was captured, but no capture is evidence")
    flagged: bool
    flagged_by: str | None
    reviewed: bool = Field(description="A person reviewed its newest capture")
    reviewed_by: str | None
    needs_work: bool = Field(description="Flagged, or not captured as evidence and not reviewed yet")
    to_url: str | None = Field(description="The corrected URL, if a person corrected it")
    page_id: str | None = Field(description="The capture that judges see for this URL")
    latest_id: str | None = Field(description="The newest capture")
    outcome: str | None = Field(description="Outcome of the newest capture")
    title: str
    detail: str
    http_status: int | None
    source: str | None
    captured_at: datetime | None

    @classmethod
    def of(cls, cited: CitedUrl) -> CitedUrlOut:
        latest = cited.latest or cited.page
        return cls.of_record(
            cited,
            page_id=None if cited.page is None else cited.page.id,
            latest_id=None if cited.latest is None else cited.latest.id,
            outcome=None if latest is None else latest.outcome,
            title="" if latest is None else latest.title,
            detail="" if latest is None else latest.detail,
            http_status=None if latest is None else latest.http_status,
            source=None if latest is None else latest.source,
            captured_at=None if latest is None else latest.captured_at,
        )


class PassageOut(BaseModel):
    """Part of a page's text: ``text`` from offset ``start`` to ``end``."""

    start: int
    end: int
    text: str
    score: float = Field(description="orders passages of different pages for one claim, highest first")


class ClosestPassageOut(BaseModel):
    """The passage of a page that is closest to a claim; null if the page shares no significant word with it."""

    passage: PassageOut | None


class DependentsOut(BaseModel):
    """Results that depend on pages: totals, and the first answers."""

    answers: int
    leaves: int
    open_leaves: int
    calls: int = Field(description="Model calls of the last judging of these leaves")
    usd: float | None = Field(description="Cost of these calls; null if a price is unknown")
    items: list[DependentResult]

    @classmethod
    def of(cls, dependents: list[DependentResult], *, shown: int) -> DependentsOut:
        known = [one.usd for one in dependents if one.usd is not None]
        return cls(
            answers=len(dependents),
            leaves=sum(one.leaves for one in dependents),
            open_leaves=sum(one.open_leaves for one in dependents),
            calls=sum(one.calls for one in dependents),
            usd=sum(known) if len(known) == len(dependents) else None,
            items=dependents[:shown],
        )


class PageChangeIn(BaseModel):
    """A change to a cited URL."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "action": "edit",
                "url": "https://example.org/pge",
                "to": "https://example.org/page",
                "reason": "a letter is missing",
            },
            "oneOf": [
                {
                    "required": ["task_id"],
                    "properties": {
                        "action": {"const": "add"},
                        "url": {"pattern": FETCHABLE_URL},
                        "to": {"type": "null"},
                        "task_id": {"type": "string"},
                    },
                },
                {
                    "required": ["to"],
                    "properties": {
                        "action": {"const": "edit"},
                        "to": {"type": "string", "pattern": FETCHABLE_URL},
                        "task_id": {"type": "null"},
                    },
                },
                {
                    "properties": {
                        "action": {"enum": [one for one in get_args(Action) if one not in ("add", "edit")]},
                        "to": {"type": "null"},
                        "task_id": {"type": "null"},
                    },
                },
            ],
        },
    )

    action: Action
    url: str = Field(min_length=1, max_length=MAX_URL_CHARS)
    to: str | None = Field(None, min_length=1, max_length=MAX_URL_CHARS, description="For edit: the correct URL")
    task_id: str | None = Field(None, pattern=NAME_PATTERN, description="For add: the task to add the URL to")
    reason: str = Field("", max_length=1000)
    by: str = Field("", max_length=100, description="Your name (default: the owner of the API key)")


class PageChangeOut(RecordModel):
    """A stored page change."""

    id: str
    action: str
    url: str
    to_url: str | None
    task_id: str | None
    page_id: str | None = Field(
        description="The capture at that time; for edit and add, the capture that is used from then on"
    )
    reason: str
    by: str
    key_owner: str
    created_at: datetime
    undoes: str | None
    undone_by: str | None
