"""The rounds of contracts/mind2web.md, 4: each consequence it names, played by hand."""

from __future__ import annotations

import random

import pytest

from judges.suites.mind2web.parsing import Parsed
from judges.suites.mind2web.tournament import EMPTY_PREDICTION, Prediction, Tournament, score_prediction, shuffled

NONE = "A"


def play(queue: str, *answers: str, keeps_earlier: bool = False) -> tuple[Prediction, list[str]]:
    """Candidates are letters, shown in alphabetical order; an answer is ``A``, or a letter and an operation."""
    tournament, groups = Tournament(list(queue), keep_earlier_pick=keeps_earlier), []
    for answer in answers:
        group = tournament.next_group()
        assert group is not None, "more answers than rounds"
        groups.append("".join(group))
        letter, _, op = answer.partition(" ")
        tournament.reply(sorted(group), Parsed(letter=letter, op_string=op or "CLICK "))
    assert tournament.next_group() is None, "more rounds than answers"
    return tournament.prediction, groups


def test_survivors_meet_again_until_one_is_left():
    prediction, groups = play("abcdefghijkl", "B", "C", "D")
    assert groups == ["abcde", "fghij", "klag"]
    assert prediction.node_id == "k"  # the options of the last round are a, g, k, l


def test_fifty_candidates_are_asked_about_in_ten_to_thirteen_rounds():
    fifty = "".join(chr(ord("a") + n) for n in range(50))
    assert len(play(fifty, *[NONE] * 10)[1]) == 10
    # Ten survivors make two groups of five, their two survivors a last one.
    assert len(play(fifty, *["B"] * 13)[1]) == 13


def test_the_operation_is_that_of_the_last_round_that_picked_an_option():
    prediction, _ = play("abcdefg", "B TYPE first", "B TYPE second")
    assert prediction == Prediction("a", "TYPE second")


def test_a_lone_candidate_is_never_asked_about():
    assert play("a") == (EMPTY_PREDICTION, [])


def test_one_left_over_after_none_everywhere_is_never_shown():
    assert play("abcdef", NONE) == (EMPTY_PREDICTION, ["abcde"])


def test_a_pick_followed_by_none_about_it_is_nothing():
    assert play("abcdefg", "B TYPE right", NONE) == (EMPTY_PREDICTION, ["abcde", "fga"])


def test_a_pick_that_stays_alone_wins_unconfirmed():
    assert play("abcdefghij", "C CLICK", NONE)[0] == Prediction("b", "CLICK")


@pytest.mark.parametrize(("keeps_earlier", "left"), [(False, EMPTY_PREDICTION), (True, Prediction("a", "CLICK "))])
def test_a_letter_beyond_the_options_takes_an_earlier_pick_back_unless_the_model_is_a_fine_tuned_one(
    keeps_earlier: bool, left: Prediction
):
    tournament = Tournament(list("abcdefghij"), keep_earlier_pick=keeps_earlier)
    for letter in ("B", "G"):
        group = tournament.next_group()
        assert group is not None
        tournament.reply(sorted(group), Parsed(letter=letter, op_string="CLICK "))
    assert (tournament.queue, tournament.prediction) == (["a"], left)


def test_the_order_of_play_is_that_of_a_seeded_shuffle():
    state = random.getstate()
    random.seed(7)
    wanted = ["1", *map(str, range(2, 13))]
    random.shuffle(wanted)
    random.setstate(state)
    assert shuffled(["1"], [str(n) for n in range(2, 13)], random.Random(7)) == wanted


@pytest.mark.parametrize(
    ("prediction", "positives", "worth"),
    [
        (Prediction("1", "CLICK "), ["1"], (1, 1.0, True)),
        (Prediction("2", "CLICK "), ["1", "2"], (1, 1.0, True)),  # every positive is right
        (Prediction("9", "CLICK "), ["1"], (0, 1.0, False)),  # the operation counts by itself
        (Prediction("1", "CLICK None"), ["1"], (1, 2 / 3, False)),
        (EMPTY_PREDICTION, ["1"], (0, 0.0, False)),
        (Prediction("1", "CLICK "), [], (0, 0.0, False)),
        (Prediction("", "CLICK "), ["1"], (0, 0.0, False)),
    ],
)
def test_what_a_prediction_is_worth(prediction: Prediction, positives: list[str], worth: tuple[int, float, bool]):
    found = score_prediction(prediction, positives, "CLICK ")
    assert (found.element, found.op_f1, found.success) == (worth[0], pytest.approx(worth[1]), worth[2])
