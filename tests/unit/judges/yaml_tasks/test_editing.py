"""Changes of values in the text of a task file."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.yaml_tasks.compiler import compile_task
from judges.yaml_tasks.document import InvalidTask, read_document
from judges.yaml_tasks.editing import edit_task, field_of, head_values, task_nodes
from judges.yaml_tasks.model import TaskFile, write_task
from tests.unit.judges.yaml_tasks.test_model import tasks

SHIPPED = sorted((Path(__file__).parents[4] / "judges" / "tasks" / "as_yaml").glob("*.yaml"))
SOURCE = """\
# Task of the lighthouses.
format: 1  # of the file
description: >-
  Which lighthouse is the
  oldest?
fields:
  name: # the name
  year: {type: integer}
  urls: {list_of: url}
rubric:
  # Both must hold.
  parallel:
    given: {description: A name is given, check: given(name), critical: true}  # a gate
    oldest:  # the main claim
      claim: "{name} is the oldest — «lit» in {year}"  # checked in 2025
      sources: urls
    height:
      weight: 0.5 # little
      parallel:
        tall:
          claim: |-
            {name} is tall,
            and white.

        # A note on the claim below.
        white:
          claim: '{name} isn''t red'
          critical: false
    score:
      graded:
        half: {score: 0.5, claim: "{name} is {year} years old" , }
        whole: {score: 1, check: year == 1870}
"""


def edited(**values: str | bool) -> str:
    return edit_task(SOURCE, {key.replace("__", "/"): value for key, value in values.items()}, "t.yaml")


def changed_lines(text: str, source: str = SOURCE) -> tuple[list[str], list[str]]:
    before, after = source.splitlines(), text.splitlines()
    return [line for line in before if line not in after], [line for line in after if line not in before]


OLDEST = "rubric/parallel/oldest"


@pytest.mark.parametrize(
    ("field", "value", "removed", "added"),
    [
        (
            f"{OLDEST}/claim",
            'The "{name}" is older: # than all',
            ['      claim: "{name} is the oldest — «lit» in {year}"  # checked in 2025'],
            ['      claim: "The \\"{name}\\" is older: # than all"  # checked in 2025'],
        ),
        (f"{OLDEST}/weight", "2", [], ["      weight: 2"]),
        (f"{OLDEST}/critical", True, [], ["      critical: true"]),
        (
            "rubric/parallel/given/critical",
            False,
            ["    given: {description: A name is given, check: given(name), critical: true}  # a gate"],
            ["    given: {description: A name is given, check: given(name), critical: false}  # a gate"],
        ),
        (
            "rubric/parallel/given/weight",
            "2.50",
            ["    given: {description: A name is given, check: given(name), critical: true}  # a gate"],
            ["    given: {description: A name is given, check: given(name), critical: true, weight: 2.5}  # a gate"],
        ),
        ("rubric/parallel/height/weight", "3", ["      weight: 0.5 # little"], ["      weight: 3 # little"]),
        ("rubric/parallel/score/critical", True, [], ["      critical: true"]),
        (
            "rubric/parallel/height/parallel/tall/claim",
            "{name} is high,\nand\n\nwhite.",
            ["            {name} is tall,", "            and white."],
            ["            {name} is high,", "            and", "            white."],
        ),
        (
            "rubric/parallel/height/parallel/white/claim",
            "{name} isn't 'red'",
            ["          claim: '{name} isn''t red'"],
            ["          claim: '{name} isn''t ''red'''"],
        ),
        (
            "rubric/parallel/score/graded/half/claim",
            "{name} stands",
            ['        half: {score: 0.5, claim: "{name} is {year} years old" , }'],
            ['        half: {score: 0.5, claim: "{name} stands" , }'],
        ),
        (
            "rubric/parallel/score/graded/half/score",
            "0.25",
            ['        half: {score: 0.5, claim: "{name} is {year} years old" , }'],
            ['        half: {score: 0.25, claim: "{name} is {year} years old" , }'],
        ),
        ("version", "2", [], ['version: "2"']),
        (
            "description",
            "Which lighthouse is the newest?",
            ["  Which lighthouse is the", "  oldest?"],
            ["  Which lighthouse is the newest?"],
        ),
    ],
)
def test_only_the_value_changes(field: str, value: str | bool, removed: list[str], added: list[str]):
    text = edit_task(SOURCE, {field: value}, "t.yaml")
    assert changed_lines(text) == (removed, added)
    compile_task(text)


def test_several_values_at_once():
    text = edit_task(
        SOURCE,
        {f"{OLDEST}/claim": "{name}", f"{OLDEST}/weight": "2", f"{OLDEST}/critical": True, "version": "7"},
        "t.yaml",
    )
    oldest = compile_task(text).task.rubric.children["oldest"]
    assert (oldest.weight, oldest.critical) == (2, True)
    assert compile_task(text).task.version == "7"
    assert [line for line in SOURCE.splitlines() if "#" in line and "claim:" not in line] == [
        line for line in text.splitlines() if "#" in line and "claim:" not in line
    ]


def test_equal_values_change_nothing():
    document = read_document(SOURCE, "t.yaml")
    values = {f"{node.path}/{key}": value for node in task_nodes(document) for key, value in node.values.items()}
    texts = {key: value if isinstance(value, bool) else str(value) for key, value in values.items()}
    assert edit_task(SOURCE, texts | {key: str(value) for key, value in head_values(document).items()}, "t") == SOURCE


def test_carriage_returns_of_a_form_are_not_a_change():
    tall = "rubric/parallel/height/parallel/tall/claim"
    assert edit_task(SOURCE, {tall: "{name} is tall,\r\nand white."}, "t.yaml") == SOURCE


def test_line_breaks_of_the_file_are_kept():
    source = SOURCE.replace("\n", "\r\n")
    text = edit_task(source, {f"{OLDEST}/weight": "2", f"{OLDEST}/claim": "{name}"}, "t.yaml")
    assert text.count("\n") == text.count("\r\n") == source.count("\r\n") + 1


@pytest.mark.parametrize("value", ["heavy", "", "1e999", "1, critical: true", "2\n      critical: true", "{a: b}"])
def test_weight_that_is_no_number_is_reported_at_its_place(value: str):
    text = edit_task(SOURCE, {"rubric/parallel/height/weight": value}, "t.yaml")
    with pytest.raises(InvalidTask) as caught:
        compile_task(text)
    [problem] = caught.value.problems
    assert text.splitlines()[problem.line - 1].startswith("      weight: ")
    assert field_of(read_document(text, "t.yaml"), problem) == "rubric/parallel/height/weight"


def test_problems_are_assigned_to_fields_and_nodes():
    text = edit_task(SOURCE, {f"{OLDEST}/claim": "{nam} is the oldest"}, "t.yaml")
    with pytest.raises(InvalidTask) as caught:
        compile_task(text)
    [problem] = caught.value.problems
    assert (problem.line, field_of(read_document(text, "t.yaml"), problem)) == (15, f"{OLDEST}/claim")
    text = SOURCE.replace("sources: urls", "sources: url")
    with pytest.raises(InvalidTask) as caught:
        compile_task(text)
    [problem] = caught.value.problems
    assert field_of(read_document(text, "t.yaml"), problem) == OLDEST


@pytest.mark.parametrize("field", ["format", "rubric", f"{OLDEST}/sources", "rubric/parallel/none/claim", "", "//"])
def test_other_fields_are_refused(field: str):
    with pytest.raises(InvalidTask, match="cannot be changed here"):
        edit_task(SOURCE, {field: "1"}, "t.yaml")


def test_nodes_of_a_broken_file_are_listed():
    source = "format: 2\nrubric:\n  parallel:\n    a: {claim: 5, weight: [1]}\n    b: 7\n    c: {each: {check: x}}\n"
    nodes = task_nodes(read_document(source, "t.yaml"))
    assert [(node.id, node.kind, node.line, dict(node.values)) for node in nodes] == [
        ("a", "claim", 4, {"claim": 5, "weight": "", "critical": False})
    ]
    assert task_nodes(read_document("- a\n", "t.yaml")) == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_claim_of_a_shipped_task_can_be_changed(path: Path):
    source = path.read_text("utf-8")
    before = read_document(source, path.name)
    nodes = task_nodes(before)
    assert len(nodes) > 10
    values = {f"{node.path}/claim": f"{node.values['claim']}: so" for node in nodes if "claim" in node.values}
    weights = {f"{node.path}/weight": "7" for node in nodes if "weight" in node.values}
    text = edit_task(source, values | weights, path.name)
    after = task_nodes(read_document(text, path.name))
    assert [node.values.get("claim") for node in after] == [
        f"{node.values['claim']}: so" if "claim" in node.values else None for node in nodes
    ]
    assert {node.values.get("weight") for node in after} <= {7, None}


@settings(deadline=None)
@given(
    tasks,
    st.text(st.characters(codec="utf-8"), max_size=40) | st.text(string.printable, max_size=20),
    st.floats(0.001, 1e6),
    st.booleans(),
)
def test_any_text_can_be_written_to_any_field(task: dict[str, Any], text: str, weight: float, critical: bool):
    source = write_task(TaskFile.model_validate(task))
    nodes = task_nodes(read_document(source, "t.yaml"))
    values: dict[str, str | bool] = {"version": text, "description": text}
    for node in nodes:
        given: dict[str, str | bool] = {"critical": critical, "weight": str(weight)}
        values |= {f"{node.path}/{key}": given.get(key, text) for key in node.values if key not in ("min", "max")}
    document = read_document(edit_task(source, values, "t.yaml"), "t.yaml")
    expected = text.replace("\r\n", "\n")
    assert head_values(document) == {"description": expected, "version": expected}
    for node in task_nodes(document):
        assert node.values.get("weight", weight) == weight
        assert node.values.get("critical", critical) is critical
        assert node.values.get("claim", expected) == expected
