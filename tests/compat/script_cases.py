"""Cases for the scripts of this folder: model replies and expected trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mind2web2.utils.url_tools import URLs
from tests.compat.scripted import Vote

FOLDER = Path(__file__).with_name("scripts")

PASSED, FAILED, SKIPPED = ("passed", 1.0), ("failed", 0.0), ("skipped", 0.0)
P1, P2, P3 = "https://people.example/ann", "https://people.example/bea", "https://people.example/cyd"
LOUVRE = "https://museum.example/louvre_prices"
ONE, TWO = "https://shop.example/one", "https://shop.example/two"
PAGES = (P1, P2, P3, LOUVRE, ONE, TWO)


def partial(score: float) -> tuple[str, Any]:
    return "partial", pytest.approx(score)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One script case. ``votes`` as for ScriptedClient, ``values`` by class name, ``tree`` is the expected tree."""

    name: str
    answer: str = "The answer."
    votes: Mapping[str | tuple[str, str], Vote | list[Vote]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tree: Mapping[str, tuple[str, Any]]
    infos: list[Mapping[str, Any]] = field(default_factory=list)
    blocked_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @property
    def final_score(self) -> Any:
        return self.tree["root"][1]


LINEAGE = Case(
    name="lineage",
    votes={
        "Cyd advised Bea": [True],
        ("Cyd advised Bea", P2): False,
        "The answer explains generation 2": False,
    },
    values={
        "Lineage": {
            "generations": [
                {"student": "Ann", "advisor": "Bea", "urls": [P1]},
                {"student": "Bea", "advisor": "Cyd", "urls": [P2, P3]},
                {"student": "Cyd", "advisor": "Dan", "urls": []},
            ]
        }
    },
    # Generation 2 passes its gates but not its style: 0. The third step is therefore skipped, with everything below
    # it.
    tree={
        "root": partial(1 / 3),
        "generation_1": PASSED,
        "generation_1_given": PASSED,
        "generation_1_advisor": PASSED,
        "generation_1_style": PASSED,
        "generation_2": FAILED,
        "generation_2_given": PASSED,
        "generation_2_advisor": PASSED,
        "generation_2_style": FAILED,
        "generation_3": SKIPPED,
        "generation_3_given": FAILED,
        "generation_3_advisor": SKIPPED,
        "generation_3_style": SKIPPED,
    },
    blocked_by={"generation_3_advisor": "generation_3_given", "generation_3_style": "generation_3_given"},
)

_MUSEUMS = {
    "museums": [
        {"name": "Louvre", "price": "22", "urls": [r" https://museum.example/louvre\_prices "]},
        {"name": "Prado", "price": "15", "urls": None},
    ],
    "opening_note": None,
}
MUSEUMS = Case(
    name="museums",
    votes={"The Louvre is open on Mondays": False},
    values={"Museums": _MUSEUMS},
    # First museum: gate passed, one of two claims. Second museum: its gate failed.
    tree={
        "root": partial(0.25),
        "museum": partial(0.5),
        "known": PASSED,
        "price": PASSED,
        "monday": FAILED,
        "museum_1": FAILED,
        "known_1": FAILED,
        "price_1": SKIPPED,
        "monday_1": SKIPPED,
    },
    infos=[
        {"extraction": _MUSEUMS},
        {"ground_truth": {"Louvre": 22, "Orsay": 16}},
        {"weekday": {"day": "Monday"}},
        {"museums_found": {"n": 2}},
        {
            "as_extracted": {
                "museums": [
                    {"name": "Louvre", "price": "22", "urls": [LOUVRE]},
                    {"name": "Prado", "price": "15", "urls": []},
                ],
                "opening_note": None,
            }
        },
    ],
    blocked_by={"price_1": "known_1", "monday_1": "known_1"},
)


_CITED = [f"{ONE}?utm_source=agent", TWO]
PAGES_CASE = Case(
    name="pages",
    answer=f"See [one]({ONE}) and {TWO}.",
    votes={("It is open", _CITED[0]): False},
    values={"URLs": URLs(urls=_CITED).model_dump(), "Shop": {"title": "Lamp House"}},
    # One gate passed, then three of four claims.
    tree={
        "root": partial(0.75),
        "stored": PASSED,
        "claims": partial(0.75),
        "title": PASSED,
        "page": PASSED,
        "pages": PASSED,
        "missing": FAILED,
    },
)


AWKWARD = Case(
    name="awkward",
    values={"Shop": {"größe": "40 m²"}},
    # 4 of 8 unusual sources and 1 of 3 invalid calls pass; the group assigned by the script passes, below its first
    # step too.
    tree={
        "root": partial((4 / 8 + 1 / 3 + 1) / 3),
        "sources": partial(0.5),
        **dict.fromkeys(("none", "empty", "mixed", "spelled"), PASSED),
        **dict.fromkeys(("blank", "blanks", "tuple", "words"), FAILED),
        "calls": partial(1 / 3),
        "own": FAILED,
        "even": FAILED,
        "lone": PASSED,
        "hand": PASSED,
        "hand_0": PASSED,
        "hand_1": PASSED,
    },
    infos=[
        {"laden": {"größe": "40 m²"}},
        {"page": {"größe": "40 m²"}},
        {"wrong": {"raised": ["TypeError", "ValueError", "TypeError", "AssertionError"]}},
        {
            "custom": {
                "said": [True, True],
                "outside": "passed",
                "batch": [True, False, "TypeError"],
                "page": [[], True],
            }
        },
        {"more": {"found": [{"größe": "40 m²"}, {"größe": "40 m²"}], "ids": ["blank", "blanks", "calls"]}},
    ],
)

CASES = [LINEAGE, MUSEUMS, PAGES_CASE, AWKWARD]
