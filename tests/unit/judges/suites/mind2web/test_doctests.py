from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from judges.suites.mind2web import guide, parsing, questions, ranker, step_player
from judges.suites.multimodal import options


@pytest.mark.parametrize("module", [ranker, parsing, step_player, guide, questions, options])
def test_doctests_pass(module: ModuleType):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
