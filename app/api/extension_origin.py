"""Lets our browser extension speak to its own calls, and to no others.

A browser sends an extension's requests with an ``Origin`` that no web page can have, and shows the extension our answer
only if that names the origin (CORS). No cookie goes along: what an extension may do, its token says.
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
    """Whether a request comes from some browser extension, to a call that is there for ours."""
    return path.startswith(EXTENSION_PATHS) and origin.startswith(_SCHEMES)


class ExtensionOrigin:
    """Answers a browser that asks whether an extension may call, and says so with every answer to one."""

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
