from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from answers.errors import InvalidSubmission
from answers.jsonl import MAX_LINE_BYTES, read_jsonl


def read(*lines: Any, agent: str | None = None):
    texts = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return read_jsonl(BytesIO(b"\n".join(texts)), agent=agent)


def line(**fields: Any) -> dict[str, Any]:
    return {"agent": "otter", "task_id": "bridge", "text": "It is old.", **fields}


def problems(*lines: Any, agent: str | None = None) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSubmission) as refused:
        read(*lines, agent=agent)
    return [(problem.path, problem.message) for problem in refused.value.problems]


def test_answers_to_one_task_form_one_submission_with_numbered_names() -> None:
    (bridge, tower) = read(line(), line(task_id="tower", name="mine"), line(text="It is new."))
    assert (bridge.agent, bridge.task_id) == ("otter", "bridge")
    assert [(answer.name, answer.text) for answer in bridge.answers] == [
        ("answer_1.md", "It is old."),
        ("answer_2.md", "It is new."),
    ]
    assert [answer.name for answer in tower.answers] == ["mine.md"]


def test_reply_of_a_provider_becomes_markdown() -> None:
    reply = {"choices": [{"message": {"content": "It is old [1]."}}], "citations": ["https://a.example/"]}
    (submission,) = read({"agent": "otter", "task_id": "bridge", "reply": reply}, line())
    assert [answer.text for answer in submission.answers] == ["It is old [[1]](https://a.example/).", "It is old."]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"text": None, "reply": "It is old."}, "line 2.reply"),
        ({"text": None, "reply": {"content": [{"type": "text", "text": 1}]}}, "line 2.reply.content.0.text"),
    ],
)
def test_invalid_reply_is_reported_with_line_and_field(fields: dict[str, Any], path: str) -> None:
    ((found, _),) = problems(line(), line(**fields))
    assert found == path


def test_supplied_pages_belong_to_their_answer_and_a_policy_forms_a_separate_submission() -> None:
    page = {"url": "https://a.example/", "text": "It is old."}
    plain, fallback = read(line(), line(evidence=[page]), line(evidence=[page], evidence_policy="fallback"))
    assert [answer.evidence for answer in plain.answers] == [(), (page,)]
    assert (fallback.evidence_policy, fallback.answers[0].evidence) == ("fallback", (page,))
    assert problems(line(evidence={"url": "x"})) == [("line 1.evidence", "is not a list of pages")]
    ((path, message),) = problems(line(evidence_policy="maybe"))
    assert (path, message) == ("line 1.evidence_policy", "is 'maybe'; use captured, fallback or supplied")


def test_different_run_model_or_metadata_forms_a_separate_submission() -> None:
    found = read(line(run="a"), line(run="b"), line(run="b", model="openai/x"), line(run="b", metadata={"n": 1}))
    assert [(one.run, one.model, dict(one.metadata)) for one in found] == [
        ("a", None, {}),
        ("b", None, {}),
        ("b", "openai/x", {}),
        ("b", None, {"n": 1}),
    ]


def test_line_without_an_agent_uses_the_given_one_and_answer_is_an_alias_of_text() -> None:
    (found,) = read({"task_id": "bridge", "answer": "Old."}, b"", b"  ", agent="otter")
    assert (found.agent, found.answers[0].text) == ("otter", "Old.")


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        (b"{", "line 2", "is not JSON"),
        (b"\xff", "line 2", "is not JSON"),
        ({"agent": "otter", "text": "x"}, "line 2.task_id", "is missing"),
        (line(text=7), "line 2.text", "is not a string"),
        (line(tesk="x"), "line 2.tesk", "is not a field"),
        (line(agent="../x"), "line 2.agent", "must be 1 to 100 letters"),
        (line(name="../../x"), "line 2.name", "must be"),
        (line(text="  "), "line 2.text", "is empty"),
    ],
)
def test_invalid_line_is_reported_with_its_location(wrong: Any, path: str, message: str) -> None:
    ((found_path, found_message), *_) = problems(line(), wrong)
    assert found_path == path
    assert message in found_message


def test_file_without_answers_and_overlong_line_are_rejected() -> None:
    assert problems(b"", b"\n") == [("", "contains no answer")]
    assert "bytes" in problems(b"x" * (MAX_LINE_BYTES + 2))[0][1]
