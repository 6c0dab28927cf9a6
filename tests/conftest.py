"""For all tests: how examples are made up, who has a second try, and whether browsers have their sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.fakes.promises import give_second_tries
from tests.fakes.sandbox import sandbox_problem

# No deadlines: how long an example takes says how busy the machine is. The same examples in each CI run: what fails
# there has to do with what was changed.
settings.register_profile(
    "usual",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="CI" in os.environ,
)
settings.register_profile("thorough", settings.get_profile("usual"), max_examples=2000)
settings.load_profile("usual")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_second_tries(items, Path(__file__).parent)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Only when a browser is going to be driven. Written by hand: ``-q`` leaves out pytest's own header."""
    if session.config.option.collectonly or not any(item.get_closest_marker("browser") for item in session.items):
        return
    problem = sandbox_problem()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if problem and reporter is not None:
        reporter.write_line(f"browsers run WITHOUT their sandbox, on pages of the tests' own only: {problem}")
