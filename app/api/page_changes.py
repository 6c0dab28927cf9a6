"""What people do with cited URLs: add, correct, take off the list, flag, look over; and take back.

Nothing that was captured changes, and nothing that a result was judged by: each change is a row of its own with who,
when and why, and so is an undo. Which capture answers for a URL follows from the rows that stand, for everybody's
answers; so only an operator may add to them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import structlog
from fastapi import APIRouter, Query

from app.access.keys import Caller
from app.api.access import AdminDep, ServiceDep
from app.api.models import ListOut
from app.api.page_models import PageChangeIn, PageChangeOut
from app.api.paging import IdPath, NameFilter, SliceDep
from app.api.problems import Problem, not_found
from app.api.strict_json import StrictJsonRoute
from app.service import Service
from app.storage.captures import key_digest
from app.storage.cited_urls import CitedUrl, list_urls
from app.storage.page_changes import (
    ChangeAction,
    PageChange,
    captures_answering,
    find_change,
    insert_change,
    insert_undo,
    list_changes,
)
from app.storage.storable import storable
from cache.capture import Capture
from cache.urls import MAX_URL_CHARS, canonical_key, why_unfetchable

router = APIRouter(prefix="/v1/pages/changes", tags=["pages"], route_class=StrictJsonRoute)

_log = structlog.get_logger(__name__)
_INVALID = "the request has invalid fields; see errors"


@router.get("")
async def changes(
    service: ServiceDep,
    caller: AdminDep,
    part: SliceDep,
    task_id: NameFilter = None,
    url: Annotated[str | None, Query(min_length=1, max_length=MAX_URL_CHARS)] = None,
) -> ListOut[PageChangeOut]:
    """What was done with cited URLs, newest first."""
    key = None if url is None else key_digest(canonical_key(url))
    async with service.database.begin() as connection:
        found = await list_changes(
            connection, limit=part.limit + 1, before=part.cursor, key_sha256=key, task_id=task_id, owner=caller.sees
        )
    page, following = part.cut(found, lambda change: change.id)
    return ListOut(items=[PageChangeOut.of(change) for change in page], next_cursor=following)


@router.post("", status_code=201)
async def change(body: PageChangeIn, service: ServiceDep, caller: AdminDep) -> PageChangeOut:
    """Add, edit, delete, flag, unflag, review or unreview a URL."""
    _check(body)
    made = _change(service, caller, body)
    cited = await _cited(service, caller, made)
    if body.action == "add":
        kept = await _add(service, made, cited)
    elif cited is None or cited.deleted:
        raise not_found("URL on any list")
    elif body.action == "edit":
        kept = await _edit(service, made)
    else:
        kept = await _mark_or_delete(service, made, cited)
    _log.info("page_change", action=kept.action.value, url=kept.url, by=kept.by, change_id=kept.id)
    return PageChangeOut.of(kept)


@router.post("/{change_id}/undo", status_code=201)
async def undo(
    change_id: IdPath,
    service: ServiceDep,
    caller: AdminDep,
    why: Annotated[str, Query(max_length=1000)] = "",
    by: Annotated[str, Query(max_length=100, description="What you call yourself")] = "",
) -> PageChangeOut:
    """Take one change back, once. What it did ends; the row stays."""
    async with service.database.begin() as connection:
        before = await find_change(connection, change_id)
        if before is None or caller.sees not in (None, before.key_owner):
            raise not_found("change")
        if before.action is ChangeAction.UNDO:
            raise Problem(409, "NOT_UNDOABLE", "an undo is not undone: make the change again")
        made = PageChange(
            id=service.runtime.ids.new("chg"),
            action=ChangeAction.UNDO,
            key_sha256=before.key_sha256,
            url=before.url,
            to_url=before.to_url,
            task_id=before.task_id,
            page_id=before.page_id,
            reason=storable(why.strip()),
            by=storable(by.strip()) or caller.owner,
            key_owner=caller.owner,
            created_at=service.runtime.clock.now(),
            undoes=before.id,
        )
        if not await insert_undo(connection, made):
            raise Problem(409, "UNDONE_ALREADY", "somebody has taken this change back already")
    _log.info("page_change", action="undo", url=made.url, by=made.by, change_id=made.id)
    return PageChangeOut.of(made)


def _check(body: PageChangeIn) -> None:
    """Raises Problem where fields do not fit the action, or an address is none that can be captured."""
    wrong: list[tuple[str, str]] = []
    if (body.to is not None) != (body.action == "edit"):
        wrong.append(("to", "says which address was meant: give it with edit, and with nothing else"))
    if (body.task_id is not None) != (body.action == "add"):
        wrong.append(("task_id", "says on which task's list: give it with add, and with nothing else"))
    for name, url in (("url", body.url if body.action == "add" else None), ("to", body.to)):
        refusal = None if url is None else why_unfetchable(url.strip())
        if refusal is not None:
            wrong.append((name, refusal))
    if body.to is not None and canonical_key(body.to) == canonical_key(body.url):
        wrong.append(("to", "is the same page as url, only spelled in another way"))
    if wrong:
        raise Problem(422, "INVALID", _INVALID, errors=wrong)


def _change(service: Service, caller: Caller, body: PageChangeIn) -> PageChange:
    return PageChange(
        id=service.runtime.ids.new("chg"),
        action=ChangeAction(body.action),
        key_sha256=key_digest(canonical_key(body.url)),
        url=storable(body.url.strip()),
        to_url=None if body.to is None else storable(body.to.strip()),
        task_id=body.task_id,
        reason=storable(body.why.strip()),
        by=storable(body.by.strip()) or caller.owner,
        key_owner=caller.owner,
        created_at=service.runtime.clock.now(),
    )


async def _add(service: Service, made: PageChange, there: CitedUrl | None) -> PageChange:
    """On a task's list, and captured now unless it is already."""
    if there is not None and made.task_id in there.tasks and not there.deleted:
        raise Problem(409, "LISTED_ALREADY", "this URL is on the task's list already")
    seen = await service.runtime.pages.get(made.url)
    made = _with(made, seen)
    async with service.database.begin() as connection:
        await insert_change(connection, made)
    return made


async def _edit(service: Service, made: PageChange) -> PageChange:
    """The page at the address that was meant stands for the URL from now on, for everybody who cites it."""
    meant = await service.runtime.pages.get(str(made.to_url))
    if not meant.is_evidence:
        detail = f"looking at it ended in {meant.outcome.value}: {meant.detail}".rstrip(": ")
        raise Problem(409, "NO_EVIDENCE", "the address given cannot stand for this one", errors=[("to", detail)])
    async with service.database.begin() as connection:
        before = await captures_answering(connection, made.key_sha256)
    standing = await service.runtime.pages.stand_in(made.url, meant, provenance_of(made))
    made = _with(made, standing)
    async with service.database.begin() as connection:
        await insert_change(connection, made, hides=before, shows=[standing.id])
    return made


async def _mark_or_delete(service: Service, made: PageChange, cited: CitedUrl) -> PageChange:
    shown = cited.latest or cited.page
    if made.action is ChangeAction.REVIEW and shown is None:
        raise Problem(409, "NOT_CAPTURED", "there is nothing to review: this URL was never captured")
    made = made if shown is None else _with(made, shown)
    async with service.database.begin() as connection:
        deleting = made.action is ChangeAction.DELETE
        hides = await captures_answering(connection, made.key_sha256) if deleting else ()
        await insert_change(connection, made, hides=hides)
    return made


async def _cited(service: Service, caller: Caller, made: PageChange) -> CitedUrl | None:
    """How the URL stands; None where the caller sees it on no list."""
    async with service.database.begin() as connection:
        found = await list_urls(connection, limit=1, key=made.key_sha256, owner=caller.sees)
    return found[0] if found else None


def provenance_of(edit: PageChange) -> dict[str, str]:
    """What a reader of the stored page must know of a correction."""
    told = {"corrected_by": edit.by, "corrected_to": str(edit.to_url), "corrected_at": edit.created_at.isoformat()}
    return told | ({"corrected_why": edit.reason} if edit.reason else {})


def _with(made: PageChange, capture: Capture) -> PageChange:
    return replace(made, page_id=capture.id)
