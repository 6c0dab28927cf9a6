from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from judges.suites.conformance import guide_port
from judges.suites.mind2web import parsing, ranker, step_player


@pytest.mark.parametrize("module", [ranker, parsing, step_player, guide_port])
def test_doctests_pass(module: ModuleType):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
