"""Pages that an agent supplies with its answers: their form in a request, and their storage before jobs are queued."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from answers.submission import MAX_UNIQUE_URLS, Submission
from app.api.problems import Problem
from app.api.request_fields import FETCHABLE_URL
from app.service import Service
from app.storage.idempotency import IdempotencyKey
from cache.sources.supplied import SUPPLIED_BY_AGENT, SuppliedRejected, observe_supplied, store_observed, supplied_pages
from cache.sources.uploads import UploadedPage
from cache.urls import MAX_URL_CHARS


class SuppliedPageIn(BaseModel):
    """A page that the agent has read, with one content. PDFs and images are Base64."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "oneOf": [
                {"required": [name], "properties": {name: {"type": "string", "minLength": 1}}}
                for name in ("text", "html", "mhtml", "pdf", "image")
            ],
        },
    )

    url: str = Field(
        min_length=1,
        max_length=MAX_URL_CHARS,
        description="Address that the answer cites",
        json_schema_extra={"pattern": FETCHABLE_URL},
    )
    title: str | None = None
    text: str | None = Field(None, description="Text of the page")
    html: str | None = None
    mhtml: str | None = Field(None, description="Page saved as one file")
    pdf: str | None = None
    image: str | None = Field(None, description="Screenshot of the page: PNG, JPEG, GIF, WebP, BMP or TIFF")
    retrieved_at: str | None = Field(None, description="Time at which the agent read the page, in ISO 8601")


Evidence: TypeAlias = Annotated[
    list[SuppliedPageIn],
    Field(max_length=MAX_UNIQUE_URLS, description="Pages that the agent has read, at most one for each URL"),
]


async def with_stored_evidence(
    service: Service, owner: str, submissions: Sequence[Submission], key: IdempotencyKey | None
) -> list[Submission]:
    """Store the supplied pages of all answers, and return the submissions with the captures.

    Nothing is stored for a repeated ``key``.

    Raises:
        Problem: A page cannot be used. Nothing was stored.
        KeyInProgress, KeyReused: The idempotency key cannot be used. Nothing was stored.
    """
    if not any(answer.evidence for submission in submissions for answer in submission.answers):
        return list(submissions)
    if key is not None and await service.intake.is_repeated(key):
        return list(submissions)
    try:
        pages = await asyncio.to_thread(lambda: dict(_pages(service, submissions)))
        observed = {key: await observe_supplied(each) for key, each in pages.items()}
    except SuppliedRejected as error:
        raise Problem(
            422, "INVALID", "A supplied page cannot be used; see errors", errors=[(error.path, error.message)]
        ) from error
    stored = {
        key: tuple([one.id for one in await store_observed(each, service.runtime.pages, owner=owner)])
        for key, each in observed.items()
    }
    return [
        replace(
            submission,
            answers=tuple(
                replace(answer, evidence=(), supplied=stored.get((number, answer.name), ()))
                for answer in submission.answers
            ),
        )
        for number, submission in enumerate(submissions)
    ]


def _pages(
    service: Service, submissions: Sequence[Submission]
) -> Iterator[tuple[tuple[int, str], dict[str, UploadedPage]]]:
    """Yield the pages of each answer by their place in the request. An answer is named by submission and name."""
    now = service.runtime.clock.now()
    for number, submission in enumerate(submissions):
        for position, answer in enumerate(submission.answers):
            prefix = f"answers.{position}"
            if len(submissions) > 1:
                prefix = f"{submission.agent}/{submission.task_id}/{answer.name}"
            records = ((f"{prefix}.evidence.{place}", record) for place, record in enumerate(answer.evidence))
            yield (number, answer.name), supplied_pages(records, supplier=SUPPLIED_BY_AGENT, now=now)
