"""Schema of the document of a citation check, and the example that tests of its views use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

from app.features.check.report import document_schema

EXAMPLE = Path(__file__).parent / "example.json"


def example() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return document


def test_the_example_matches_the_published_schema() -> None:
    Draft202012Validator(document_schema()).validate(example())
