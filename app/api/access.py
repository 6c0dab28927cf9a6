"""Authentication, rate limit and scope check of API requests.

A service without API keys accepts every request from its own machine.
"""

from __future__ import annotations

from typing import Annotated, Any

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
    allowance = service.rate_limiter.take(caller.owner)
    if allowance is not None:
        request.state[RATE_LIMIT_STATE] = {
            "RateLimit-Limit": str(allowance.limit),
            "RateLimit-Remaining": str(allowance.remaining),
            "RateLimit-Reset": str(allowance.full_in_s),
        }
        if allowance.wait_s:
            detail = (
                f"Rate limit exceeded: at most {service.settings.rate_per_s:g} requests per second "
                "for the keys of one owner"
            )
            headers = {"Retry-After": str(int(allowance.wait_s) + 1)}
            raise Problem(429, "TOO_MANY_REQUESTS", detail, headers=headers)
    if not caller.scope.includes(needed):
        detail = f"This key has the scope {caller.scope.value!r}, but this request needs {needed.value!r}"
        raise Problem(403, "SCOPE", detail)
    return caller


def _caller_with(scope: Scope) -> Any:
    async def caller(request: Request) -> Caller:
        return await authorize(request, scope)

    return Depends(caller)


ReaderDep = Annotated[Caller, _caller_with(Scope.READ)]
SubmitterDep = Annotated[Caller, _caller_with(Scope.SUBMIT)]
OperatorDep = Annotated[Caller, _caller_with(Scope.OPERATOR)]
