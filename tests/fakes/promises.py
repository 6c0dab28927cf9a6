"""What a busy machine may break for us: promises in seconds, and meetings of real processes. Each may be seen again.

A second try is judged in full and the report names it, and a run has few of them (``--max-suite-reruns`` in
pyproject.toml): what is broken fails every time, and a machine on which everything fails is no machine to believe.
"""

from __future__ import annotations

from pathlib import Path

import pytest

in_seconds = pytest.mark.flaky(reruns=2, reruns_delay=3)
"""For a test that holds the product to a time its users were promised. Speed itself is measured in ``make bench``."""

OF_REAL_PROCESSES = frozenset({"acceptance", "browser", "faults", "integration"})
"""The folders whose tests start servers, browsers and databases, kill them, and wait for what comes of it."""


def give_second_tries(items: list[pytest.Item], tests: Path) -> None:
    """One more try for every test of real processes; a test of ours alone has only its first."""
    for item in items:
        folders = item.path.relative_to(tests).parts if item.path.is_relative_to(tests) else ()
        if folders and folders[0] in OF_REAL_PROCESSES and item.get_closest_marker("flaky") is None:
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=3))
