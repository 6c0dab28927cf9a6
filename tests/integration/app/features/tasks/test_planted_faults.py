"""Faults planted into a sound task, each of which `assay tasks test` must name with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.fakes.warm_trials import warm_trials  # noqa: F401 - fixture
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.usefixtures("warm_trials")

URL, OTHER_URL = "https://pellard.example/heron", "https://pellard.example/battery"
PAGES = {
    URL: "The Heron gauge costs 430 crowns and it is made by Pellard.",
    OTHER_URL: "The battery of the Heron gauge lasts 72 hours.",
}
ANSWER = f"""\
# The Heron

- Price: 430 crowns
- Price sources: {URL}
- Hours: 72 hours
- Hours sources: {OTHER_URL}
"""
HEAD = """\
format: 1
description: What does the Heron gauge cost, and how long does it last?
fields:
  price: price in crowns
  price_sources: {list_of: url}
  hours: hours that the battery lasts
  hours_sources: {list_of: url}
rubric:
  parallel:
"""
PRICE = '    price: {claim: "The Heron gauge costs {price}", sources: price_sources}\n'
HOURS = '    hours: {claim: "The battery lasts {hours}", sources: hours_sources}\n'
SOUND = HEAD + PRICE + HOURS

INVALID, FOUND, LINT = 1, 100, 0
"""Exit codes: the file is refused, the test fails, and the linter advises."""


def planted(old: str, new: str) -> str:
    assert old in SOUND
    return SOUND.replace(old, new)


def added(node: str) -> str:
    return f"{SOUND}    {node}\n"


FAULTS = {
    "unknown field in a template": (planted("{price}", "{prize}"), INVALID, r"heron.yaml:10:\d+: .*no field 'prize'"),
    "unsourced claim": (
        planted(", sources: price_sources", ""),
        FOUND,
        r"NOT PROTECTED  price .*heron.yaml:10\n.*no sources",
    ),
    "source of another value": (
        planted("sources: price_sources", "sources: hours_sources"),
        FOUND,
        r"NOT PROTECTED  price_sources.*\n.*No claim has this page",
    ),
    "field not used": (HEAD + PRICE, FOUND, r"NOT PROTECTED  hours.*\n.*No leaf changes"),
    "only presence is checked": (
        planted(HOURS, '    hours: {check: "given(hours, hours_sources)"}\n'),
        FOUND,
        r"NOT PROTECTED  hours .*\n.*a wrong one is not",
    ),
    "check that passes on the empty answer": (
        added("""short: {check: "words(answer) < 500"}"""),
        FOUND,
        r"An empty answer scores 0.333, not 0.\n    short \(passed\)",
    ),
    "claim about the answer that passes on the empty answer": (
        added("""polite: {claim: "'Heron' and 'Heron' are the same name"}"""),
        FOUND,
        r"An empty answer scores 0.333, not 0.\n    polite \(passed\): 'Heron' and",
    ),
    "wrong expected value": (
        added("""exact: {claim: "'{price}' and '460 crowns' are the same price"}"""),
        FOUND,
        r"The correct answer scores 0.667, not 1.\n    exact \(failed.*\): '430 crowns' and '460 crowns'",
    ),
    "gate that cannot pass": (
        added('range: {check: "within(number(price), 900, 1000)", critical: true}'),
        FOUND,
        r"The correct answer scores 0, not 1.\n    range \(failed.*\)",
    ),
    "compound claim": (
        planted("The Heron gauge costs {price}", "The Heron gauge costs {price} and it is made by Pellard"),
        LINT,
        "lint: price: makes more than one statement",
    ),
}


def tasks_test(assay: RunCommand, folder: Path, task: str) -> tuple[int, str]:
    (folder / "mine").mkdir()
    (folder / "mine" / "heron.yaml").write_text(task)
    (folder / "answer.md").write_text(ANSWER)
    (folder / "pages.json").write_text(json.dumps(PAGES))
    ended = assay("tasks", "test", "heron", "--judges", "mine", "--answer", "answer.md", "--pages", "pages.json")
    return ended.code, ended.out + ended.err


def test_sound_task_has_no_findings_and_shows_what_an_answer_costs(assay: RunCommand, tmp_path: Path) -> None:
    code, output = tasks_test(assay, tmp_path, SOUND)
    assert code == 0, output
    assert "lint:" not in output
    assert "The correct answer scores 1, and an empty answer scores 0." in output
    assert re.search(r"One answer: 2 pages, with openai/\S+ \d+ to \d+ model calls, 0\.0\d+ to 0\.0\d+ usd\n", output)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_named(assay: RunCommand, tmp_path: Path, fault: str) -> None:
    task, expected, message = FAULTS[fault]
    code, output = tasks_test(assay, tmp_path, task)
    assert re.search(message, output), output
    assert code == expected, output
