"""Protocol of the suites that run over HTTP: how a suite opens its data and shows a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from app.features.suites.data_folders import DataFolders
from app.features.suites.records import Record
from app.features.suites.step_loop import Plan
from app.settings import Settings
from rubrics.scoring import Score


class SuiteName(StrEnum):
    """Suites that run over HTTP."""

    MIND2WEB = "mind2web"
    MM_MIND2WEB = "mm-mind2web"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """Run that is ready to start. ``needs_model`` is False if answers from a file are scored.

    ``identity`` must be equal for steps of an earlier attempt to be reused. ``figures`` aggregates the records.
    ``summary_score`` extracts the figure that lists of runs show.
    """

    plan: Plan[Any]
    needs_model: bool
    identity: Mapping[str, Any]
    figures: Callable[[Sequence[Record]], dict[str, Any]]
    summary_score: Callable[[Mapping[str, Any]], Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Element on the screenshot, in pixels of the screenshot. ``role`` is gold, picked or both."""

    role: str
    id: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """Data of a step: the page text around the options, and the boxes of elements on the screenshot."""

    page: str
    has_screenshot: bool
    boxes: tuple[Box, ...]


class ServiceSuite(Protocol):
    """Suite that runs over HTTP. All methods block; call them in a thread.

    Raises:
        SuiteError: the data are missing or damaged, or differ from those of the run.
        PathNotAllowed: a path is outside the allowed folders.
    """

    @property
    def name(self) -> str: ...

    def prepare_run(self, options_json: str, folders: DataFolders, settings: Settings) -> PreparedRun:
        """Open a run. ``options_json`` is the JSON text of its options."""
        ...

    def step_view(self, options_json: str, folders: DataFolders, record: Record) -> StepView: ...

    def screenshot(self, options_json: str, folders: DataFolders, record: Record) -> bytes | None:
        """Return the original screenshot of a step, or None if there is none."""
        ...
