"""The lexical judge runs in linear time on hostile texts."""

from __future__ import annotations

import time

import pytest
from pydantic import BaseModel

from judges.llm.lexical import decide, fill
from tests.unit.judges.llm.test_lexical import Operas

SIZE = 1 << 17


class Person(BaseModel):
    name: str = ""
    mentor: Person | None = None
    pupils: list[Person] = []


CLAIMS_AND_PAGES = [
    "Lake 87. ",
    "| a | b |\n",
    "[a](",
    "A. Brann ",
]


@pytest.mark.parametrize("piece", CLAIMS_AND_PAGES)
def test_judging_long_hostile_text_takes_seconds(piece: str):
    text = (piece * SIZE)[:SIZE]
    for claim, page in [("Lake Brann is 87 m deep", text), (text, "Lake Brann is 87 m deep."), (text, text[::-1])]:
        began = time.process_time()
        decide(claim, {"answer": page, "task": ""})
        assert time.process_time() - began < 15


ANSWERS = [
    "- title: b, composer: c\n",
    "".join("#" * level + " name\n" for level in range(1, 7))
    + "".join(" " * indent + "- name\n" for indent in range(12)),
    "| title | b |\n| c | d |\n\n",
    "[a](",
]


@pytest.mark.parametrize("piece", ANSWERS)
@pytest.mark.parametrize("schema", [Operas, Person])
def test_extraction_from_long_hostile_text_takes_seconds(piece: str, schema: type[BaseModel]):
    text = (piece * (SIZE // len(piece) + 1))[:SIZE]
    began = time.process_time()  # CPU time of this process only, so that other processes do not count
    fill(schema, text)
    assert time.process_time() - began < 15
