from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from judges.suites.mind2web import candidates, parsing, playing, port


@pytest.mark.parametrize("module", [candidates, parsing, playing, port])
def test_examples_in_the_documentation_are_right(module: ModuleType):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
