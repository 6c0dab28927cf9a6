from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.labels import (
    HumanDecision,
    Label,
    LabelledPage,
    LabelsUnreadable,
    RecordedVerdict,
    label_from_leaf,
    label_line,
    parse_labels,
    read_labels,
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


def test_check_by_code_has_no_claim() -> None:
    label = settled(claim=None, sources=None, model=None, prompt=None)
    assert (label.claim, label.sources, label.pages) == (None, None, ())


TEXT = st.text(max_size=20)
NAMES = st.one_of(st.none(), TEXT)
LABELS = st.builds(
    Label,
    human=st.sampled_from(HumanDecision),
    claim=NAMES,
    sources=st.one_of(st.none(), st.lists(TEXT, max_size=2).map(tuple)),
    instruction=NAMES,
    pages=st.lists(
        st.builds(LabelledPage, url=TEXT, page_id=NAMES, sha256=st.sampled_from([None, DIGEST]), text=NAMES), max_size=2
    ).map(tuple),
    task=TEXT,
    answer=TEXT,
    reviewer=TEXT,
    reason=TEXT,
    at=st.sampled_from([None, AT]),
    leaf=NAMES,
    answer_sha256=st.sampled_from([None, DIGEST]),
    judge=st.one_of(st.none(), st.builds(RecordedVerdict, outcome=st.sampled_from(Outcome), reason=NAMES, model=NAMES)),
)


@given(labels=st.lists(LABELS, min_size=1, max_size=3))
def test_written_labels_are_read_back_unchanged(labels) -> None:
    written = "".join(map(label_line, labels)).encode()
    assert parse_labels(written.split(b"\n")) == tuple(labels)


def test_label_file_has_its_sha256(tmp_path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("\ufeff" + label_line(settled()) + "\n\n")
    found = read_labels(path)
    assert found.labels == (settled(),)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_optional_fields_have_defaults_and_unknown_fields_are_ignored() -> None:
    (label,) = parse_labels([b'{"human": "unclear", "claim": "It rains", "mood": "good"}'])
    assert label == Label(human=HumanDecision.UNCLEAR, claim="It rains")


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


def test_empty_or_missing_file_is_rejected(tmp_path) -> None:
    with pytest.raises(LabelsUnreadable, match="no label"):
        parse_labels([b"", b"  "])
    with pytest.raises(LabelsUnreadable, match="cannot be read"):
        read_labels(tmp_path / "none.jsonl")


def test_list_of_problems_is_truncated() -> None:
    with pytest.raises(LabelsUnreadable) as refused:
        parse_labels([json.dumps({"n": n}).encode() for n in range(100)])
    assert len(refused.value.problems) == 20
