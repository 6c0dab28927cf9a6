"""Step benchmarks (Mind2Web and Multimodal-Mind2Web~), run from the command line or as service jobs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.feature import Commands, Feature
from app.tabs import Tab

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.jobs.evaluator import JobRunner


def _commands(cli: Commands) -> None:
    from app.features.suites import cli_conformance, cli_mind2web, cli_mm_mind2web

    cli.program.add_typer(cli_mind2web.program(), name="mind2web")
    cli.program.add_typer(cli_mm_mind2web.program(), name="mm-mind2web")
    cli.program.command("conformance")(cli_conformance.conformance)


def _routers() -> "Sequence[APIRouter]":
    from app.features.suites.api import router

    return (router,)


def _pages() -> "Sequence[APIRouter]":
    from app.features.suites.pages import router

    return (router,)


def _job_runners() -> "Mapping[str, JobRunner]":
    from app.features.suites.jobs import run_suite

    return {"suite": run_suite}


FEATURE = Feature(
    name="suites",
    commands=_commands,
    routers=_routers,
    pages=_pages,
    tabs=(Tab(name="suites", path="/suites", label="Suites"),),
    job_runners=_job_runners,
)
