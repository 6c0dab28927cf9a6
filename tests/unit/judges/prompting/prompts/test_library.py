from __future__ import annotations

from importlib import resources

import pytest

from judges.errors import PromptDamaged
from judges.prompting.prompts import load_prompt, locked_digests, parse_prompt

IDS = sorted(
    entry.name.removesuffix(".md")
    for entry in resources.files("judges.prompting.prompts").iterdir()
    if entry.name.endswith(".md")
)
GOOD = "---\nid: x\nversion: 3\nvariables: who\n---\nHello {{who}}.\n"


@pytest.mark.parametrize("id", IDS)
def test_changed_prompt_has_a_new_version(id: str):
    prompt = load_prompt(id)
    message = (
        f"{prompt.ref} does not match prompts.lock. If the text changed, increase the version, and add a line with the"
        f" digest {prompt.sha256}."
    )
    assert locked_digests().get(prompt.ref) == prompt.sha256, message


def test_lock_file_lists_exactly_the_shipped_prompts():
    assert set(locked_digests()) == {load_prompt(id).ref for id in IDS}


def test_prompt_is_rendered_with_its_variables():
    prompt = parse_prompt(GOOD, id="x")
    assert (prompt.ref, prompt.render(who="you {{who}}")) == ("x@3", "Hello you {{who}}.")


def test_missing_or_unknown_variables_are_rejected():
    with pytest.raises(PromptDamaged, match="takes"):
        parse_prompt(GOOD, id="x").render(who="a", what="b")


@pytest.mark.parametrize(
    "written",
    [
        "no front matter",
        GOOD.replace("id: x", "id: y"),
        GOOD.replace("variables: who", "variables: -"),
    ],
)
def test_damaged_prompt_is_rejected(written: str):
    with pytest.raises(PromptDamaged):
        parse_prompt(written, id="x")
