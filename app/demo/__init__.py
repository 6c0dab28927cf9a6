"""Demo: a small fictional website, answers of three agents about it, and their expected scores."""

from __future__ import annotations

from app.demo.expected import EXPECTED, examples_dir, report_path
from app.demo.site import DemoPortTaken, DemoSite

__all__ = ["EXPECTED", "DemoPortTaken", "DemoSite", "examples_dir", "report_path"]
