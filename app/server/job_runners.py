"""Runners of the jobs other than the judging of one answer. A worker imports them without the web application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.check.jobs import CHECK_RUNNER
from app.features.suites.runner import SUITE_RUNNER
from app.jobs.evaluator import JobRunner

JOB_RUNNERS: Final[Mapping[str, JobRunner]] = {"check": CHECK_RUNNER, "suite": SUITE_RUNNER}
"""By kind of job."""
