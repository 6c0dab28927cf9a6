"""The lexical judge runs in linear time on hostile texts."""

from __future__ import annotations

import time

import pytest
from pydantic import BaseModel

from judges.llm.lexical import decide, fill

MIB = 1 << 20


class Opera(BaseModel):
    title: str = ""
    composer: str | None = None
    premiere_year: int | None = None
    urls: list[str] = []


class Operas(BaseModel):
    operas: list[Opera] = []
    summary: str | None = None


class Person(BaseModel):
    name: str = ""
    mentor: Person | None = None
    pupils: list[Person] = []


CLAIMS_AND_PAGES = [
    "Lake 87. ",
    "# a\n",
    "| a | b |\n",
    "- a: b\n",
    "**a**\n",
    ". ",
    "[a](",
    "' is '",
    "x",
    "1,",
    "A. Brann ",
    "- ",
]


@pytest.mark.parametrize("piece", CLAIMS_AND_PAGES)
def test_judging_one_mib_of_hostile_text_takes_seconds(piece: str):
    text = (piece * MIB)[:MIB]
    for claim, page in [("Lake Brann is 87 m deep", text), (text, "Lake Brann is 87 m deep."), (text, text[::-1])]:
        began = time.process_time()
        decide(claim, {"answer": page, "task": ""})
        assert time.process_time() - began < 60


ANSWERS = [
    "- title: b, composer: c\n",
    "- title: https://a.example/x\n",
    "".join(" " * indent + "- title: b\n" for indent in range(12)),
    "".join("#" * level + " name\n" for level in range(1, 7))
    + "".join(" " * indent + "- name\n" for indent in range(12)),
    "## title\n",
    "**title**\n",
    "| title | b |\n| c | d |\n\n",
    "[a](",
    "title: a, ",
    "(a: b",
]


@pytest.mark.parametrize("piece", ANSWERS)
@pytest.mark.parametrize("schema", [Operas, Person])
def test_extraction_from_one_mib_of_hostile_text_takes_seconds(piece: str, schema: type[BaseModel]):
    text = (piece * (MIB // len(piece) + 1))[:MIB]
    began = time.process_time()  # CPU time of this process only, so that other processes do not count
    fill(schema, text)
    assert time.process_time() - began < 60
