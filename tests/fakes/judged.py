"""Results in the format of a judge, built from a short description: real rubrics and scoring, fictitious verdicts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from answers.submission import Answer
from app.progress import ProgressCallback
from app.storage.records import Job
from rubrics.rubric import Rubric
from rubrics.scoring import compatible_score, score, score_strict, tree_score
from rubrics.tree import RubricNode, Strategy
from rubrics.tree_json import tree_json
from rubrics.verdict import Claim, Outcome, Quote, Reason, Usage, Verdict, Vote
from tests.fakes.evaluating import result_json

PASSED, FAILED, NOT_JUDGED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_JUDGED, Outcome.SKIPPED
_REASONS = {FAILED: Reason.REFUTED, NOT_JUDGED: Reason.CAPTURE_BLOCKED, SKIPPED: Reason.GATED}


def leaf(
    name: str,
    outcome: Outcome = PASSED,
    *,
    claim: str | None = None,
    desc: str = "",
    critical: bool = False,
    weight: float = 1.0,
    sources: Sequence[str] | None = None,
    quotes: Sequence[Quote] = (),
    blocked_by: str | None = None,
    reasoning: str = "because the page says so",
    votes: Sequence[bool | None] = (True, True),
    signals: Sequence[str] = (),
    model: str = "scripted",
    prompt: str = "verify_page@1",
) -> RubricNode:
    """Return a leaf judged by a model, or without ``claim`` a leaf decided by code."""
    verdict = Verdict(
        outcome=outcome,
        reason=_REASONS.get(outcome),
        reasoning=reasoning,
        votes=() if claim is None else tuple(Vote(result=vote, model=model) for vote in votes),
        quotes=tuple(quotes),
        prompt=None if claim is None else prompt,
        model=None if claim is None else model,
        usage=Usage(calls=2, input_tokens=900, output_tokens=40, usd=0.0031) if claim else Usage(),
        blocked_by=blocked_by,
        grounded=bool(quotes) if outcome is PASSED and claim else None,
        signals=tuple(signals),
    )
    urls = None if sources is None else tuple(sources)
    return RubricNode(
        id=name,
        desc=desc or claim or f"About {name}",
        critical=critical,
        weight=weight,
        claim=None if claim is None else Claim(text=claim, sources=urls),
        check=outcome is PASSED if claim is None else None,
        verdict=verdict,
    )


def group(
    name: str, *children: RubricNode, weight: float = 1.0, critical: bool = False, sequential: bool = False
) -> RubricNode:
    """Return an inner node; the ids of its children are prefixed with its own id."""
    strategy = Strategy.SEQUENTIAL if sequential else Strategy.PARALLEL
    node = RubricNode(id=name, desc=f"All of {name}", weight=weight, critical=critical, strategy=strategy)
    node.children = list(children)
    return node


def rubric_of(*children: RubricNode, task_id: str = "task", sequential: bool = False) -> Rubric:
    """Return a rubric with these nodes below its root; ids become paths."""
    strategy = Strategy.SEQUENTIAL if sequential else Strategy.PARALLEL
    rubric = Rubric(task_id, f"What {task_id} asks for", strategy)
    for child in children:
        _hang(rubric, rubric.root, child, "")
    return rubric


def _hang(rubric: Rubric, parent: RubricNode, node: RubricNode, prefix: str) -> None:
    below, node.children, node.id = node.children, [], f"{prefix}{node.id}"
    rubric.add(parent, node)
    for child in below:
        _hang(rubric, node, child, f"{node.id}/")


def judged_fields(rubric: Rubric) -> dict[str, Any]:
    """Return the fields of a result that follow from its rubric."""
    value, strict = score(rubric), score_strict(rubric)
    leaves = list(rubric.leaves())
    unknown = any(each.verdict and each.verdict.outcome is NOT_JUDGED for each in leaves)
    spent: Usage = sum((each.verdict.usage for each in leaves if each.verdict), start=Usage())
    return {
        "task_id": rubric.task_id,
        "status": "incomplete" if unknown else "complete",
        "score": {"value": value.value, "low": value.low, "high": value.high},
        "score_strict": {"value": strict.value, "low": strict.low, "high": strict.high},
        "final_score": tree_score(rubric.root, lambda each: compatible_score(each.verdict).score),
        "eval_breakdown": [{"info": [{"no_info": "No information recorded"}], "verification_tree": tree_json(rubric)}],
        "usage": {
            "calls": spent.calls,
            "cached_calls": 0,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "usd": spent.usd,
        },
    }


_numbers = itertools.count(1)


def result_of(rubric: Rubric, *, pages: Sequence[Mapping[str, Any]] = (), **changes: Any) -> dict[str, Any]:
    """Return a complete result, independent of any service."""
    fixed = {
        "schema_version": 2,
        "id": f"res_{next(_numbers)}",
        "agent_name": "agent",
        "answer_name": "answer_1.md",
        "judge_model": "scripted",
        "extract_model": "scripted",
        "judge": {"model": "scripted", "reasoning_effort": None, "temperature": None},
        "script": {"name": "scripted", "version": "1", "sha256": "a" * 64},
        "eval_script_sha256": "a" * 64,
        "model": "scripted",
        "prompts": ["verify_page@1"],
        "answer_sha256": "b" * 64,
        "tool_version": "0",
        "timing": {"total_s": 1.0},
        "pages": list(pages),
    }
    return {**fixed, **judged_fields(rubric), **changes}


def page_entry(
    url: str, *, page_id: str | None = None, outcome: str = "ok", sha256: str | None = None
) -> dict[str, Any]:
    """Return a page entry of a result."""
    return {
        "url": url,
        "page_id": page_id,
        "outcome": outcome,
        "sha256": sha256 or "c" * 64,
        "captured_at": "2026-01-02T03:04:05+00:00",
        "detail": "",
    }


class JudgedByText:
    """``EvaluateJob`` that gives each answer the rubric registered for its text."""

    def __init__(self) -> None:
        self._rubrics: dict[str, Callable[[], Rubric]] = {}
        self._changes: dict[str, dict[str, Any]] = {}

    def register(self, text: str, rubric: Callable[[], Rubric], **changes: Any) -> str:
        """Register the rubric for the answer ``text``, and return the text."""
        self._rubrics[text], self._changes[text] = rubric, changes
        return text

    async def __call__(self, job: Job, answer: Answer, *, result_id: str, progress: ProgressCallback) -> dict[str, Any]:
        base = result_json(job, answer, result_id)
        fields = judged_fields(self._rubrics[answer.text]())
        return {**base, **fields, "task_id": job.task_id, **self._changes[answer.text]}


def many_leaves(groups: int, each: int) -> Iterator[RubricNode]:
    """Yield ``groups`` groups of ``each`` leaves; every 7th leaf fails, every 31st was not judged."""
    number = 0
    for nth in range(groups):
        children = []
        for _ in range(each):
            number += 1
            outcome = FAILED if number % 7 == 0 else NOT_JUDGED if number % 31 == 0 else PASSED
            children.append(leaf(f"leaf{number}", outcome, claim=f"Claim number {number} holds", sources=()))
        yield group(f"part{nth}", *children, weight=1 + nth % 3)
