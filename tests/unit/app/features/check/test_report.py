"""Schema of the document of a citation check, and the example that tests of its views use."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

from app.demo.expected import page_texts
from app.features.check.report import CheckDocument, document_schema

EXAMPLE = Path(__file__).parent / "example.json"


def example() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return document


def test_the_example_matches_the_published_schema() -> None:
    Draft202012Validator(document_schema()).validate(example())


def test_spans_of_the_example_are_in_the_report_and_in_the_pages() -> None:
    document = CheckDocument.model_validate(example())
    text, pages = document.report.text, page_texts()
    assert hashlib.sha256(text.encode()).hexdigest() == document.report.sha256
    for statement in document.statements:
        assert text[statement.start : statement.end] == statement.text
        for citation in statement.citations:
            assert text[citation.start : citation.end] == citation.mark
        for claim in statement.claims:
            assert all(statement.start <= span.start < span.end <= statement.end for span in claim.spans)
            for verdict in claim.verdicts:
                for quote in verdict.quotes:
                    page = pages[str(document.sources[verdict.source].url)]
                    assert page[quote.start : quote.end] == quote.text
