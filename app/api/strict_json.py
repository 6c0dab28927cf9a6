"""Strict JSON request bodies: UTF-8, no lone surrogates, no NaN, limited nesting, numbers and count of values.

The parser of the standard library accepts lone surrogates, NaN and nesting that overflows the stack. Each of these
would cause an internal error later.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response, params
from fastapi.routing import APIRoute
from pydantic_core import from_json

from app.api.problems import Problem
from judges.isolation.rpc_framing import max_values

MAX_VALUES: Final = 500_000
"""Maximum number of JSON values in a body. Decoded, ``[{},{},...]`` needs 25 times its size."""
_LARGE_BYTES: Final = 256 * 1024
"""Bodies of at least this size are parsed in a thread, so that the event loop is not blocked."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)


class StrictJsonRequest(Request):
    """Request with a strict ``json`` method."""

    async def json(self) -> Any:
        """Return the parsed body.

        Raises:
            json.JSONDecodeError: The body is invalid. FastAPI turns this into a validation error.
        """
        body = await self.body()
        return _parse(body) if len(body) < _LARGE_BYTES else await asyncio.to_thread(_parse, body)


def _parse(body: bytes) -> Any:
    # The upper bound counts characters in strings too, so the exact one is needed if it is exceeded.
    if max_values(body) > MAX_VALUES and max_values(_STRING.sub(b"", body)) > MAX_VALUES:
        raise json.JSONDecodeError(f"more than {MAX_VALUES} values", "", 0)
    try:
        return from_json(body, allow_inf_nan=False, cache_strings="none")
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error


class StrictJsonRoute(APIRoute):
    """Route that accepts only JSON bodies, unless it declares a form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_json = self.body_field is not None and not isinstance(self.body_field.field_info, params.Form)

        async def strict(request: Request) -> Response:
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if takes_json and media_type != "application/json":
                raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "Send the body with Content-Type: application/json")
            return await handle(StrictJsonRequest(request.scope, request.receive))

        return strict
