from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from judges.analysis.labels import (
    HumanDecision,
    Label,
    LabelledPage,
    LabelsUnreadable,
    RecordedVerdict,
    label_from_leaf,
    label_line,
    parse_labels,
)
from rubrics.verdict import Outcome

DIGEST = hashlib.sha256(b"a page").hexdigest()
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
LEAF: dict = {
    "id": "price",
    "claim": "It costs 410 crowns",
    "sources": ["https://a.example/x/?utm_source=y", "https://b.example/gone"],
    "instruction": "in crowns",
    "outcome": "passed",
    "reason": None,
    "model": "gpt-6-luna",
    "prompt": "verify_page@1",
}
RESULT = {
    "id": "res_1",
    "task_id": "gauges",
    "agent_name": "otter",
    "answer_name": "answer_1.md",
    "answer_sha256": DIGEST,
    "eval_breakdown": [{"info": [], "verification_tree": {"id": "root", "desc": "What does it cost?", "children": []}}],
    "pages": [{"url": "https://a.example/x", "page_id": "page_1", "sha256": DIGEST, "bodies": {"text": DIGEST}}],
}


def settled(**changes) -> Label:
    decision: dict = {
        "human": HumanDecision.FAILED,
        "reviewer": "Ada",
        "reason": "It says 430.",
        "at": AT,
        "answer": "410!",
    }
    return label_from_leaf(RESULT, {**LEAF, **changes}, key="price", **decision)


def test_label_contains_everything_another_judge_needs() -> None:
    label = settled()

    assert (label.claim, label.sources, label.instruction) == (LEAF["claim"], tuple(LEAF["sources"]), "in crowns")
    assert (label.task, label.answer, label.human) == ("What does it cost?", "410!", HumanDecision.FAILED)
    assert label.judge == RecordedVerdict(outcome=Outcome.PASSED, model="gpt-6-luna", prompt="verify_page@1")
    # The first URL is matched by key. A page that was never captured has only its URL.
    assert label.pages == (
        LabelledPage(url="https://a.example/x/?utm_source=y", page_id="page_1", sha256=DIGEST),
        LabelledPage(url="https://b.example/gone"),
    )


def test_every_invalid_line_is_reported_with_its_problem() -> None:
    lines = [
        label_line(settled()).encode(),
        b"{}",
        b"[1]",
        b'{"human": "yes", "claim": "x"}',
        b'{"human": "passed", "claim": "x", "at": "2026-01-01T00:00:00"}',
        b'{"human": "passed", "claim": "x", "label_version": 2}',
        b"\xff\xfe",
    ]
    with pytest.raises(LabelsUnreadable) as refused:
        parse_labels(lines)
    assert [problem.partition(":")[0] for problem in refused.value.problems] == [f"line {n}" for n in range(2, 8)]
    assert "human" in refused.value.problems[0]
    assert "timezone" in refused.value.problems[3]
