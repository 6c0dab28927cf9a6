"""Evaluation log of Inspect AI (https://inspect.aisi.org.uk/eval-logs.html), version 2 as JSON.

A task becomes a sample, the answers of an agent become the epochs of the sample, and the agent becomes the evaluated
model. Inspect has no scores with bounds: each sample has the scores ``final_score``, ``score_low`` and ``score_high``,
and the explanation lists what was not judged. The whole result, with tree, votes, quotes and pages, is in the metadata.

Ids are derived from the results: other results get other ids, and exporting the same results again gives the same log.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any, Final

from app.agent_summary import score_of, seconds_of, usage_of
from app.features.interop.exported_results import ExportedResult
from rubrics.result_fields import leaves_of
from rubrics.scoring import bounded_score
from rubrics.verdict import Outcome, Usage

LOG_VERSION: Final = 2
SCORER: Final = "assay"
SCORES: Final = ("final_score", "score_low", "score_high")
TASK: Final = "assay"
_ID_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ID_CHARS: Final = 22


def file_name(log: Mapping[str, Any]) -> str:
    """Return the name under which ``inspect view`` lists a log: ``<created>_<task>_<task id>.json``."""
    evaluated = log["eval"]
    words = (evaluated["created"], evaluated["task"], evaluated["task_id"])
    return "_".join(re.sub(r"[^A-Za-z0-9+.-]", "-", word) for word in words) + ".json"


def inspect_log(agent: str, results: Sequence[ExportedResult], *, tool_version: str, now: datetime) -> dict[str, Any]:
    """Return the log of one agent's results. There must be at least one result."""
    content = _digest(agent, [(exported.run, exported.answer_name, exported.result) for exported in results])
    samples = _samples(agent, results, content)
    created_times = sorted(exported.created_at for exported in results if exported.created_at is not None)
    created, ended = (created_times[0], created_times[-1]) if created_times else (now, now)
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    return {
        "version": LOG_VERSION,
        "status": "success",
        "eval": {
            "run_id": _id("run", content),
            "eval_id": _id("eval", content),
            "created": _timestamp(created),
            "task": TASK,
            "task_id": _id("task", content),
            "task_version": 0,
            "task_attribs": {},
            "task_args": {},
            "dataset": {"name": "assay", "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": agent,
            "model_args": {},
            "config": {"epochs": max((sample["epoch"] for sample in samples), default=1)},
            "packages": {"assay": tool_version},
            "scorers": [{"name": SCORER, "metrics": [{"name": "mean"}]}],
            "metadata": {"judges": sorted({_judge_model(exported.result) for exported in results})},
        },
        "plan": {"name": "plan", "steps": [{"solver": "judged_answer", "params": {}}], "config": {}},
        "results": _results(samples),
        "stats": {
            "started_at": _timestamp(created),
            "completed_at": _timestamp(ended),
            "model_usage": _usage_by_model(results),
        },
        "samples": samples,
    }


def _samples(agent: str, results: Sequence[ExportedResult], content: str) -> list[dict[str, Any]]:
    epochs: dict[str, int] = defaultdict(int)
    samples = []
    for exported in results:
        epochs[exported.task_id] += 1
        epoch = epochs[exported.task_id]
        uuid = _id("sample", content, exported.task_id, epoch)
        samples.append({"uuid": uuid, **_sample(agent, exported, epoch)})
    return samples


def _sample(agent: str, exported: ExportedResult, epoch: int) -> dict[str, Any]:
    result, task = exported.result, _task_text(exported.result)
    message = {"role": "assistant", "content": exported.answer or "", "source": "generate"}
    final = float(result["final_score"])
    bounds = score_of(result) or bounded_score(final, final)
    values = dict(zip(SCORES, (final, bounds.low, bounds.high), strict=True))
    return {
        "id": exported.task_id,
        "epoch": epoch,
        "input": task,
        "target": "",
        "messages": [{"role": "user", "content": task, "source": "input"}, message],
        "output": {"model": agent, "choices": [{"message": message, "stop_reason": "stop"}]},
        "scores": {
            name: {"value": value, "answer": exported.answer_name, "explanation": _explanation(result), "metadata": {}}
            for name, value in values.items()
        },
        "metadata": {"run": exported.run, "answer_name": exported.answer_name, "result": dict(result)},
        "store": {},
        "events": [],
        "model_usage": {_judge_model(result): _usage(usage_of(result))},
        "total_time": seconds_of(result),
        "attachments": {},
    }


def _results(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "total_samples": len(samples),
        "completed_samples": len(samples),
        "scores": [
            {
                "name": name,
                "scorer": SCORER,
                "scored_samples": len(samples),
                "unscored_samples": 0,
                "params": {},
                "metrics": {
                    "mean": {
                        "name": "mean",
                        "value": fmean(sample["scores"][name]["value"] for sample in samples),
                        "params": {},
                    }
                },
            }
            for name in SCORES
            if samples
        ],
    }


def _explanation(result: Mapping[str, Any]) -> str:
    """Return the leaves that did not pass, one per line."""
    lines = [
        f"{leaf.get('id')}: {leaf.get('outcome') or leaf.get('status')}"
        + (f" ({leaf['reason']})" if leaf.get("reason") else "")
        for leaf in leaves_of(result)
        if (leaf.get("outcome") or leaf.get("status")) != Outcome.PASSED
    ]
    head = "every leaf passed" if not lines else "not passed:"
    open_ = [] if result.get("status", "complete") == "complete" else ["not completely judged; see the bounds"]
    return "\n".join([*open_, head, *lines])


def _task_text(result: Mapping[str, Any]) -> str:
    parts = result.get("eval_breakdown") or ()
    return str(parts[0]["verification_tree"].get("desc") or "") if parts else ""


def _judge_model(result: Mapping[str, Any]) -> str:
    return str(result.get("model") or result.get("judge_model") or "unknown")


def _usage_by_model(results: Sequence[ExportedResult]) -> dict[str, Any]:
    totals: dict[str, Usage] = defaultdict(Usage)
    for exported in results:
        totals[_judge_model(exported.result)] += usage_of(exported.result)
    return {model: _usage(usage) for model, usage in totals.items()}


def _usage(usage: Usage) -> dict[str, Any]:
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {**tokens, "total_tokens": usage.input_tokens + usage.output_tokens, "total_cost": usage.usd}


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _id(*parts: object) -> str:
    """Return an id in Inspect's format: 22 letters and digits without look-alikes."""
    number, letters = int(_digest(*parts), 16), []
    for _ in range(_ID_CHARS):
        number, digit = divmod(number, len(_ID_ALPHABET))
        letters.append(_ID_ALPHABET[digit])
    return "".join(letters)


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
