from __future__ import annotations

from typing import Any

import pytest

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.tilde_rows import ImagePart, api_messages, read_tilde_row

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
    ("field", "value"),
    [
        ("task_id", None),
        ("step", "two"),
        ("step", -1),
        ("candidates", "not json"),
        ("is_valid", "perhaps"),
        ("prompt_0", [{"role": ["user"], "content": "x"}]),
        ("prompt_0", [{"role": "user", "content": [{"text": None, "image_url": None}]}]),
        ("boxes", '{"1": 5}'),
    ],
)
def test_invalid_field_is_named_with_its_row(field: str, value: object):
    with pytest.raises(DataUnreadable) as error:
        read(**{field: value})
    assert str(error.value).startswith(f"file, row 0, field {field}")
    assert len(str(error.value)) < 300


def test_unused_keys_of_parts_are_not_sent():
    system, user = api_messages(read().first_turns)
    assert system == {"role": "system", "content": "be a navigator"}
    assert user["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PICTURE, "detail": "high"}},
    ]
