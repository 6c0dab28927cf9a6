"""Template rendering, static files, and the HTTP headers of all dashboard pages.

Static files (stylesheets, scripts) are served under URLs that contain a hash of their content, for caching.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException

from app.dashboard import charts, wording

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    # With the API's "no-referrer", browsers would send forms with the origin "null", which is rejected.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

MENU: Final = (
    ("home", "/", "Agents"),
    ("tasks", "/tasks", "Tasks"),
    ("checks", "/checks", "Checks"),
    ("pages", "/pages", "Pages"),
    ("review", "/review", "Review"),
)
"""Main menu: the name that pages pass as ``here``, path, label."""
SECTIONS: Final[Mapping[str, Sequence[tuple[str, str, str]]]] = {
    "home": (("agents", "/", "Agents"), ("compare", "/compare", "Compare"), ("suites", "/suites", "Step benchmarks")),
    "review": (
        ("doubt", "/review", "Open questions"),
        ("overrides", "/review/overrides", "Overrides"),
        ("agreement", "/review/agreement", "Agreement"),
    ),
}
"""Pages of a menu entry: the name that pages pass as ``tab``, path, label."""
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
_IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}
_FILTERS = {
    "points": wording.points,
    "decimal": wording.decimal,
    "percent": wording.percent,
    "score_text": wording.score_text,
    "usd": wording.usd,
    "count": wording.count,
    "plural": wording.plural,
    "seconds": wording.seconds,
    "state": wording.state_words,
    "reason": wording.reason_words,
    "copies": wording.copies_words,
    "jury": wording.jury_words,
    "remedy": wording.remedy_words,
    "is_web": wording.is_web_url,
    "signal": wording.signal_words,
    "utc_time": wording.utc_time,
    "ago": wording.ago,
    "shorten": wording.shorten,
    "breakable": wording.breakable,
    "shade": charts.shade,
}


def create_environment(assets: Assets, packages: Sequence[str] = ()) -> Environment:
    """Return the Jinja2 environment with the templates of the dashboard and of ``packages``."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in ("app.dashboard", *packages)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    environment.globals |= {
        "asset": assets.url,
        "change_bar": charts.change_bar,
        "interval_bar": charts.interval_bar,
        "share_bar": charts.share_bar,
        "trend_line": charts.trend_line,
        "duration": wording.duration,
        "job_errors": wording.JOB_ERRORS,
        "menu": MENU,
        "sections": SECTIONS,
    }
    return environment


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


class Renderer:
    """Renders the dashboard's templates. All values are escaped except ``Markup`` created by the dashboard."""

    def __init__(self, packages: Sequence[str] = ()) -> None:
        self.assets = Assets()
        self._environment = create_environment(self.assets, packages)

    def fragment(self, template: str, /, **values: Any) -> Markup:
        """Return the HTML of a template for use inside a page."""
        return Markup(self._environment.get_template(template).render(**values))  # noqa: S704 - escaped by the template

    def page(
        self, template: str, /, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> HTMLResponse:
        html = self._environment.get_template(template).render(**values)
        # JSON can contain lone surrogates, which cannot be encoded as UTF-8.
        return HTMLResponse(html.encode("utf-8", "replace"), status, {**HEADERS, **(headers or {})})
