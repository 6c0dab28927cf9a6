from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from judges.suites.mind2web.data import Step, read_step
from judges.suites.mind2web.page import Page
from judges.suites.multimodal.scoring import root_id
from judges.suites.multimodal.snapshot import SamplingOptions, tilde_values
from judges.suites.multimodal.tilde_rows import read_tilde_row
from tests.fakes.multimodal import element_id, source_row

DRAW = SamplingOptions(distractors=3, seed=42)


def step(**changes: Any) -> Step:
    return read_step(source_row("t1", 1, "TYPE", "rome", right=("Search", "Help")) | changes, place="p")


def row_values(source: Step | None = None, draw: SamplingOptions = DRAW) -> dict[str, Any]:
    return tilde_values(source or step(), draw, split="test_website")


def ids(elements: list[str]) -> list[str | None]:
    return [root_id(element) for element in elements]


def test_row_has_one_positive_and_the_configured_distractors():
    values = row_values()
    shown = ids(values["candidates"])
    right = {element_id("Search"), element_id("Help")}
    assert len(shown) == len(set(shown)) == 4
    assert len(right & set(shown)) == 1
    assert set(ids(values["target_elements"])) == right


def test_equal_seeds_give_equal_draws_and_other_seeds_differ():
    assert row_values() == row_values()
    others = [ids(row_values(draw=replace(DRAW, seed=seed))["candidates"]) for seed in range(10)]
    assert len({tuple(other) for other in others}) > 5


def test_question_lists_the_candidates_in_order_and_the_none_letter():
    values = row_values()
    [message] = values["prompt_1"]
    text = message["content"][0]["text"]
    parsed = Page.parse(step().page)
    for letter, candidate in zip("ABCD", values["candidates"], strict=True):
        label = parsed.element(str(root_id(candidate))).get("title")
        assert f"\n{letter}. <a id=" in text
        assert f">{label}</a>" in text.partition(f"\n{letter}. ")[2].partition("\n")[0]
    assert "choose E." in text
    assert "\nE. None of the other options match the correct element" in text
    assert text.index("ELEMENT:") > text.index("\nE. ")


def test_row_is_read_back_unchanged():
    values = row_values()
    row = read_tilde_row(json.loads(json.dumps(values)), place="p", position=0)
    assert (row.op, row.value, row.valid, len(row.candidates)) == ("TYPE", "rome", True, 4)
    assert set(row.boxes) >= {element_id("Search"), element_id("Help")}
    assert 'bnid="110"' in values["cleaned_html"]
    assert "backend_node_id" not in values["cleaned_html"]
