from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.row_files import read_source_step
from tests.fakes.multimodal import picture, source_row


def read(**changes: Any):
    return read_source_step(source_row("t1", 2, "TYPE", "rome") | changes, place="file, row 7")


def test_nested_json_of_a_row_is_decoded():
    step = read()
    assert (step.task_id, step.step, step.op, step.value) == ("t1", 2, "TYPE", "rome")
    [positive] = step.positives
    assert (positive.id, positive.tag, positive.box) == ("110", "a", "10,40,80,20")
    assert len(step.negatives) == 7


def test_history_is_the_correct_earlier_actions():
    assert read().history == ("[link]  Step 0 -> CLICK", "[link]  Step 1 -> CLICK")


def test_candidates_can_be_objects():
    plain = [json.loads(pos_candidate) for pos_candidate in source_row("t1", 2, "TYPE")["pos_candidates"]]
    for one in plain:
        one["attributes"] = json.loads(one["attributes"])
    assert read(pos_candidates=plain).positives == read().positives


@pytest.mark.parametrize(
    "written",
    [
        {"bytes": picture(), "path": None},
        {"bytes": base64.b64encode(picture()).decode()},
        base64.b64encode(picture()).decode(),
        "data:image/png;base64," + base64.b64encode(picture()).decode(),
        picture(),
    ],
)
def test_screenshot_can_have_several_forms(written: object):
    assert read(screenshot=written).screenshot == picture()


@pytest.mark.parametrize("written", [None, {"bytes": None, "path": "x.png"}, "", b""])
def test_screenshot_can_be_missing(written: object):
    assert read(screenshot=written).screenshot is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("operation", "CLICK"),
        ("operation", "[]"),
        ("operation", '{"value": "x"}'),
        ("target_action_index", "x"),
        ("annotation_id", None),
        ("cleaned_html", None),
        ("pos_candidates", ["{"]),
        ("pos_candidates", [json.dumps({"backend_node_id": 5})]),
        ("neg_candidates", [json.dumps({"backend_node_id": "5", "attributes": "["})]),
        ("neg_candidates", 5),
        ("screenshot", "not base64!"),
        ("screenshot", 5),
        ("action_reprs", [None]),
    ],
)
def test_invalid_field_is_named_with_its_row(field: str, value: object):
    with pytest.raises(DataUnreadable) as error:
        read(**{"raw_html": "", field: value})
    assert str(error.value).startswith(f"file, row 7, field {field}")
