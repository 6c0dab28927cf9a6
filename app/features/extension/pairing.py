"""Pairing people's browsers: an operator gets a code to type into the extension, which exchanges it for a token.

A code has 40 random bits, is good once and for five minutes, and may be tried only so often. The token has 256, opens
the extension's calls and nothing else, and ends after 30 days or when it is revoked. Of both only SHA-256 is stored.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Request

from app.api.access import AdminDep, ServiceDep, service_of
from app.api.models import ListOut
from app.api.page_models import NewPairingOut, PairingOut
from app.api.paging import IdPath, SliceDep
from app.api.problems import Problem, not_found
from app.service import Service
from app.storage.pairings import Pairing, find_pairing, insert_pairing, list_pairings, revoke_pairing

router = APIRouter(prefix="/v1/pairings", tags=["pairings"])

CODE_LASTS = timedelta(minutes=5)
TOKEN_LASTS = timedelta(days=30)
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_CHARS = 8
_TYPED = str.maketrans("OIL", "011", " -")
"""Look-alikes of digits, which no code has, and what may stand between its letters."""
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_log = structlog.get_logger(__name__)


@router.post("", status_code=201)
async def make(service: ServiceDep, caller: AdminDep) -> NewPairingOut:
    """A fresh code for one browser, shown this once."""
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS))
    now = service.runtime.clock.now()
    made = Pairing(
        id=service.runtime.ids.new("pair"),
        code_sha256=code_digest(code),
        owner=caller.owner,
        everybody=caller.everybody,
        made_at=now,
        code_expires_at=now + CODE_LASTS,
    )
    async with service.database.begin() as connection:
        await insert_pairing(connection, made)
    _log.info("pairing_code_made", pairing_id=made.id, by=caller.owner)
    return NewPairingOut(**PairingOut.of(made, now).model_dump(), code=f"{code[:4]}-{code[4:]}")


@router.get("")
async def pairings(service: ServiceDep, caller: AdminDep, part: SliceDep) -> ListOut[PairingOut]:
    """Browsers that were paired, and codes that wait for one, newest first."""
    async with service.database.begin() as connection:
        found = await list_pairings(connection, limit=part.limit + 1, before=part.cursor, owner=caller.sees)
    page, following = part.cut(found, lambda pairing: pairing.id)
    now = service.runtime.clock.now()
    return ListOut(items=[PairingOut.of(pairing, now) for pairing in page], next_cursor=following)


@router.delete("/{pairing_id}")
async def revoke(pairing_id: IdPath, service: ServiceDep, caller: AdminDep) -> PairingOut:
    """End a pairing for good: its code or token opens nothing from now on."""
    now = service.runtime.clock.now()
    async with service.database.begin() as connection:
        ended = await revoke_pairing(connection, pairing_id, now=now, owner=caller.sees)
    if ended is None:
        raise not_found("pairing")
    _log.info("pairing_revoked", pairing_id=ended.id, by=caller.owner)
    return PairingOut.of(ended, now)


def new_token() -> str:
    """A token in the shape of a key, so that every log masks it."""
    name = "".join(secrets.choice(_ALPHABET.lower()) for _ in range(10))
    return f"assay_{name}_{secrets.token_urlsafe(32)}"


def code_digest(typed: str) -> str:
    """The hash of a code, however it was typed."""
    return token_digest(typed.upper().translate(_TYPED))


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def pairing_of(service: Service, authorization: str) -> Pairing:
    """The paired browser whose token came in the header; asked each time, so a revocation holds at once.

    Raises:
        Problem: nobody's, or not any more.
        DatabaseUnavailable: that cannot be told now.
    """
    scheme, _, token = authorization.partition(" ")
    found = None
    if scheme.lower() == "bearer" and token.strip():
        async with service.database.begin() as connection:
            found = await find_pairing(connection, token_digest(token.strip()))
    if found is None or not found.usable(service.runtime.clock.now()):
        detail = "this browser is not paired, or not any more: get a code from the dashboard, under Pages"
        raise Problem(401, "NOT_PAIRED", detail, headers=_CHALLENGE)
    return found


async def _browser(request: Request) -> Pairing:
    """The paired browser that asks, within the rate that one caller may ask at."""
    service = await service_of(request)
    found = await pairing_of(service, request.headers.get("authorization", ""))
    wait_s = service.rates.wait_s(f"pairing {found.id}")
    if wait_s > 0:
        raise too_often(wait_s)
    return found


BrowserDep = Annotated[Pairing, Depends(_browser)]


def too_often(wait_s: float) -> Problem:
    return Problem(429, "TOO_MANY_REQUESTS", "wait a moment", headers={"Retry-After": str(int(wait_s) + 1)})
