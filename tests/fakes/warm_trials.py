"""Fixture for commands in this process that test task files."""

import pytest

from app.engine import judge_trials
from tests.fakes.warm_start import warm_judge_trials


@pytest.fixture
def warm_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the trials of task files as forks. Tests of their limits start the real program."""
    monkeypatch.setattr(judge_trials, "PROGRAM", (warm_judge_trials(),))
