from __future__ import annotations

import pytest

from judges.suites.errors import SuiteError
from judges.suites.mind2web.page import ShownPage
from judges.suites.mind2web.questions import (
    Wording,
    demonstrations,
    question,
    read_template,
    shipped_template,
)
from judges.suites.mind2web.tournament import parse_llm

SHOWN = ShownPage(context="<html> <a id=0>x</a> </html>", options=(("7", "<a id=0>x</a>"), ("9", "<b id=1 />")))
WORDING = Wording(ask="Do this:", choose="Which one?", none="None of the above")


def test_question_has_its_parts_in_order():
    assert question(SHOWN, task="Find x", history=list("abcdefg"), wording=WORDING) == (
        "Do this:\nTask: Find x\nPrevious actions:\nc\nd\ne\nf\ng\nWhich one?\n\n"
        "A. None of the above\nB. <a id=0>x</a>\nC. <b id=1 />\n"
    )
    assert "Previous actions:\nNone\nWhich" in question(SHOWN, task="t", history=(), wording=WORDING)


def test_shipped_template_has_the_published_form():
    template = shipped_template()
    assert template.ref == "mindact@1"
    assert [role for role, _ in template.messages] == ["system", *["user", "assistant"] * 3, "user"]
    assert template.messages[-1][1] == ""
    answers = [parse_llm(answer) for _, answer in demonstrations(template)]
    assert [(answer.letter, answer.op_string) for answer in answers] == [
        ("C", "SELECT Bicycle"),
        ("A", " "),
        ("D", "CLICK "),
    ]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("no json", "not valid JSON"),
        ('{"sytem": "x"}', "unknown key 'sytem': use answer_instructions, examples"),
        ('{"examples": "x"}', "examples: must be a list"),
        ('{"examples": [{"user": "x"}]}', "examples.0: must have role and content, user and assistant"),
        ('[{"role": "robot", "content": "x"}]', "message 0: must be an object with a role"),
    ],
)
def test_invalid_template_is_rejected(written: str, message: str):
    with pytest.raises(SuiteError, match=message):
        read_template(written, name="t.json", ref="t")
