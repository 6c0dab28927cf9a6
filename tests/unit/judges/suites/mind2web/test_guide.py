"""Protocol of the integration guide (contracts/mind2web.md, 10.1)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from judges.suites.errors import PageUnusable
from judges.suites.mind2web.data import Candidate, Step
from judges.suites.mind2web.questions import demonstrations, read_template
from judges.suites.mind2web.step_player import (
    guide_messages,
    guide_question,
    keep_candidates,
    operation_f1,
    parse_guide,
    parse_reply,
    shipped_guide_template,
)
from tests.fakes.mind2web import items, page


def step(**changes: Any) -> Step:
    made = Step(
        place="file, task T, action 1",
        position=1,
        task_id="T",
        action_uid="b",
        number=1,
        website="w",
        domain="d",
        subdomain="s",
        task="Book a ferry",
        history=("[button]  Menu -> CLICK",),
        page=page(items("click", at=3)),
        op="CLICK",
        value="",
        positives=(Candidate(id="3"),),
        negatives=tuple(Candidate(id=id) for id in ("1", "2", "4", "5")),
    )
    return replace(made, **changes)


def ranked(id: str, rank: int | None) -> Candidate:
    return Candidate(id=id, rank=rank)


@pytest.mark.parametrize(
    ("raw", "answer", "action", "value"),
    [
        ("Answer: B.\nAction: CLICK", "B", "CLICK", None),
        ("I think so.\nANSWER - ab\naction:press\nvalue : none", "AB", "CLICK", ""),
        ("answer:\n c", "C", None, None),
        ("Answer: (B)\nAction: *CLICK*", None, "", None),
        ("Answer: **B**", None, None, None),
        ("The answer is B", None, None, None),
        ("Answer: B\nAction: select_option\nValue:\n 'two words' ", "B", "SELECT", "two words"),
        ("Action: SELECT OPTIONAL\nValue: NA", None, "SELECT", ""),
        ("Action: input\nValue: n/a", None, "TYPE", ""),
        ("Action: ENTER\nValue: N/A.", None, "TYPE", "N/A."),
        ("Action: choose\nValue: ''x''", None, "SELECT", "'x'"),
        ("Action: OPEN\nValue: \"half'", None, "CLICK", "\"half'"),
        ("Action: TAP", None, "TAP", None),
        ("Action: CLICK now", None, "CLICKNOW", None),
        ("", None, None, None),
    ],
)
def test_reply_is_parsed_by_the_first_match_anywhere(
    raw: str, answer: str | None, action: str | None, value: str | None
):
    assert parse_reply(raw) == (answer, action, value)


def test_earlier_reading_keeps_underscores_and_reads_no_value():
    assert parse_reply("Answer: B\nAction: select_option\nValue: x", later=False) == ("B", "SELECT_OPTION", None)
    assert parse_reply("Action: SELECT OPTION", later=False).action == "SELECTOPTION"


@pytest.mark.parametrize(
    ("gold", "predicted", "f1"),
    [
        (("CLICK", None), ("CLICK", "ignored"), 1.0),
        (("CLICK", "x"), ("TYPE", "x"), 0.0),
        (("TYPE", "new york city"), ("TYPE", "New York"), 0.8),
        (("SELECT", "2"), ("SELECT", None), 0.0),
        (("SELECT", ""), ("SELECT", None), 1.0),
        (("TYPE", "it's"), ("TYPE", "it s"), 1.0),
        (("HOVER", "a"), ("HOVER", "b"), 1.0),
        ((None, None), (None, None), 0.0),
    ],
)
def test_operation_f1_of_the_later_version(
    gold: tuple[str | None, str | None], predicted: tuple[str | None, str | None], f1: float
):
    assert operation_f1(*gold, *predicted) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("positive_ranks", "kept"),
    [
        ({"3": 49}, ["3", "1", "4"]),
        ({"3": 50}, ["1", "4"]),
        ({"3": 400}, ["1", "4"]),
        ({"3": None}, ["1", "4"]),  # as any other candidate without a rank, because others have one
        ({"3": 60, "6": 7}, ["6", "1", "4"]),
    ],
)
def test_ranked_candidates_are_kept_below_top_k_and_positives_like_all_others(
    positive_ranks: dict[str, int | None], kept: list[str]
):
    one = step(
        positives=tuple(ranked(id, rank) for id, rank in positive_ranks.items()),
        negatives=(ranked("1", 0), ranked("2", 50), ranked("4", 1), ranked("5", None)),
    )
    assert [candidate.id for candidate in keep_candidates(one, 50)] == kept


def test_without_ranks_the_first_candidates_and_all_positives_are_kept():
    assert [candidate.id for candidate in keep_candidates(step(), 3)] == ["3", "1", "2"]
    several = step(positives=tuple(Candidate(id=id) for id in ("3", "4", "5")), negatives=(Candidate(id="1"),))
    assert [candidate.id for candidate in keep_candidates(several, 1)] == ["3", "4", "5"]


def test_repeated_candidate_is_shown_once():
    one = step(negatives=(Candidate(id="3"), Candidate(id="1")))
    assert [candidate.id for candidate in keep_candidates(one, 50)] == ["3", "1"]


def test_options_stand_in_document_order_after_none_of_the_above():
    candidates = [ranked("3", 7), Candidate(id="1", rank=0, score=0.98765), Candidate(id="5")]
    question = guide_question(step(), candidates, max_html_chars=6000)
    assert question.values["options"].split("\n") == [
        "A. None of the above",
        "B. <button backend_node_id=1 button> item 1 </button> (rank 0, score 0.9877)",
        "C. <button backend_node_id=3 button> blue click </button> (rank 7)",
        "D. <button backend_node_id=5 button> item 5 </button>",
    ]
    assert [question.picked(letter) for letter in ("A", "B", "C", "D", "E", "NONE", "")] == [
        None, "1", "3", "5", None, None, None,
    ]  # fmt: skip


def test_candidates_in_an_option_have_no_numbers():
    nested = page(["x"]).replace(
        '<text backend_node_id="2001">x</text>',
        '<a backend_node_id="10" title="see id=4"><text backend_node_id="11">&lt;b id=5&gt;</text></a>'
        '<a backend_node_id="12" name="more"/><i backend_node_id="13" title="dot"/>',
    )
    shown = guide_question(
        step(page=nested), [Candidate(id=id) for id in ("12", "1", "902", "10")], max_html_chars=6000
    ).options
    assert shown == (
        ("902", "<div backend_node_id=902> <button button> <a see id=4><b id=5></a><a more /><i"),
        ("1", "<button backend_node_id=1 button> <a see id=4><b id=5></a><a more /><i dot"),
        ("10", "<a backend_node_id=10 see id=4><b id=5></a>"),
        ("12", "<a backend_node_id=12 more />"),
    )


def test_options_have_two_letters_after_the_25th():
    many = step(page=page(items("click", count=30)), negatives=())
    candidates = [Candidate(id=str(id)) for id in range(1, 31)]
    question = guide_question(many, candidates, max_html_chars=6000)
    assert question.values["options"].split("\n")[26].startswith("AA. <button backend_node_id=26")
    assert question.picked("AE") == "30"


def test_page_is_truncated_with_a_mark_and_stands_between_quotes():
    question = guide_question(step(), [Candidate(id="3")], max_html_chars=100)
    assert question.page == step().page[:100] + "\n... (truncated)"
    text = guide_messages(shipped_guide_template(), question)[-1]["content"]
    assert f'"""\n{question.page}\n"""' in text
    whole = guide_question(step(), [Candidate(id="3")], max_html_chars=10_000)
    assert whole.page == step().page


def test_shipped_question_has_task_step_history_and_answer_format():
    messages = guide_messages(
        shipped_guide_template(), guide_question(step(), [Candidate(id="3")], max_html_chars=6000)
    )
    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 3, "user"]
    text = messages[-1]["content"]
    for part in (
        "Task: Book a ferry",
        "Step: 2",
        "Previous actions:\n[button]  Menu -> CLICK",
        "Answer: X.\nAction: OP",
    ):
        assert part in text
    first = guide_question(step(history=(), number=0), [Candidate(id="3")], max_html_chars=6000)
    assert "Step: 1\n\nPrevious actions:\nNone\n" in guide_messages(shipped_guide_template(), first)[-1]["content"]


_DEMONSTRATION = re.compile(
    r"Task: (?P<task>.*?)\n\nStep: (?P<step>\d+)\n\nPrevious actions:\n(?P<history>.*?)\n\n"
    r'Page:\n"""\n(?P<page>.*?)\n"""\n.*?\n\nOptions:\n(?P<options>.*?)\n\n',
    re.DOTALL,
)


def test_shipped_template_has_three_examples_in_the_form_of_the_question():
    template = shipped_guide_template()
    replies = []
    for user, assistant in demonstrations(template):
        found = _DEMONSTRATION.match(user)
        assert found is not None
        history = () if found["history"] == "None" else tuple(found["history"].split("\n"))
        ids = re.findall(r"^[B-F]\. <\w+ backend_node_id=(\d+)", found["options"], re.MULTILINE)
        own = step(task=found["task"], number=int(found["step"]) - 1, history=history, page=found["page"])
        question = guide_question(own, [Candidate(id=id) for id in ids], max_html_chars=6000)
        assert guide_messages(template, question)[-1]["content"] == user
        replies.append((parse_guide(assistant).op_string, question.picked(parse_guide(assistant).letter)))
    assert replies == [("TYPE Fernhill", "7"), (" ", None), ("CLICK ", "24")]


def test_placeholders_in_a_page_are_not_replaced():
    question = guide_question(step(task="Type {options}"), [Candidate(id="3")], max_html_chars=6000)
    assert "Task: Type {options}\n" in guide_messages(shipped_guide_template(), question)[-1]["content"]


@pytest.mark.parametrize(
    ("written", "last"),
    [
        ({"template": "{task}|{step}|{history}"}, "Book a ferry|2|[button]  Menu -> CLICK"),
        ({"system_prompt": "S", "question": "Which one?", "answer_instructions": "Say it."}, "Which one?\n\nOptions:"),
        ([{"role": "user", "content": "First.\n"}], "First.\nTask: Book a ferry"),
    ],
)
def test_template_is_an_object_or_a_list(written: object, last: str):
    template = read_template(json.dumps(written), name="t", ref="t")
    messages = guide_messages(template, guide_question(step(), [Candidate(id="3")], max_html_chars=6000))
    assert last in messages[-1]["content"]
    if isinstance(written, dict) and "question" in written:
        assert messages[0] == {"role": "system", "content": "S"}
        assert messages[-1]["content"].endswith("\n\nSay it.")


def test_candidate_that_is_not_on_the_page_is_described_by_its_attributes():
    attributes = json.dumps({"backend_node_id": "99", "name": "Search", "class": "big"})
    absent = Candidate(id="99", tag="input", attributes=attributes)
    question = guide_question(step(), [absent, Candidate(id="98"), Candidate(id="1")], max_html_chars=6000)
    assert [id for id, _ in question.options] == ["1", "98", "99"]
    assert question.options[2][1] == "<input backend_node_id=99 search big>"
    assert guide_question(step(page="<br>raw"), [absent], max_html_chars=6000).options[0][0] == "99"


def test_unanswered_reply_chooses_none_of_the_above():
    assert (parse_guide("hm").letter, parse_guide("Answer: C\nAction: TYPE\nValue: x").op_string) == ("A", "TYPE x")


def test_text_element_is_no_candidate():
    with pytest.raises(PageUnusable, match=r"candidate '2003' is a <text> element"):
        guide_question(step(), [Candidate(id="2003")], max_html_chars=6000)


def test_id_that_is_no_regular_expression_is_shown_unchanged():
    own = replace(step(), page=page(items("click")).replace('="1"', r'="1\q"'), positives=(Candidate(id=r"1\q"),))
    asked = guide_question(own, own.positives, max_html_chars=6000)
    assert asked.options[0][1].startswith(r"<button backend_node_id=1\q button>")
