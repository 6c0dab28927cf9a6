"""Tasks in the dashboard: rubrics and scores, and an editor of tasks in YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.feature import Feature
from app.tabs import Tab

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.jobs.evaluator import JobRunner


def _routers() -> Sequence[APIRouter]:
    from app.features.tasks.api import answers_router, router

    return (router, answers_router)


def _pages() -> Sequence[APIRouter]:
    from app.features.tasks.pages import router

    return (router,)


def _job_runners() -> Mapping[str, JobRunner]:
    from app.features.tasks.trials import TEST_RUNNER

    return {"test": TEST_RUNNER}


FEATURE = Feature(
    name="tasks",
    routers=_routers,
    pages=_pages,
    tabs=(Tab(name="tasks", path="/tasks", label="Tasks"),),
    job_runners=_job_runners,
)
