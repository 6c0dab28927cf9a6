"""Rows of our own in the shapes of public label sets, for tests of their importers."""

from __future__ import annotations

from typing import Any

PAGE = "The Heron 2 is a field gauge. It costs 430 crowns and weighs 310 grams."


def wikipedia_row(id: str, ground_truth: str = "Supported", **fields: Any) -> dict[str, Any]:
    return {
        "id": id,
        "claim_text": f"Claim {id}: the Heron 2 costs 430 crowns.",
        "claim_container": "The Heron 2 costs 430 crowns.[1]",
        "source_url": f"https://pellard.example/{id}",
        "source_text": PAGE,
        "ground_truth": ground_truth,
        "extraction_status": "complete",
        "dataset_version": "v1",
    } | fields


def verdict_row(entry_id: str, predicted: str | None = "Supported", model: str = "heron-1", **fields: Any):
    return {
        "entry_id": entry_id,
        "provider": model,
        "model": model,
        "predicted_verdict": predicted,
        "confidence": 90,
        "comments": "The price is on the page.",
        "source_quote": "It costs 430 crowns",
        "quote_status": "exact",
        "latency_ms": 2500,
        "tokens_in": 1000,
        "tokens_out": 100,
        "cost_usd": 0.002,
        "timestamp": "2026-08-17T21:03:46.581Z",
        "error": None,
    } | fields


def factcheck_row(n: int, stance: str = "completely-support", **fields: Any) -> dict[str, Any]:
    return {"claim": f"Claim {n}: the Heron 2 costs 430 crowns.", "evidence": PAGE, "stance": stance} | fields


def aggrefact_row(n: int, label: int = 1, **fields: Any) -> dict[str, Any]:
    return {"doc": PAGE, "claim": f"Claim {n}: it weighs 310 grams.", "label": label, "dataset": "gauges"} | fields
