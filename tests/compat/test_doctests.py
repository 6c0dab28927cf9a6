"""Doctests of the public interface."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "module",
    ["page_keys", "utils.url_tools", "utils.misc", "api_tools.tool_pdf", "api_tools.tool_arxiv"],
)
def test_docstring_examples_pass(module: str):
    outcome = doctest.testmod(importlib.import_module(f"mind2web2.{module}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0
