"""Choices of the commands about label sets. A module of its own, because the help of the command line imports it."""

from __future__ import annotations

from enum import StrEnum


class SetFormat(StrEnum):
    """Format of a label set."""

    WIKIPEDIA = "wikipedia"
    """Wikipedia citation check: ``dataset.json`` and any number of recorded judges (``results*.json``)."""
    WICE = "wice"
    """WiCE: ``entailment_retrieval``."""
    FACTCHECK_GPT = "factcheck-gpt"
    """Factcheck-GPT: ``subtask3_claim_evidence_stance.jsonl``."""
    AGGREFACT = "aggrefact"
    """MiniCheck and LLM-AggreFact: document, claim and label 0 or 1, as JSON lines or Parquet."""
    OWN = "own"
    """Labels of this tool."""


class PartialRule(StrEnum):
    """Rule that turns three-way labels and verdicts into two-way ones. It is part of every report."""

    FAILED = "failed"
    """Partial support counts as failed, as in rubrics."""
    PASSED = "passed"
    EXCLUDED = "excluded"
    """Claims that people or the judge call partly supported are left out and counted."""

    @property
    def in_reports(self) -> str:
        """Name of the rule, for example ``partial=failed``."""
        return f"partial={self}"
