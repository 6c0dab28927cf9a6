"""Strict JSON request bodies: UTF-8, no lone surrogates, no NaN, no repeated keys, limited nesting and count of values.

The parser of the standard library accepts lone surrogates, NaN and nesting that overflows the stack. Each of these
would cause an internal error later. Of a repeated key, parsers would ignore all values but the last.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response, params
from fastapi.routing import APIRoute
from pydantic_core import from_json

from app.api.problems import Problem, ProblemWhileReading
from judges.isolation.serialization import max_values

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
            ProblemWhileReading: An object has a key twice.
        """
        body = await self.body()
        return _parse(body) if len(body) < _LARGE_BYTES else await asyncio.to_thread(_parse, body)


def _parse(body: bytes) -> Any:
    # The upper bound counts characters in strings too, so the exact one is needed if it is exceeded.
    if max_values(body) > MAX_VALUES and max_values(_STRING.sub(b"", body)) > MAX_VALUES:
        raise json.JSONDecodeError(f"more than {MAX_VALUES} values", "", 0)
    try:
        value = from_json(body, allow_inf_nan=False, cache_strings="none")
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error
    json.loads(body, object_pairs_hook=_check_keys, parse_int=len, parse_float=len)  # the numbers are not needed
    return value


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(names) > len(set(names)):
        name, _ = Counter(names).most_common(1)[0]
        message = "is given more than once in an object of the body: send it once"
        raise ProblemWhileReading(Problem(400, "GIVEN_TWICE", f"{name} {message}", errors=[(name, message)]))


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
