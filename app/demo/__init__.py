"""Demo: a small fictional website, answers of three agents about it, and their expected scores."""

from __future__ import annotations

from app.demo.errors import DemoPortTaken
from app.demo.expected import EXPECTED, ExpectedScore
from app.demo.shipped import examples_dir
from app.demo.site import DemoSite

__all__ = ["EXPECTED", "DemoPortTaken", "DemoSite", "ExpectedScore", "examples_dir"]
