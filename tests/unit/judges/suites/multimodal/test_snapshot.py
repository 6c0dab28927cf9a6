from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from judges.suites.errors import DataUnreadable
from judges.suites.mind2web.page import Page
from judges.suites.multimodal.row_files import SourceStep, read_source_step
from judges.suites.multimodal.scoring import root_id
from judges.suites.multimodal.snapshot import SamplingOptions, element_text, sample_candidates, tilde_values
from judges.suites.multimodal.tilde_rows import read_tilde_row
from tests.fakes.multimodal import LABELS, element_id, page, picture, source_row

DRAW = SamplingOptions(distractors=3, seed=42)


def step(**changes: Any) -> SourceStep:
    return read_source_step(source_row("t1", 1, "TYPE", "rome", right=("Search", "Help")) | changes, place="p")


def row_values(source: SourceStep | None = None, draw: SamplingOptions = DRAW) -> dict[str, Any]:
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


def test_draw_depends_on_the_row():
    other = step(action_uid="another")
    assert ids(row_values(other)["candidates"]) != ids(row_values()["candidates"])


def test_id_with_a_lone_surrogate_has_a_draw():
    assert len(row_values(replace(step(), task_id="t\ud800"))["candidates"]) == DRAW.distractors + 1


def test_draw_is_uniform():
    seen: Counter[str] = Counter()
    places: Counter[int] = Counter()
    right = {element_id("Search"), element_id("Help")}
    source = step()
    parsed = Page.parse(source.page)
    for seed in range(600):
        order = [
            one.id
            for one in sample_candidates(source, parsed, source.positives, SamplingOptions(distractors=3, seed=seed))
        ]
        seen.update(order)
        places.update(place for place, id in enumerate(order) if id in right)
    # Expected share: 1/2 for each positive, 1/2 for each of the six negatives, 1/4 for each position.
    assert all(240 < seen[element_id(label)] < 360 for label in LABELS)
    assert all(105 < places[place] < 195 for place in range(4))


def test_row_without_a_positive_has_only_distractors_and_is_not_valid():
    values = row_values(step(pos_candidates=[]))
    assert (len(values["candidates"]), values["target_elements"], values["is_valid"]) == (3, [], "False")


def test_positive_missing_in_the_page_is_ignored():
    lost = step(cleaned_html=page(without=("Search", "Help")))
    assert (row_values(lost)["is_valid"], row_values(lost)["target_elements"]) == ("False", [])


def test_row_without_a_screenshot_is_not_valid():
    values = row_values(step(screenshot=None))
    assert values["is_valid"] == "False"
    assert all(part["image_url"] is None for part in values["prompt_0"][1]["content"])


def test_small_page_has_fewer_distractors():
    values = row_values(draw=SamplingOptions(distractors=20))
    assert (len(values["candidates"]), values["is_valid"]) == (7, "True")


def test_picture_is_stored_unchanged():
    values = row_values()
    url = values["prompt_0"][1]["content"][1]["image_url"]["url"]
    head, _, body = url.partition(",")
    assert (head, base64.b64decode(body)) == ("data:image/png;base64", picture())


def test_prompt_parts_have_both_keys_and_the_unused_one_is_null():
    parts = [part for message in row_values()["prompt_0"] for part in message["content"]]
    assert all({"text", "image_url"} <= part.keys() for part in parts)
    assert all((part["text"] is None) != (part["image_url"] is None) for part in parts)


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


def test_first_prompt_contains_the_task_and_all_earlier_steps():
    text = row_values()["prompt_0"][1]["content"][0]["text"]
    assert "Do what t1 says" in text
    assert "[link]  Step 0 -> CLICK" in text
    assert "Step 1 ->" not in text


def test_row_is_read_back_unchanged():
    values = row_values()
    row = read_tilde_row(json.loads(json.dumps(values)), place="p", position=0)
    assert (row.op, row.value, row.valid, len(row.candidates)) == ("TYPE", "rome", True, 4)
    assert set(row.boxes) >= {element_id("Search"), element_id("Help")}
    assert 'bnid="110"' in values["cleaned_html"]
    assert "backend_node_id" not in values["cleaned_html"]


def test_element_is_written_without_quotes_and_white_space_between_tags():
    written = page().replace('title="Search"', "title=\"a &lt;b&gt; 'c'  d\"")
    text = element_text(Page.parse(written).element("110"))
    assert text == "<a bnid=110 title=a b c d><text bnid=111>Search</text></a>"


@pytest.mark.parametrize(
    ("field", "value"), [("cleaned_html", "<html>"), ("screenshot", {"bytes": b"BM not one of ours"})]
)
def test_invalid_page_or_screenshot_is_named_in_the_error(field: str, value: object):
    with pytest.raises(DataUnreadable, match=field):
        row_values(step(**{field: value}))
