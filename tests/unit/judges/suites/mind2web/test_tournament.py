"""Tournament rounds of docs/mind2web-rules.md: one test for each consequence that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judges.suites.errors import SuiteError
from judges.suites.mind2web.tournament import (
    EMPTY_PREDICTION,
    Parsed,
    Prediction,
    Tournament,
    gold_op_string,
    op_f1,
    parse_llm,
    read_predictions,
    score_prediction,
)

NONE = "A"


def play(queue: str, *answers: str) -> tuple[Prediction, list[str]]:
    """Play with letters as candidates, in alphabetical order. An answer is ``A`` or a letter and an operation."""
    tournament, groups = Tournament(list(queue)), []
    for answer in answers:
        group = tournament.next_group()
        assert group is not None, "more answers than rounds"
        groups.append("".join(group))
        letter, _, op = answer.partition(" ")
        tournament.reply(sorted(group), Parsed(letter=letter, op_string=op or "CLICK "))
    assert tournament.next_group() is None, "more rounds than answers"
    return tournament.prediction, groups


def test_survivors_are_grouped_again_until_one_is_left():
    prediction, groups = play("abcdefghijkl", "B", "C", "D")
    assert groups == ["abcde", "fghij", "klag"]
    assert prediction.node_id == "k"  # the options of the last round are a, g, k, l


def test_operation_is_that_of_the_last_round_with_a_pick():
    prediction, _ = play("abcdefg", "B TYPE first", "B TYPE second")
    assert prediction == Prediction("a", "TYPE second")


def test_no_request_is_sent_for_a_single_candidate():
    assert play("a") == (EMPTY_PREDICTION, [])


def test_remaining_candidate_is_never_shown_after_none_in_all_rounds():
    assert play("abcdef", NONE) == (EMPTY_PREDICTION, ["abcde"])


def test_pick_followed_by_none_is_an_empty_prediction():
    assert play("abcdefg", "B TYPE right", NONE) == (EMPTY_PREDICTION, ["abcde", "fga"])


def test_pick_that_is_the_only_one_left_wins_without_confirmation():
    assert play("abcdefghij", "C CLICK", NONE)[0] == Prediction("b", "CLICK")


def test_letter_beyond_the_options_clears_an_earlier_pick():
    tournament = Tournament(list("abcdefghij"))
    for letter in ("B", "G"):
        group = tournament.next_group()
        assert group is not None
        tournament.reply(sorted(group), Parsed(letter=letter, op_string="CLICK "))
    assert (tournament.queue, tournament.prediction) == (["a"], EMPTY_PREDICTION)


@pytest.mark.parametrize(
    ("prediction", "positives", "expected"),
    [
        (Prediction("1", "CLICK "), ["1"], (1, 1.0)),
        (Prediction("2", "CLICK "), ["1", "2"], (1, 1.0)),  # any positive is correct
        (Prediction("1", "CLICK None"), ["1"], (1, 2 / 3)),
        (Prediction("1", "CLICK "), [], (0, 0.0)),
    ],
)
def test_prediction_is_scored_by_element_and_operation(
    prediction: Prediction, positives: list[str], expected: tuple[int, float]
):
    assert score_prediction(prediction, positives, "CLICK ") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("raw", "letter", "op_string"),
    [
        ("Answer: B.\nAction: TYPE\nValue: two words", "B", "TYPE two words"),
        ("Answer: Fine\nAction: SELECT", "F", "SELECT "),
        ("Answer: G", "A", " "),
        ("Answer: C\naction: CLICK\nvalue: x", "C", " "),
        ('Answer: C\nAction: TYPE\nValue: "St. Louis".', "C", 'TYPE "St. Louis".'),
        ("Answer: C\nAction: CLICK\nValue: None", "C", "CLICK None"),
        ("Answer: C\nAction: TYPE\nValue: \nboston", "C", "TYPE "),
    ],
)
def test_replies_of_chat_models_are_parsed(raw: str, letter: str, op_string: str):
    parsed = parse_llm(raw)
    assert (parsed.letter, parsed.op_string) == (letter, op_string)


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        (" ", "CLICK ", 0.0),
        ("CLICK None", gold_op_string("CLICK", "ignored"), 2 / 3),
        ("TYPE new york new york", "TYPE new york", 1.0),
        ("TYPE Boston", "TYPE boston", 0.5),
    ],
)
def test_operation_f1_compares_words(predicted: str, gold: str, f1: float):
    assert op_f1(predicted, gold) == pytest.approx(f1)


def write_predictions(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "predictions.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_published_predictions_are_read(tmp_path: Path):
    found = read_predictions(write_predictions(tmp_path, [["T_a", "7", "TYPE x"], ["T_b", "", ""]]))
    assert found == {"T_a": Prediction("7", "TYPE x"), "T_b": EMPTY_PREDICTION}


def test_reports_of_this_project_are_predictions_too(tmp_path: Path):
    own = [
        {"id": "T_a", "status": "scored", "prediction": ["7", "CLICK "]},
        {"id": "T_b", "status": "not_judged", "prediction": None},
        {"id": "T_c", "status": "scored", "prediction": ["", "CLICK "]},
    ]
    assert read_predictions(write_predictions(tmp_path, own)) == {
        "T_a": Prediction("7", "CLICK "),
        "T_c": Prediction("", "CLICK "),
    }


@pytest.mark.parametrize("entry", [["T_a", "7"], ["T_a", 7, ""], {"id": "T_a", "prediction": None}, {"id": 1}])
def test_entry_of_another_format_is_refused(entry: Any, tmp_path: Path):
    with pytest.raises(SuiteError, match="entry 0: must be"):
        read_predictions(write_predictions(tmp_path, [entry]))
