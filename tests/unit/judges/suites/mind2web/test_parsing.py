from __future__ import annotations

import pytest

from judges.suites.mind2web.tournament import (
    gold_op_string,
    op_f1,
    parse_llm,
    parse_seq2seq,
)


@pytest.mark.parametrize(
    ("raw", "letter", "op_string"),
    [
        ("Answer: B.\nAction: TYPE\nValue: two words", "B", "TYPE two words"),
        ("Answer: Fine\nAction: SELECT", "F", "SELECT "),
        ("Answer: G", "A", " "),
        ("Answer: None", "A", " "),
        ("answer: C\nAction: CLICK", "A", "CLICK "),
        ("Answer:  C", "A", " "),
        ("Answer: C\naction: CLICK\nvalue: x", "C", " "),
        ("Answer: C\nAction: CLICKABLE", "C", "CLICK "),
        ("Answer: C\nAction: click", "C", " "),
        ('Answer: C\nAction: TYPE\nValue: "St. Louis".', "C", 'TYPE "St. Louis".'),
        ("Answer: C\nAction: CLICK\nValue: None", "C", "CLICK None"),
        ("Answer: C\nAction: TYPE\nValue: first\nValue: second", "C", "TYPE first"),
        ("Answer: C\nAction: TYPE\nValue: \nboston", "C", "TYPE "),
        ("Value: x Answer: D Action: TYPE", "D", "TYPE x Answer: D Action: TYPE"),
        ("  \n", "A", " "),
    ],
)
def test_replies_of_chat_models_are_parsed(raw: str, letter: str, op_string: str):
    parsed = parse_llm(raw)
    assert (parsed.letter, parsed.op_string) == (letter, op_string)


def test_replies_of_fine_tuned_models_begin_with_the_letter():
    assert parse_seq2seq(" D.\nAction: CLICK\n").letter == "D"
    assert parse_seq2seq("?").op_string == " "
    with pytest.raises(IndexError):
        parse_seq2seq(" ")


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        (" ", "CLICK ", 0.0),
        ("", " ", 1.0),
        ("CLICK None", gold_op_string("CLICK", "ignored"), 2 / 3),
        ("TYPE boston", "SELECT boston", 0.5),
        ("TYPE new york new york", "TYPE new york", 1.0),
        ("york new TYPE", "TYPE new york", 1.0),
        ("TYPE Boston", "TYPE boston", 0.5),
        ("TYPE boston.", "TYPE boston", 0.5),
    ],
)
def test_operation_f1_compares_words(predicted: str, gold: str, f1: float):
    assert op_f1(predicted, gold) == pytest.approx(f1)
