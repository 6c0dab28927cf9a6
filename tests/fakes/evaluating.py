"""Evaluation without judges, for tests of the code around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from answers.submission import Answer
from app.progress import Progress, ProgressCallback, Stage
from app.storage.records import Job


def result_json(job: Job, answer: Answer, result_id: str, *, score: float = 1.0) -> dict[str, Any]:
    """Return a small result with one leaf, in the format of the contract."""
    usage = {"calls": 0, "cached_calls": 0, "input_tokens": 0, "output_tokens": 0, "usd": 0.0}
    known = {"value": score, "low": score, "high": score}
    status = "passed" if score == 1.0 else "failed"
    leaf = {
        "id": "leaf",
        "desc": "The only claim",
        "critical": False,
        "score": score,
        "status": status,
        "strategy": "parallel",
        "children": [],
        "weight": 1.0,
        "outcome": status,
        "reason": None,
        "reasoning": "because",
        "sources": None,
        "votes": [],
        "quotes": [],
        "blocked_by": None,
    }
    root = {**leaf, "id": "root", "desc": "Everything", "children": [leaf]}
    return {
        "schema_version": 2,
        "id": result_id,
        "task_id": job.task_id,
        "agent_name": job.agent,
        "answer_name": answer.name,
        "status": "complete",
        "score": known,
        "score_strict": known,
        "final_score": score,
        "judge_model": "scripted",
        "extract_model": "scripted",
        "eval_breakdown": [{"info": [], "verification_tree": root}],
        "tree_statistics": {"depth": 1, "total_nodes": 2, "leaf_nodes": 1},
        "judge": {"model": "scripted", "reasoning_effort": None, "temperature": None},
        "script": {"name": "scripted", "version": "1", "sha256": None},
        "eval_script_sha256": None,
        "model": "scripted",
        "prompts": [],
        "answer_sha256": answer.sha256,
        "tool_version": "0",
        "usage": usage,
        "timing": {"total_s": 0.5},
        "pages": [],
    }


class ScriptedEvaluation:
    """Scripted ``EvaluateJob``: it waits for a gate, raises, or returns a result."""

    def __init__(
        self,
        *,
        gate: asyncio.Event | None = None,
        error: Callable[[int], BaseException | None] = lambda nth: None,
        score: Callable[[Answer], float] = lambda answer: 1.0,
        change: Callable[[dict[str, Any]], None] = lambda result: None,
    ) -> None:
        """``error`` is called before each run with the number of earlier runs."""
        self._gate = gate
        self._error = error
        self._score = score
        self._change = change
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.running = asyncio.Event()
        self.stopped = asyncio.Event()

    async def __call__(self, job: Job, answer: Answer, *, result_id: str, progress: ProgressCallback) -> dict[str, Any]:
        nth = len(self.started)
        self.started.append(job.id)
        self.running.set()
        progress(Progress(stage=Stage.CAPTURING, pages_total=2))
        try:
            if self._gate is not None:
                await self._gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job.id)
            self.stopped.set()
            raise
        error = self._error(nth)
        if error is not None:
            raise error
        progress(Progress(stage=Stage.JUDGING, pages_done=2, pages_total=2, leaves_done=1, leaves_total=1))
        result = result_json(job, answer, result_id, score=self._score(answer))
        self._change(result)
        return result
