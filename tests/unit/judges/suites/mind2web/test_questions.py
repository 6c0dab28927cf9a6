from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.suites.errors import TemplateUnusable
from judges.suites.mind2web.page import ShownPage
from judges.suites.mind2web.questions import (
    Wording,
    demonstrations,
    last_message,
    load_template,
    parse_demonstration,
    question,
    question_text,
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


def test_page_precedes_the_question():
    assert last_message("<html/>", "Do this") == "'''\n<html/>\n'''\n\nDo this"


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


@pytest.mark.parametrize("place", range(3))
def test_shipped_demonstrations_have_the_layout_of_questions(place: int):
    demonstration, _ = demonstrations(shipped_template())[place]
    found = parse_demonstration(demonstration)
    assert found is not None
    options = [line.partition(". ")[2] for line in found["options"].strip("\n").split("\n")]
    assert len(options) == 3
    assert all(len(option.split()) <= 10 for option in options)
    history = [] if found["history"] == "None" else found["history"].split("\n")
    asked = question_text(options, task=found["task"], history=history, wording=shipped_template().wording)
    assert last_message(found["page"], asked).rstrip("\n") == demonstration


def published_form(ask: str, choose: str) -> list[dict[str, str]]:
    """Return a template in the published form, with one demonstration and different wording."""
    demonstration = (
        f"'''\n<html> x </html>\n'''\n\n{ask}\nTask: t\nPrevious actions:\nNone\n{choose}\n\nA. Not here\nB. <a>"
    )
    return [
        {"role": "system", "content": "You act."},
        {"role": "user", "content": demonstration},
        {"role": "assistant", "content": "Answer: B.\nAction: CLICK"},
        {"role": "user", "content": ""},
    ]


def test_custom_template_defines_its_wording(tmp_path: Path):
    file = tmp_path / "own.json"
    file.write_text(json.dumps(published_form("Go on with:", "Now?")))
    template = load_template(file)
    assert template.wording == Wording(ask="Go on with:", choose="Now?", none="Not here")
    assert template.ref.startswith("own.json@sha256:")
    filled = template.fill("the question")
    assert [message["role"] for message in filled] == ["system", "user", "assistant", "user"]
    assert filled[-1]["content"] == "the question"


def test_template_without_a_demonstration_uses_the_shipped_wording():
    text = json.dumps([{"role": "user", "content": "Note: be brief.\n"}])
    template = read_template(text, name="t", ref="t")
    assert template.wording == shipped_template().wording
    assert template.fill("Q")[-1]["content"] == "Note: be brief.\nQ"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("no json", "not valid JSON"),
        ("{}", "must be a JSON list"),
        ('{"sytem": "x"}', "unknown key 'sytem': use answer_instructions, examples"),
        ('{"system": 5}', "system: must be a string"),
        ('{"examples": "x"}', "examples: must be a list"),
        ('{"examples": [5]}', "examples.0: must be an object of strings"),
        ('{"examples": [{"task": "t", "choices": ["x"], "answer": "A"}]}', "field choices: must be a string"),
        ('{"examples": [{"user": "x"}]}', "examples.0: must have role and content, user and assistant"),
        ("[]", "must be a JSON list"),
        ('[{"role": "user", "content": ["x"]}]', "message 0: must be an object with a role"),
        ('[{"role": "robot", "content": "x"}]', "message 0: must be an object with a role"),
        ('[{"role": ["user"], "content": "x"}]', "message 0: must be an object with a role"),
        ('[{"role": "assistant", "content": "x"}]', "its role must be user"),
    ],
)
def test_invalid_template_is_rejected(written: str, message: str):
    with pytest.raises(TemplateUnusable, match=message):
        read_template(written, name="t.json", ref="t")


def test_unreadable_template_is_named_in_the_error(tmp_path: Path):
    with pytest.raises(TemplateUnusable, match=r"nowhere.json cannot be read"):
        load_template(tmp_path / "nowhere.json")
    (tmp_path / "latin.json").write_bytes(b'["\xe9"]')
    with pytest.raises(TemplateUnusable, match="UTF-8"):
        load_template(tmp_path / "latin.json")


def test_object_template_has_a_system_message_examples_and_a_last_message():
    examples = [
        {"user": "Q1", "assistant": "Answer: B."},
        {"role": "user", "content": "Q2"},
        {"role": "assistant", "content": "Answer: C."},
        {"task": "t", "context": "<a/>", "question": "Which?", "choices": "A. x", "answer": "Answer: A."},
    ]
    written = {"system": "Act.", "examples": examples, "template": "Before\n{question}\nafter {other}"}
    template = read_template(json.dumps(written), name="t", ref="t")
    assert [role for role, _ in template.messages] == ["system", *["user", "assistant"] * 3, "user"]
    assert template.messages[5][1] == 'Task: t\n\nPrevious actions:\nNone\n\n"""\n<a/>\n"""\n\nWhich?\n\nA. x'
    assert template.fill("{other} Q")[-1]["content"] == "Before\n{other} Q\nafter {other}"
    assert read_template('{"system": "Act."}', name="t", ref="t").fill("Q")[-1]["content"] == "Q"
