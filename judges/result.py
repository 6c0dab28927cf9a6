"""Result of one judged answer as JSON.

It contains ``get_summary()`` of the public toolkit and everything needed to dispute the score. Native judgements and
public scripts both go through ``build_result``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from cache.capture import Capture
from judges.llm.providers import LEXICAL
from judges.registry import Judge
from judges.runner import ExtractionRecord, Judgement
from rubrics.result_json import tree_json
from rubrics.scoring import Score, compatible_score, tree_score
from rubrics.verdict import Usage

RESULT_SCHEMA_VERSION: Final = 2
SCORING_VERSION: Final = 3
"""Version of the rules that lead from replies of the judge to scores, as the public toolkit counts them."""
NOTHING_APPLIES: Final = "nothing_applies"
"""Reason of a result without a score: no part of the rubric applies to the answer, so its judge declared no leaf."""
NO_INFO: Final = {"no_info": "No information recorded"}
LEXICAL_NOTICE: Final = (
    "Judged by the lexical baseline, which compares words, names, numbers and dates but not meaning."
)


def native_summary(judgement: Judgement, *, agent_name: str) -> dict[str, Any]:
    """Return a native judgement in the format of the public ``get_summary()``, plus ``status`` and both scores.

    ``extraction_error`` is only present if the rubric may lack parts.
    """
    rubric = judgement.rubric
    return {
        "agent_name": agent_name,
        "answer_name": judgement.answer.name,
        "final_score": tree_score(rubric.root, lambda leaf: compatible_score(leaf.verdict).score),
        "judge_model": judgement.model,
        "extract_model": judgement.model,
        "eval_breakdown": [
            {
                "info": [_info(record) for record in judgement.extractions] or [dict(NO_INFO)],
                "verification_tree": tree_json(rubric),
            }
        ],
        "tree_statistics": asdict(rubric.statistics()),
        "status": "complete" if judgement.complete else "incomplete",
        "score": score_json(None if judgement.nothing_applies else judgement.score),
        "score_strict": score_json(None if judgement.nothing_applies else judgement.score_strict),
        **({} if judgement.undeclared is None else {"extraction_error": judgement.undeclared.reasoning}),
    }


def build_result(
    summary: Mapping[str, Any],
    *,
    id: str | None,
    task_id: str,
    judge: Judge,
    judged_with: Mapping[str, Any],
    model: str,
    prompts: Iterable[str],
    answer_sha256: str,
    tool_version: str,
    usage: Usage,
    timing: Mapping[str, Any],
    pages: Iterable[Mapping[str, Any]],
    calls: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the complete result.

    ``summary`` is a ``get_summary()`` with ``status``, ``score`` and ``score_strict``. ``judged_with`` contains
    ``judge`` (model, reasoning effort and temperature) and other keys about the run. ``id`` is None if the result is
    not stored. ``timing`` is in seconds by stage. ``pages`` are entries as returned by ``page_json``.
    ``calls`` identifies the record of model calls; None if there is none.
    """
    result = {
        "schema_version": RESULT_SCHEMA_VERSION,
        "id": id,
        "task_id": task_id,
        **summary,
        **judged_with,
        "script": {"name": judge.name, "version": judge.version, "kind": judge.kind.value, "sha256": judge.sha256},
        "eval_script_sha256": judge.sha256,
        "model": model,
        "prompts": sorted(set(prompts)),
        "answer_sha256": answer_sha256,
        "tool_version": tool_version,
        "usage": asdict(usage),
        "timing": dict(timing),
        "pages": [dict(page) for page in pages],
        "calls": None if calls is None else dict(calls),
    }
    if model == LEXICAL:
        result["notice"] = LEXICAL_NOTICE
    return result


def score_json(score: Score | None) -> dict[str, Any]:
    """Return a score in the format of results. None, if nothing applies, has a ``reason`` instead of numbers."""
    if score is None:
        return {"value": None, "low": None, "high": None, "reason": NOTHING_APPLIES}
    return {"value": score.value, "low": score.low, "high": score.high}


def page_json(capture: Capture) -> dict[str, Any]:
    """Return the entry of a cited page.

    ``sha256`` is that of the page text, or of its first stored body if it has no text. ``bodies`` maps the role of
    every stored body to its SHA-256.
    """
    blobs = capture.blobs
    shown_body = blobs.get("text") or next(iter(blobs.values()), None)
    return {
        "url": capture.url,
        "page_id": capture.id,
        "outcome": capture.outcome.value,
        "kind": capture.kind.value,
        "sha256": shown_body and shown_body.sha256,
        "captured_at": capture.captured_at.isoformat(),
        "final_url": capture.final_url,
        "http_status": capture.http_status,
        "detail": capture.detail,
        "gone": capture.gone,
        "source": capture.source.value,
        "provenance": dict(capture.provenance),
        "owner": capture.owner,
        "bodies": {role: blob.sha256 for role, blob in blobs.items()},
    }


def _info(record: ExtractionRecord) -> dict[str, Any]:
    """Return one extraction under its name, as in the public summary; a failed one has an ``error``."""
    if record.value is None:
        return {record.name: {"error": record.error}}
    return {record.name: record.value}
