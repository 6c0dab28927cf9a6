"""Authentication, rate limit and scope check of API requests.

A service without API keys accepts every request from its own machine.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from app.access.keys import Caller
from app.api.middleware import RATE_LIMIT_STATE
from app.api.problems import Problem, unavailable
from app.service import Service
from app.storage.records import Scope

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


# Dependencies are coroutines because FastAPI runs plain functions in a thread, which is slower.
async def service_of(request: Request) -> Service:
    """Return the running service of the application."""
    service = getattr(request.app.state, "service", None)
    if not isinstance(service, Service):
        raise unavailable("The service is starting or stopping; try again in a few seconds")
    return service


ServiceDep = Annotated[Service, Depends(service_of)]


async def authenticate(service: Service, authorization: str) -> Caller:
    """Return the caller that the API key in the header belongs to.

    Raises:
        Problem: The header has no valid key (401).
        DatabaseUnavailable: The keys cannot be read.
    """
    scheme, _, key = authorization.partition(" ")
    caller = await service.keys.authenticate(key.strip() if scheme.lower() == "bearer" else None)
    if caller is None:
        raise Problem(
            401,
            "UNAUTHORIZED",
            "The API key is missing or invalid; send it as Authorization: Bearer KEY",
            headers=_CHALLENGE,
        )
    return caller


async def authorize(request: Request, needed: Scope) -> Caller:
    """Authenticate the request and check its rate and scope.

    Raises:
        Problem: No valid key (401), scope too small (403) or rate limit exceeded (429).
        DatabaseUnavailable: The keys cannot be read.
    """
    service = await service_of(request)
    caller = await authenticate(service, request.headers.get("authorization", ""))
    wait_s = service.rate_limiter.wait_s(caller.owner)
    allowance = service.rate_limiter.allowance(caller.owner)
    if allowance is not None:
        request.state[RATE_LIMIT_STATE] = {
            "RateLimit-Limit": str(allowance.limit),
            "RateLimit-Remaining": str(allowance.remaining),
            "RateLimit-Reset": str(allowance.full_in_s),
        }
    if wait_s > 0:
        detail = (
            f"Rate limit exceeded: at most {service.settings.rate_per_s:g} requests per second "
            "for the keys of one owner"
        )
        raise Problem(429, "TOO_MANY_REQUESTS", detail, headers={"Retry-After": str(int(wait_s) + 1)})
    if not caller.scope.includes(needed):
        detail = f"This key has the scope {caller.scope.value!r}, but this request needs {needed.value!r}"
        raise Problem(403, "SCOPE", detail)
    return caller


async def _reader(request: Request) -> Caller:
    return await authorize(request, Scope.READ)


async def _submitter(request: Request) -> Caller:
    return await authorize(request, Scope.SUBMIT)


async def _operator(request: Request) -> Caller:
    return await authorize(request, Scope.OPERATOR)


ReaderDep = Annotated[Caller, Depends(_reader)]
SubmitterDep = Annotated[Caller, Depends(_submitter)]
OperatorDep = Annotated[Caller, Depends(_operator)]
