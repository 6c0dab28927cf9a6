"""CORS for the browser extension: extensions may call the routes under ``/v1/extension/`` and no others.

A browser sends the requests of an extension with an ``QuoteOrigin`` that web pages cannot have, and lets the extension
read the response only if its CORS headers name this origin. No cookies are used; the extension's token authorizes it.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

EXTENSION_PATHS = "/v1/extension/"
PAIRING_PATH = f"{EXTENSION_PATHS}pair"
_SCHEMES = ("chrome-extension://", "moz-extension://")
_LASTS_S = 600


def from_extension(origin: str, path: str) -> bool:
    """Return whether a browser extension sends this request to one of the extension routes."""
    return path.startswith(EXTENSION_PATHS) and origin.startswith(_SCHEMES)


class ExtensionOrigin:
    """ASGI middleware that answers CORS preflight requests of extensions and adds CORS headers to responses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = Headers(scope=scope).get("origin", "") if scope["type"] == "http" else ""
        if not from_extension(origin, scope.get("path", "")):
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            allowed = {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": "GET, POST, DELETE",
                "Access-Control-Allow-Headers": "Authorization, Content-Type",
                "Access-Control-Max-Age": str(_LASTS_S),
                "Vary": "Origin",
            }
            await Response(status_code=204, headers=allowed)(scope, receive, send)
            return

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = "Retry-After"
                headers.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, named)
