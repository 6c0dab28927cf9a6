"""Tournament rounds of contracts/mind2web.md, 4: one test for each consequence that it names."""

from __future__ import annotations

import random

import pytest

from judges.suites.mind2web.tournament import (
    EMPTY_PREDICTION,
    Parsed,
    Prediction,
    Tournament,
    score_prediction,
    shuffled,
)

NONE = "A"


def play(queue: str, *answers: str, keeps_earlier: bool = False) -> tuple[Prediction, list[str]]:
    """Play with letters as candidates, in alphabetical order. An answer is ``A`` or a letter and an operation."""
    tournament, groups = Tournament(list(queue), keep_earlier_pick=keeps_earlier), []
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


def test_fifty_candidates_take_ten_to_thirteen_rounds():
    fifty = "".join(chr(ord("a") + n) for n in range(50))
    assert len(play(fifty, *[NONE] * 10)[1]) == 10
    # Ten survivors form two groups of five, and their two survivors the last one.
    assert len(play(fifty, *["B"] * 13)[1]) == 13


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


@pytest.mark.parametrize(("keeps_earlier", "left"), [(False, EMPTY_PREDICTION), (True, Prediction("a", "CLICK "))])
def test_letter_beyond_the_options_clears_an_earlier_pick_unless_it_is_retained(keeps_earlier: bool, left: Prediction):
    tournament = Tournament(list("abcdefghij"), keep_earlier_pick=keeps_earlier)
    for letter in ("B", "G"):
        group = tournament.next_group()
        assert group is not None
        tournament.reply(sorted(group), Parsed(letter=letter, op_string="CLICK "))
    assert (tournament.queue, tournament.prediction) == (["a"], left)


def test_order_is_that_of_a_seeded_shuffle():
    state = random.getstate()
    random.seed(7)
    wanted = ["1", *map(str, range(2, 13))]
    random.shuffle(wanted)
    random.setstate(state)
    assert shuffled(["1"], [str(n) for n in range(2, 13)], random.Random(7)) == wanted


@pytest.mark.parametrize(
    ("prediction", "positives", "expected"),
    [
        (Prediction("1", "CLICK "), ["1"], (1, 1.0, True)),
        (Prediction("2", "CLICK "), ["1", "2"], (1, 1.0, True)),  # any positive is correct
        (Prediction("9", "CLICK "), ["1"], (0, 1.0, False)),  # the operation is scored independently
        (Prediction("1", "CLICK None"), ["1"], (1, 2 / 3, False)),
        (EMPTY_PREDICTION, ["1"], (0, 0.0, False)),
        (Prediction("1", "CLICK "), [], (0, 0.0, False)),
        (Prediction("", "CLICK "), ["1"], (0, 0.0, False)),
    ],
)
def test_prediction_is_scored_by_element_and_operation(
    prediction: Prediction, positives: list[str], expected: tuple[int, float, bool]
):
    found = score_prediction(prediction, positives, "CLICK ")
    assert (found.element, found.op_f1, found.success) == (expected[0], pytest.approx(expected[1]), expected[2])
