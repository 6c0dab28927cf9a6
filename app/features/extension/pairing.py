"""Pairing of browsers: an operator gets a code to type into the extension, which exchanges it for a token.

A code has 40 random bits, works once within five minutes, and attempts are rate-limited. A token has 256 random bits,
gives access to the extension API only, and expires after 30 days unless it is revoked earlier. Only the SHA-256 of
either is stored.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Request
from pydantic import Field

from app.api.access import ServiceDep, SubmitterDep, service_of
from app.api.middleware import EXTENSION_PATHS
from app.api.models import ListOut, RecordModel
from app.api.paging import IdPath, PageRequest, pages_by_id
from app.api.problems import Problem, not_found
from app.feature import TokenCheck
from app.features.extension import storage
from app.features.extension.storage import Pairing, find_pairing, insert_pairing
from app.service import Service

router = APIRouter(prefix="/v1/pairings", tags=["pairings"])

CODE_LIFETIME = timedelta(minutes=5)
TOKEN_LIFETIME = timedelta(days=30)
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_CHARS = 8
_CODE_TRANSLATION = str.maketrans("OIL", "011", " -")
"""Maps letters that look like digits to the digits and removes separators. Codes do not contain these letters."""
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_log = structlog.get_logger(__name__)


class PairingOut(RecordModel):
    """A paired browser that can upload pages, or an unused pairing code."""

    id: str
    owner: str
    state: str = Field(description="waiting, paired, expired or revoked")
    name: str | None = Field(description="Name of the browser, chosen by its user")
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
        return cls.of_record(pairing, state=state)


class NewPairingOut(PairingOut):
    """A new pairing with its code. The code is returned only once."""

    code: str


@router.post("", status_code=201)
async def create_pairing(service: ServiceDep, caller: SubmitterDep) -> NewPairingOut:
    """Create a pairing code for one browser. It is returned only once."""
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS))
    now = service.runtime.clock.now()
    pairing = Pairing(
        id=service.runtime.ids.new("pair"),
        code_sha256=code_digest(code),
        owner=caller.owner,
        sees_all_owners=caller.sees_all_owners,
        created_at=now,
        code_expires_at=now + CODE_LIFETIME,
    )
    async with service.database.begin() as connection:
        await insert_pairing(connection, pairing)
    _log.info("pairing code created", pairing_id=pairing.id, by=caller.owner)
    return NewPairingOut(**PairingOut.of(pairing, now).model_dump(), code=f"{code[:4]}-{code[4:]}")


@router.get("")
async def list_pairings(
    service: ServiceDep, caller: SubmitterDep, paging: Annotated[PageRequest, pages_by_id("pair")]
) -> ListOut[PairingOut]:
    """List paired browsers and unused codes, newest first."""
    async with service.database.begin() as connection:
        newest = await storage.list_pairings(
            connection, limit=paging.limit + 1, before=paging.cursor, owner=caller.visible_owner
        )
    page, next_cursor = paging.split(newest, lambda pairing: pairing.id)
    now = service.runtime.clock.now()
    return ListOut(items=[PairingOut.of(pairing, now) for pairing in page], next_cursor=next_cursor)


@router.delete("/{pairing_id}")
async def revoke_pairing(pairing_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> PairingOut:
    """Revoke a pairing permanently. Its code or token stops working immediately."""
    now = service.runtime.clock.now()
    async with service.database.begin() as connection:
        revoked = await storage.revoke_pairing(connection, pairing_id, now=now, owner=caller.visible_owner)
    if revoked is None:
        raise not_found("pairing")
    _log.info("pairing revoked", pairing_id=revoked.id, by=caller.owner)
    return PairingOut.of(revoked, now)


def new_token() -> str:
    """Return a token in the format of an API key, so that logs mask it."""
    name = "".join(secrets.choice(_ALPHABET.lower()) for _ in range(10))
    return f"assay_{name}_{secrets.token_urlsafe(32)}"


def code_digest(typed: str) -> str:
    """Return the hash of a code. Case and separators are ignored."""
    return token_digest(typed.upper().translate(_CODE_TRANSLATION))


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def authenticate_browser(service: Service, authorization: str) -> Pairing:
    """Return the paired browser for an Authorization header.

    Reads the database each time, so that a revocation applies immediately.

    Raises:
        Problem: the token is unknown, expired or revoked.
        DatabaseUnavailable: the database cannot be read.
    """
    scheme, _, token = authorization.partition(" ")
    pairing = None
    if scheme.lower() == "bearer" and token.strip():
        async with service.database.begin() as connection:
            pairing = await find_pairing(connection, token_digest(token.strip()))
    if pairing is None or not pairing.usable(service.runtime.clock.now()):
        detail = "This browser is not paired, or its pairing has ended: get a code in the dashboard under Pages"
        raise Problem(401, "NOT_PAIRED", detail, headers=_CHALLENGE)
    return pairing


async def _admitted_browser(request: Request) -> Pairing:
    """Return the calling browser if it is within its rate limit."""
    service = await service_of(request)
    pairing = await authenticate_browser(service, request.headers.get("authorization", ""))
    wait_s = service.rate_limiter.wait_s(f"pairing {pairing.id}")
    if wait_s > 0:
        raise too_many_requests(wait_s)
    return pairing


BrowserDep = Annotated[Pairing, Depends(_admitted_browser)]


def too_many_requests(wait_s: float) -> Problem:
    return Problem(
        429,
        "TOO_MANY_REQUESTS",
        "Too many requests: retry after the time in Retry-After",
        headers={"Retry-After": str(int(wait_s) + 1)},
    )


PATH_CHECKS: Mapping[str, TokenCheck] = {EXTENSION_PATHS: authenticate_browser}
