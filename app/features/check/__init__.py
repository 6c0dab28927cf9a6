"""Audit of the citations of a report: ``assay check``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.feature import Commands, Feature
from app.tabs import Tab

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.jobs.evaluator import JobRunner


def _commands(cli: Commands) -> None:
    from app.features.check.cli import check

    cli.program.command("check", rich_help_panel="Evaluate")(check)


def _routers() -> Sequence[APIRouter]:
    from app.features.check.api import router

    return (router,)


def _job_runners() -> Mapping[str, JobRunner]:
    from app.features.check.jobs import CHECK_RUNNER

    return {"check": CHECK_RUNNER}


def _pages() -> Sequence[APIRouter]:
    from app.features.check.pages import router

    return (router,)


FEATURE = Feature(
    name="check",
    commands=_commands,
    routers=_routers,
    pages=_pages,
    tabs=(Tab(name="checks", path="/checks", label="Checks"),),
    job_runners=_job_runners,
)
