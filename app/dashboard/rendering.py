"""Template rendering, and the HTTP headers of all dashboard pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.dashboard import charts, wording
from app.dashboard.assets import Assets
from app.tabs import Tab

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

TABS: Final = (
    Tab(name="home", path="/", label="Agents"),
    Tab(name="jobs", path="/jobs", label="Jobs"),
    Tab(name="review", path="/review", label="Review"),
    Tab(name="pages", path="/pages", label="Pages"),
)
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
    "jury": wording.jury_words,
    "remedy": wording.remedy_words,
    "is_web": wording.is_web_url,
    "signal": wording.signal_words,
    "utc_time": wording.utc_time,
    "ago": wording.ago,
    "shorten": wording.shorten,
    "breakable": wording.breakable,
}


class FeaturePages(Protocol):
    """Pages of a feature: see ``app.feature.Feature``, which this package does not import."""

    @property
    def name(self) -> str: ...
    @property
    def tabs(self) -> Sequence[Tab]: ...
    @property
    def pages(self) -> Sequence[str]: ...


def create_environment(assets: Assets, features: Sequence[FeaturePages] = ()) -> Environment:
    """Return the Jinja2 environment with the templates of the core and of ``features``, and their functions."""
    packages = ["app.dashboard", *(f"app.features.{feature.name}" for feature in features if feature.pages)]
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
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
        "trend_line": charts.trend_line,
        "duration": wording.duration,
        "job_errors": wording.JOB_ERRORS,
        "features": frozenset(feature.name for feature in features),
    }
    return environment


class Renderer:
    """Renders the dashboard's templates. All values are escaped except ``Markup`` created by the dashboard."""

    def __init__(self, features: Sequence[FeaturePages] = ()) -> None:
        self.assets = Assets()
        self._environment = create_environment(self.assets, features)
        self.tabs: Sequence[Tab] = (*TABS, *(tab for feature in features for tab in feature.tabs))

    def fragment(self, template: str, /, **values: Any) -> Markup:
        """Return the HTML of a template for use inside a page."""
        return Markup(self._environment.get_template(template).render(**values))  # noqa: S704 - escaped by the template

    def page(
        self, template: str, /, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> HTMLResponse:
        html = self._environment.get_template(template).render(**values)
        # JSON can contain lone surrogates, which cannot be encoded as UTF-8.
        return HTMLResponse(html.encode("utf-8", "replace"), status, {**HEADERS, **(headers or {})})
