"""Reads request bodies as strict JSON: UTF-8, whole surrogate pairs, bounded depth and numbers.

The standard parser takes lone surrogates, NaN and nesting that overflows the stack; each of those
would turn up later as a fault of ours.
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
    """A request whose ``json`` is strict."""

    async def json(self) -> Any:
        """Raises json.JSONDecodeError, which FastAPI answers as bad input."""
        try:
            return from_json(await self.body(), allow_inf_nan=False, cache_strings="none")
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error


class StrictJsonRoute(APIRoute):
    """A route that takes JSON and nothing else as its body, unless it declares a form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_json = self.body_field is not None and not isinstance(self.body_field.field_info, params.Form)

        async def strict(request: Request) -> Response:
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if takes_json and media_type != "application/json":
                raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "send the body as application/json")
            return await handle(StrictJsonRequest(request.scope, request.receive))

        return strict
