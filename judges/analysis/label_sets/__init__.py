"""Importers of public label sets, which turn their rows into labels (``judges.analysis.labels``)."""

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
