"""Protocol of the integration guide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judges.suites.mind2web.data import Candidate, Step
from judges.suites.mind2web.step_player import (
    guide_options,
    keep_candidates,
    operation_f1,
    parse_guide,
    parse_reply,
    picked_option,
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
        ("Answer: **B**", None, None, None),
        ("Answer: B\nAction: select_option\nValue:\n 'two words' ", "B", "SELECT", "two words"),
        ("Action: input\nValue: n/a", None, "TYPE", ""),
        ("Action: TAP", None, "TAP", None),
    ],
)
def test_reply_is_parsed_by_the_first_match_anywhere(
    raw: str, answer: str | None, action: str | None, value: str | None
):
    assert parse_reply(raw) == (answer, action, value)


@pytest.mark.parametrize(
    ("gold", "predicted", "f1"),
    [
        (("CLICK", None), ("CLICK", "ignored"), 1.0),
        (("CLICK", "x"), ("TYPE", "x"), 0.0),
        (("TYPE", "new york city"), ("TYPE", "New York"), 0.8),
        (("TYPE", "it's"), ("TYPE", "it s"), 1.0),
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


def test_options_stand_in_document_order_after_none_of_the_above():
    candidates = [ranked("3", 7), Candidate(id="1", rank=0, score=0.98765), Candidate(id="5")]
    options = guide_options(step(), candidates)
    assert [text for _, text in options] == [
        "<button backend_node_id=1 button> item 1 </button> (rank 0, score 0.9877)",
        "<button backend_node_id=3 button> blue click </button> (rank 7)",
        "<button backend_node_id=5 button> item 5 </button>",
    ]
    assert [picked_option(options, letter) for letter in ("A", "B", "C", "D", "E", "NONE", "")] == [
        None, "1", "3", "5", None, None, None,
    ]  # fmt: skip


def test_unanswered_reply_chooses_none_of_the_above():
    assert (parse_guide("hm").letter, parse_guide("Answer: C\nAction: TYPE\nValue: x").op_string) == ("A", "TYPE x")
