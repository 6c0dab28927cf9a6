from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from answers import citations, submission


@pytest.mark.parametrize("module", [citations, submission])
def test_docstring_examples_are_correct(module: ModuleType) -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
