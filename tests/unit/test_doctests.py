from __future__ import annotations

import doctest
import importlib

import pytest

from tests.architecture.sources import PACKAGES, module_name, python_files

MODULES = [module_name(path) for path in python_files(*PACKAGES) if ">>> " in path.read_text("utf-8")]


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_are_correct(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.attempted > 0
    assert outcome.failed == 0
