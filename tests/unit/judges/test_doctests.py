from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from judges import voting
from judges.analysis.statistics import agreement, headline, sign_flip, student, wilson
from judges.grounding import folding
from judges.llm import families, pricing, providers, retry
from judges.prompting import blocks


@pytest.mark.parametrize(
    "module",
    [agreement, blocks, families, folding, headline, pricing, providers, retry, sign_flip, student, voting, wilson],
)
def test_doctests_pass(module: ModuleType):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
