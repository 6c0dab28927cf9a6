"""Who is asking: nobody in particular on loopback, the holder of a key elsewhere."""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.api.problems import Problem, unavailable
from app.service import Service

LOCAL_OWNER = "local"
_bearer = HTTPBearer(auto_error=False, description="One of ASSAY_API_KEYS; not needed where none are set")


def service_of(request: Request) -> Service:
    """The running service behind the application."""
    service = getattr(request.app.state, "service", None)
    if not isinstance(service, Service):
        raise unavailable("the service is starting or stopping")
    return service


ServiceDep = Annotated[Service, Depends(service_of)]


def owner_of(service: ServiceDep, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> str:
    """A stable name for the caller, in which the key itself does not appear."""
    keys = service.settings.api_keys
    if not keys:
        return LOCAL_OWNER
    given = _digest("" if credentials is None else credentials.credentials)
    # Every key is compared, each in constant time, so that the time taken tells nothing.
    matching = [key for key in keys if hmac.compare_digest(_digest(key.get_secret_value()), given)]
    if not matching:
        raise Problem(401, "UNAUTHORIZED", "send a valid key as Authorization: Bearer", headers=_CHALLENGE)
    return f"key-{given.hex()[:16]}"


OwnerDep = Annotated[str, Depends(owner_of)]
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
