"""The shapes of cited URLs, of what people do with them, and of browsers paired to hand pages in."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from app.api.paging import NAME
from app.api.request_fields import FETCHABLE_URL
from app.storage.cited_urls import CitedUrl, DependentResult, TaskPages
from app.storage.page_changes import PageChange
from app.storage.pairings import Pairing
from cache.urls import MAX_URL_CHARS

Action: TypeAlias = Literal["add", "edit", "delete", "flag", "unflag", "review", "unreview"]


class CitedUrlOut(BaseModel):
    """One URL on the list, and how it stands."""

    key: str = Field(description="Names the URL, however it is spelled; the list's cursor")
    url: str
    tasks: list[str]
    leaves: int = Field(description="Leaves of the newest results that cite it")
    open_leaves: int = Field(description="How many of them were not judged")
    answers: int
    added: bool = Field(description="Put on a task's list by hand")
    deleted: bool
    problem: bool = Field(description="It was captured, and nothing of that is evidence")
    flagged: bool
    flagged_by: str | None
    reviewed: bool = Field(description="Somebody looked at its newest capture")
    reviewed_by: str | None
    needs_work: bool = Field(description="Flagged, or a problem that nobody has looked at")
    to_url: str | None = Field(description="The address that it was meant to be, if somebody said so")
    page_id: str | None = Field(description="The page that answers for it")
    latest_id: str | None = Field(description="The newest attempt")
    outcome: str | None = Field(description="How the newest attempt ended")
    title: str
    detail: str
    http_status: int | None
    source: str | None
    captured_at: datetime | None

    @classmethod
    def of(cls, cited: CitedUrl) -> CitedUrlOut:
        shown = cited.latest or cited.page
        return cls(
            **{
                field.name: getattr(cited, field.name)
                for field in dataclasses.fields(cited)
                if field.name not in {"page", "latest", "tasks"}
            },
            tasks=list(cited.tasks),
            page_id=None if cited.page is None else cited.page.id,
            latest_id=None if cited.latest is None else cited.latest.id,
            outcome=None if shown is None else shown.outcome,
            title="" if shown is None else shown.title,
            detail="" if shown is None else shown.detail,
            http_status=None if shown is None else shown.http_status,
            source=None if shown is None else shown.source,
            captured_at=None if shown is None else shown.captured_at,
        )


class TaskPagesOut(BaseModel):
    """A task's list in figures."""

    task_id: str
    urls: int
    problems: int
    flagged: int
    reviewed: int
    needs_work: int
    leaves_waiting: int = Field(description="Leaves that cite a page which needs work")

    @classmethod
    def of(cls, task: TaskPages) -> TaskPagesOut:
        return cls(**dataclasses.asdict(task))


class TasksPagesOut(BaseModel):
    """Every task with a list, those with the most leaves waiting first."""

    items: list[TaskPagesOut]


class DependentOut(BaseModel):
    """A newest result with leaves that cite the page, and what these cost when they were judged."""

    result_id: str
    job_id: str
    agent: str
    task_id: str
    answer_name: str
    leaves: int
    open_leaves: int
    calls: int
    usd: float | None
    created_at: datetime


class DependentsOut(BaseModel):
    """What hangs on pages: in figures, and the first answers."""

    answers: int
    leaves: int
    open_leaves: int
    calls: int = Field(description="Of models, when these leaves were judged last")
    usd: float | None = Field(description="What those cost; null where a price is not known")
    items: list[DependentOut]

    @classmethod
    def of(cls, found: list[DependentResult], *, shown: int) -> DependentsOut:
        known = [one.usd for one in found if one.usd is not None]
        return cls(
            answers=len(found),
            leaves=sum(one.leaves for one in found),
            open_leaves=sum(one.open_leaves for one in found),
            calls=sum(one.calls for one in found),
            usd=sum(known) if len(known) == len(found) else None,
            items=[DependentOut(**dataclasses.asdict(one)) for one in found[:shown]],
        )


class PageChangeIn(BaseModel):
    """What somebody does with a URL."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "action": "edit",
                "url": "https://example.org/pge",
                "to": "https://example.org/page",
                "why": "a letter is missing",
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
    to: str | None = Field(
        None, min_length=1, max_length=MAX_URL_CHARS, description="With edit: the address it was meant to be"
    )
    task_id: str | None = Field(None, pattern=NAME, description="With add: on which task's list")
    why: str = Field("", max_length=1000)
    by: str = Field("", max_length=100, description="What you call yourself; the key's owner if left out")


class PageChangeOut(BaseModel):
    """One change, as it is kept for good."""

    id: str
    action: str
    url: str
    to_url: str | None
    task_id: str | None
    page_id: str | None = Field(
        description="The capture shown then; of an edit or add the one that answers from then on"
    )
    why: str
    by: str
    key_owner: str
    created_at: datetime
    undoes: str | None
    undone_by: str | None

    @classmethod
    def of(cls, change: PageChange) -> PageChangeOut:
        fields = dataclasses.asdict(change)
        del fields["key_sha256"]
        return cls(why=fields.pop("reason"), **fields)


class PairingOut(BaseModel):
    """A browser that may hand pages in, or a code that none has used yet."""

    id: str
    owner: str
    state: str = Field(description="waiting, paired, expired or revoked")
    name: str | None = Field(description="What the browser's person called it")
    created_at: datetime
    code_expires_at: datetime
    paired_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, pairing: Pairing, now: datetime) -> PairingOut:
        if pairing.revoked_at is not None:
            state = "revoked"
        elif pairing.paired_at is None:
            state = "waiting" if now < pairing.code_expires_at else "expired"
        else:
            state = "paired" if pairing.usable(now) else "expired"
        fields = dataclasses.asdict(pairing)
        del fields["code_sha256"], fields["token_sha256"], fields["sees_all_owners"]
        return cls(**fields, state=state)


class NewPairingOut(PairingOut):
    """The same with its code, which is shown this once."""

    code: str


class CodeIn(BaseModel):
    """A code, and what to call the browser that gives it."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"code": "K7QF-2M9X", "name": "Ada's Chromium"}}
    )

    code: str = Field(max_length=40)
    name: str = Field("a browser", min_length=1, max_length=100)


class TokenOut(BaseModel):
    """What a paired browser sends from then on, as ``Authorization: Bearer``."""

    token: str
    pairing_id: str
    expires_at: datetime
    by: str


class FlaggedOut(BaseModel):
    """One URL that a person's browser may help with."""

    url: str
    opens: str = Field(description="The address to open: the URL, or what it was corrected to")
    outcome: str | None
    leaves: int
    tasks: list[str]


class FlaggedListOut(BaseModel):
    """What needs work, what most leaves hang on first."""

    items: list[FlaggedOut]
