"""Finds out once, and says, whether the browsers of this run have their sandbox."""

from __future__ import annotations

import pytest

from tests.fakes.sandbox import sandbox_problem


def pytest_collection_finish(session: pytest.Session) -> None:
    """Only when a browser is going to be driven. Written by hand: ``-q`` leaves out pytest's own header."""
    if session.config.option.collectonly or not any(item.get_closest_marker("browser") for item in session.items):
        return
    problem = sandbox_problem()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if problem and reporter is not None:
        reporter.write_line(f"browsers run WITHOUT their sandbox, on pages of the tests' own only: {problem}")
