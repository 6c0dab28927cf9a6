"""Step benchmarks (Mind2Web and Multimodal-Mind2Web~), run from the command line or as service jobs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.feature import Commands, Feature
from app.tabs import Tab

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.jobs.evaluator import JobRunner
    from app.service import Searching
    from app.settings import SettingsPart


def _settings() -> "type[SettingsPart]":
    from app.features.suites.settings import SuiteSettings

    return SuiteSettings


def _commands(cli: Commands) -> None:
    from app.features.suites import cli_conformance, cli_mind2web, cli_mm_mind2web

    cli.program.add_typer(cli_mind2web.program(), name="mind2web", rich_help_panel="Benchmarks")
    cli.program.add_typer(cli_mm_mind2web.program(), name="mm-mind2web", rich_help_panel="Benchmarks")
    cli.program.command("conformance", rich_help_panel="Benchmarks")(cli_conformance.conformance)


def _routers() -> "Sequence[APIRouter]":
    from app.features.suites.api import router
    from app.features.suites.session_api import router as sessions

    return (router, sessions)


def _pages() -> "Sequence[APIRouter]":
    from app.features.suites.comparison_page import router as comparison
    from app.features.suites.pages import router
    from app.features.suites.session_pages import router as sessions

    return (router, sessions, comparison)


def _search() -> "Searching":
    from app.features.suites.storage import search_sessions

    return search_sessions


def _job_runners() -> "Mapping[str, JobRunner]":
    import asyncio
    import importlib

    from app.features.suites.settings import SuiteSettings
    from app.jobs.evaluator import JobRun, JobRunner

    async def run(job: JobRun) -> dict[str, Any]:
        # Most workers never run a suite, whose libraries (pyarrow, lxml) take half a second to import.
        jobs = await asyncio.to_thread(importlib.import_module, "app.features.suites.jobs")
        result: dict[str, Any] = await jobs.run_suite(job)
        return result

    return {"suite": JobRunner(run=run, deadline_s=lambda settings: settings.of(SuiteSettings).suite_deadline_s)}


FEATURE = Feature(
    name="suites",
    settings=_settings,
    commands=_commands,
    tables=("suite_runs", "suite_steps", "suite_sessions", "suite_session_steps"),
    routers=_routers,
    pages=_pages,
    tabs=(Tab(name="suites", path="/suites", label="Suites", listing="/v1/suites"),),
    job_runners=_job_runners,
    search=_search,
)
