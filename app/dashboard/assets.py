"""Static files (stylesheets, scripts), served under URLs that contain a hash of their content, for caching."""

from __future__ import annotations

import hashlib
from importlib import resources

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
_IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}


class Assets:
    """All static files of the dashboard, in memory."""

    def __init__(self) -> None:
        """Read the files of the package (about 100 kB)."""
        folder = resources.files("app.dashboard").joinpath("static")
        self._files = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
        combined = hashlib.sha256()
        for name in sorted(self._files):
            combined.update(name.encode() + b"\0" + self._files[name])
        self._version = combined.hexdigest()[:12]

    def url(self, name: str) -> str:
        """Return the URL of a file.

        Raises:
            KeyError: No such file.
        """
        self._files[name]
        return f"/assets/{self._version}/{name}"

    def router(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)

        @router.get("/assets/{version}/{name}")
        async def asset(version: str, name: str) -> Response:
            data = self._files.get(name)
            if data is None:
                raise HTTPException(404, "file not found")
            suffix = name[name.rfind(".") :]
            # A page that was loaded before an update requests the old version. It gets the new file, uncached.
            headers = _IMMUTABLE if version == self._version else {"Cache-Control": "no-store"}
            return Response(data, media_type=_TYPES.get(suffix, "application/octet-stream"), headers=headers)

        return router
