"""Strict JSON request bodies: UTF-8, no lone surrogates, no NaN, limited nesting and numbers.

The parser of the standard library accepts lone surrogates, NaN and nesting that overflows the stack. Each of these
would cause an internal error later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response, params
from fastapi.routing import APIRoute
from pydantic_core import from_json

from app.api.problems import Problem


class StrictJsonRequest(Request):
    """Request with a strict ``json`` method."""

    async def json(self) -> Any:
        """Return the parsed body.

        Raises:
            json.JSONDecodeError: The body is invalid. FastAPI turns this into a validation error.
        """
        try:
            return from_json(await self.body(), allow_inf_nan=False, cache_strings="none")
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
