"""Promises in seconds. A machine that was busy with something else may break one for us, so it may be seen again."""

from __future__ import annotations

import pytest

in_seconds = pytest.mark.flaky(reruns=2, reruns_delay=3)
"""For a test that holds the product to a time its users were promised. Every try is judged in full, and the report
counts the tries; what fails three times in a row has failed. Speed itself is measured in ``make bench``."""
