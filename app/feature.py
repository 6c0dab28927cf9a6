"""The interface between the core and its features.

A feature is a package ``app.features.<name>`` whose ``__init__`` defines ``FEATURE``. ``app.features.FEATURES`` lists
them all. The core reads that list when it builds the web application, the worker and the command line; it imports no
feature itself. To delete a feature, delete its package and its line in the list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import typer
    from fastapi import APIRouter

    from app.jobs.evaluator import JobRunner
    from app.service import Contributions, ResultFields, Searching, Service
    from app.settings import SettingsPart
    from app.tabs import Tab

TokenCheck: TypeAlias = "Callable[[Service, str], Awaitable[object]]"
"""Checks the ``Authorization`` header of a request; raises ``Problem`` if it does not permit the request."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The command line as features extend it: the ``assay`` program and the core's command groups by name."""

    program: typer.Typer
    groups: Mapping[str, typer.Typer]


def _none() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What one feature adds to the core. Most parts are functions, so that listing the features loads none of them."""

    name: str
    """Name of the package below ``app.features``."""
    settings: Callable[[], type[SettingsPart] | None] = _none
    """Class that declares the settings of the feature, which reads them with ``settings.of(...)``."""
    commands: Callable[[Commands], None] | None = None
    """Adds commands to the command line."""
    tables: Sequence[str] = ()
    """Tables, which the module ``storage`` defines and the Alembic scripts in the folder ``migrations`` create."""
    routers: Callable[[], Sequence[APIRouter]] = tuple
    """Routers of the HTTP API."""
    pages: Callable[[], Sequence[APIRouter]] = tuple
    """Routers of the dashboard. Their templates are in the folder ``templates`` of the package."""
    tabs: Sequence[Tab] = ()
    examples: Callable[[], Mapping[str, Any]] = dict
    """Response examples for the OpenAPI description, by operation, for example ``GET /v1/compare``."""
    token_checks: Callable[[], Mapping[str, TokenCheck]] = dict
    """Path prefixes whose requests carry the feature's own tokens instead of an API key."""
    job_runners: Callable[[], Mapping[str, JobRunner]] = field(default=dict)
    """Runners for job kinds other than the judging of one answer, by the kind's name."""
    result_fields: Callable[[], ResultFields | None] = _none
    """Fields that the API appends to the JSON of stored results."""
    search: Callable[[], Searching | None] = _none
    """Search for objects of the feature, for ``GET /v1/search`` and the command palette."""

    @property
    def has_pages(self) -> bool:
        return self.pages is not tuple


def contributions(features: Sequence[Feature], *, has_api: bool = True) -> Contributions:
    """Return what ``features`` add to the service. ``has_api``: also the parts that only the HTTP API needs."""
    from app.service import Contributions

    answering = features if has_api else ()
    return Contributions(
        runners={kind: runner for feature in features for kind, runner in feature.job_runners().items()},
        result_fields=tuple(fields for feature in answering if (fields := feature.result_fields()) is not None),
        searches=tuple(search for feature in answering if (search := feature.search()) is not None),
    )
