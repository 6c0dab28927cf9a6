from __future__ import annotations

import json
from typing import Any

import pytest

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.tilde_rows import ImagePart, api_messages, read_tilde_row, report_messages

PICTURE = "data:image/png;base64,AAAA"


def part(*, text: str | None = None, image: Any = None) -> dict[str, Any]:
    return {"type": "text" if text is not None else "image_url", "text": text, "image_url": image}


def row(**changes: Any) -> dict[str, Any]:
    return {
        "task_id": "t1",
        "split": "test_website",
        "step": 2,
        "task_description": "Do it",
        "prompt_0": [
            {"role": "system", "content": [part(text="be a navigator")]},
            {"role": "user", "content": [part(text="look"), part(image={"url": PICTURE, "detail": "high"})]},
        ],
        "prompt_1": [{"role": "user", "content": [part(text="choose")]}],
        "candidates": ["<a bnid=1></a>", "<a bnid=2></a>"],
        "target_elements": ["<a bnid=2></a>"],
        "target_op": "CLICK",
        "target_op_value": None,
        "website": "inn",
        "domain": "Travel",
        "subdomain": "Hotel",
        "is_valid": True,
    } | changes


def read(**changes: Any):
    return read_tilde_row(row(**changes), place="file, row 0", position=0)


def test_row_is_read_completely():
    step = read()
    assert (step.id, step.op, step.value, step.valid) == ("t1:2", "CLICK", "", True)
    assert step.first_turns[1].pictures == (ImagePart(url=PICTURE, detail="high"),)
    assert step.second_turns[0].text == "choose"


@pytest.mark.parametrize(
    ("written", "valid"), [(True, True), (False, False), ("True", True), ("false", False), ("1", True), (0, False)]
)
def test_is_valid_can_be_a_boolean_or_text(written: object, valid: bool):
    assert read(is_valid=written).valid is valid


def test_lists_and_prompts_can_be_json_text():
    plain = row()
    names = ("candidates", "target_elements", "prompt_0", "prompt_1")
    assert read(**{name: json.dumps(plain[name]) for name in names}) == read()


def test_targets_can_be_empty_or_many():
    assert read(target_elements=[]).targets == ()
    assert read(target_elements=None).targets == ()
    assert len(read(target_elements=[f"<a bnid={n}>" for n in range(60)]).targets) == 60


def test_boxes_are_optional():
    assert read().boxes == {}
    assert read(boxes='{"1": "1,2,3,4"}').boxes == {"1": "1,2,3,4"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", None),
        ("task_id", ""),
        ("task_id", 5),
        ("step", "two"),
        ("step", True),
        ("step", -1),
        ("step", None),
        ("candidates", "not json"),
        ("candidates", [1]),
        ("candidates", "[" * 5000),
        ("target_op", None),
        ("is_valid", "perhaps"),
        ("is_valid", None),
        ("prompt_0", []),
        ("prompt_0", [{"role": "tool", "content": "x"}]),
        ("prompt_0", [{"role": ["user"], "content": "x"}]),
        ("prompt_0", [{"role": "user", "content": []}]),
        ("prompt_0", [{"role": "user", "content": [{"text": None, "image_url": None}]}]),
        ("prompt_1", [{"role": "user", "content": [{"text": "a", "image_url": "b"}]}]),
        ("boxes", "[]"),
        ("boxes", '{"1": 5}'),
    ],
)
def test_invalid_field_is_named_with_its_row(field: str, value: object):
    with pytest.raises(DataUnreadable) as error:
        read(**{field: value})
    assert str(error.value).startswith(f"file, row 0, field {field}")
    assert len(str(error.value)) < 300


def test_missing_field_is_named():
    incomplete = row()
    del incomplete["is_valid"]
    with pytest.raises(DataUnreadable, match="field is_valid: is missing"):
        read_tilde_row(incomplete, place="file, row 0", position=0)


def test_prompts_are_not_needed_for_scoring():
    scored_only = {name: value for name, value in row().items() if not name.startswith("prompt")}
    assert read_tilde_row(scored_only, place="p", position=0, prompts=False).first_turns == ()


def test_unused_keys_of_parts_are_not_sent():
    system, user = api_messages(read().first_turns)
    assert system == {"role": "system", "content": "be a navigator"}
    assert user["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PICTURE, "detail": "high"}},
    ]


@pytest.mark.parametrize("url", [PICTURE, "https://pictures.example/x.png", 'data:image/png;base64,A"}],"x":1'])
def test_picture_is_sent_exactly_as_given(url: str):
    [message] = api_messages(read(prompt_0=[{"role": "user", "content": [part(image=url)]}]).first_turns)
    assert json.loads(json.dumps(message["content"]))[0]["image_url"] == {"url": url}


def test_report_replaces_a_picture_by_its_digest():
    [_, user] = report_messages(read().first_turns)
    assert PICTURE not in user["text"]
    assert "sha256" in user["text"]
