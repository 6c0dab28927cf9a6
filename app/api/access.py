"""Who is asking and what that opens: everybody on a service of this machine alone, the holder of a key elsewhere."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from app.access.keys import Caller
from app.api.problems import Problem, unavailable
from app.service import Service
from app.storage.records import Scope

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


# Dependencies are coroutines, and few: a plain function would cost a trip to a thread and back, and each one counts.
async def service_of(request: Request) -> Service:
    """The running service behind the application."""
    service = getattr(request.app.state, "service", None)
    if not isinstance(service, Service):
        raise unavailable("the service is starting or stopping")
    return service


ServiceDep = Annotated[Service, Depends(service_of)]


async def holder_of(service: Service, authorization: str) -> Caller:
    """Whose key came in the header.

    Raises:
        Problem: nobody's.
        DatabaseUnavailable: that cannot be told now.
    """
    scheme, _, key = authorization.partition(" ")
    caller = await service.keys.caller(key.strip() if scheme.lower() == "bearer" else None)
    if caller is None:
        raise Problem(401, "UNAUTHORIZED", "send a valid key as Authorization: Bearer", headers=_CHALLENGE)
    return caller


async def caller_of(request: Request, needed: Scope) -> Caller:
    """Who is asking, if their key opens this, and within the rate that one caller may ask at."""
    service = await service_of(request)
    caller = await holder_of(service, request.headers.get("authorization", ""))
    wait_s = service.rates.wait_s(caller.owner)
    if wait_s > 0:
        detail = f"more than {service.settings.rate_per_s:g} requests a second with the keys of one owner"
        raise Problem(429, "TOO_MANY_REQUESTS", detail, headers={"Retry-After": str(int(wait_s) + 1)})
    if not caller.scope.opens(needed):
        detail = f"this key has the scope {caller.scope.value!r}; this call needs {needed.value!r}"
        raise Problem(403, "SCOPE", detail)
    return caller


async def _reader(request: Request) -> Caller:
    return await caller_of(request, Scope.READ)


async def _submitter(request: Request) -> Caller:
    return await caller_of(request, Scope.SUBMIT)


async def _admin(request: Request) -> Caller:
    return await caller_of(request, Scope.ADMIN)


ReaderDep = Annotated[Caller, Depends(_reader)]
SubmitterDep = Annotated[Caller, Depends(_submitter)]
AdminDep = Annotated[Caller, Depends(_admin)]
