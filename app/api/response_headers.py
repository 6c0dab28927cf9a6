"""Response headers of the API, as components of the OpenAPI description. Routes declare those that only they send."""

from __future__ import annotations

from typing import Any, Final

from app.api.examples import EXAMPLE_ID


def _header(description: str, example: str | int, *, is_required: bool = False) -> dict[str, Any]:
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "required": is_required, "schema": {"type": kind}, "example": example}


HEADERS: Final = {
    "X-Request-ID": _header("ID of the request, also in the log", "4f1d0c7a9be24d06", is_required=True),
    "RateLimit-Limit": _header("Requests that the keys of an owner can send at once; absent without a limit", 4000),
    "RateLimit-Remaining": _header("Requests that remain", 3999),
    "RateLimit-Reset": _header("Seconds until all requests are available again", 1),
    "Retry-After": _header("Seconds until the request can be repeated", 2),
    "WWW-Authenticate": _header("With 401: the scheme of the API key", "Bearer"),
    "Allow": _header("With 405: the methods of the path", "GET, HEAD"),
    "Location": _header("Path of what the request created", f"/v1/submissions/sub_{EXAMPLE_ID}", is_required=True),
    "ETag": _header("Version of the body, for If-None-Match", '"2c26b46b68ffc68f"', is_required=True),
    "Cache-Control": _header("How long the response can be cached", "no-store", is_required=True),
    "Content-Disposition": _header("Name for saving the body", 'attachment; filename="labels.jsonl"', is_required=True),
}
ALWAYS: Final = ("X-Request-ID",)
RATE_LIMIT: Final = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
OF_ERRORS: Final = {"4XX": ("Retry-After", "WWW-Authenticate", "Allow"), "5XX": ("Retry-After",)}


def references(*names: str) -> dict[str, Any]:
    """Return the part of an OpenAPI response that declares these headers."""
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


def sends(status: int, *names: str) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of a route whose response with this status has these headers."""
    return {status: references(*names)}
