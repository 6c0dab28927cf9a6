"""The interface between the core and its features.

A feature is a package ``app.features.<name>`` whose ``__init__`` defines ``FEATURE``. ``app.features.FEATURES`` lists
them all. The core reads that list when it builds the web application, the worker and the command line; it imports no
feature itself. To delete a feature, delete its package and its line in the list.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    from app.service import Contributions
    from app.tabs import Tab


@dataclass(frozen=True, slots=True)
class Commands:
    """The command line as features extend it: the ``assay`` program and the core's command groups by name."""

    program: typer.Typer
    groups: Mapping[str, typer.Typer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What one feature adds to the core.

    Most parts are names in its package, such as ``api:router``, so that listing the features imports none of them.
    """

    name: str
    """Name of the package below ``app.features``."""
    settings: str | None = None
    """Class that declares the settings of the feature, which reads them with ``settings.of(...)``."""
    commands: Callable[[Commands], None] | None = None
    """Adds commands to the command line."""
    tables: Sequence[str] = ()
    """Tables, which the module ``storage`` defines and the Alembic scripts in the folder ``migrations`` create."""
    routers: Sequence[str] = ()
    """Routers of the HTTP API."""
    pages: Sequence[str] = ()
    """Routers of the dashboard. Their templates are in the folder ``templates`` of the package."""
    tabs: Sequence[Tab] = ()
    examples: str | None = None
    """Function that returns response examples for the OpenAPI description by operation, such as ``GET /v1/compare``."""
    job_runners: Mapping[str, str] = field(default_factory=dict)
    """``JobRunner`` of each kind of jobs other than the judging of one answer."""

    def load(self, part: str) -> Any:
        """Import a part of the feature by its name in the package."""
        return pkgutil.resolve_name(f"app.features.{self.name}.{part}")


def contributions(features: Sequence[Feature]) -> Contributions:
    """Return what ``features`` add to the service."""
    from app.service import Contributions

    return Contributions(
        runners={kind: each.load(runner) for each in features for kind, runner in each.job_runners.items()}
    )
