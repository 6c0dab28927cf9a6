"""The suites that run over HTTP, behind one protocol: how each opens its data, and how a step of it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.features.suites.places import DataPlaces
from app.features.suites.records import Record
from app.features.suites.running import Plan
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun:
    """A run ready to begin. ``asks`` is False where answers of a file are scored.

    ``identity`` is what must be equal for steps of an earlier attempt to count; ``figures`` folds the records, and
    ``score`` takes the one number out of them by which runs are listed.
    """

    plan: Plan[Any]
    asks: bool
    identity: Mapping[str, Any]
    figures: Callable[[Sequence[Record]], dict[str, Any]]
    score: Callable[[Mapping[str, Any]], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An element on the screenshot, in its pixels. ``role``: gold, picked, or both."""

    role: str
    id: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """What of a step lies in the data: the page as text around the options, and where elements are on the picture."""

    page: str
    has_picture: bool
    boxes: tuple[Box, ...]


class SuiteKind(Protocol):
    """One suite. Everything blocks and is called in a thread.

    Raises:
        SuiteError: the data are missing or damaged, or are other data than those of the run.
        PathNotAllowed
    """

    @property
    def name(self) -> str: ...

    def opened(self, order: str, places: DataPlaces, settings: Settings) -> OpenedRun:
        """``order`` is the JSON text of the run's options."""
        ...

    def view(self, order: str, places: DataPlaces, record: Record) -> StepView: ...

    def picture(self, order: str, places: DataPlaces, record: Record) -> bytes | None:
        """The step's screenshot as it lies in the data; None where there is none."""
        ...
