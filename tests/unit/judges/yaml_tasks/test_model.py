"""Task files as models: YAML -> task -> YAML, and the rubric that both compile to."""

from __future__ import annotations

import json
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judges.trial import try_judge
from judges.yaml_tasks.compiler import compile_task
from judges.yaml_tasks.document import InvalidTask, read_document
from judges.yaml_tasks.model import read_task, task_schema
from tests.fakes.yaml_documents import write_document

names = st.from_regex(r"f_[a-z0-9_]{0,6}", fullmatch=True)
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,6}", fullmatch=True)
lines = st.text(st.characters(codec="utf-8", exclude_characters="{}"), min_size=1, max_size=30).filter(str.strip)
scalars = st.sampled_from(["text", "number", "integer", "boolean", "date", "url"])
descriptions = st.none() | lines
PATHS = ["title", "person.name", "people.name"]
CONDITIONS = [
    "given(title)",
    "count(people) >= 2",
    "person.age > 3 and not given(day)",
    "matches(title, '[a-z]+ 12:30')",
]


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


extra_fields = st.recursive(
    descriptions | optional(type=scalars, description=lines) | optional(list_of=scalars, description=lines),
    lambda inner: st.builds(
        lambda key, fields: {key: fields},
        st.sampled_from(["fields", "list_of"]),
        st.dictionaries(names, inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)
KNOWN: dict[str, Any] = {
    "title": None,
    "day": {"type": "date"},
    "urls": {"list_of": "url"},
    "person": {"fields": {"name": "full name", "age": {"type": "number"}, "urls": {"list_of": "url"}}},
    "people": {"list_of": {"name": None, "urls": {"list_of": "url"}}},
}
common = optional(weight=st.floats(0.01, 100), applies_if=st.sampled_from(CONDITIONS))
claims = st.builds(
    lambda text, path, more: {"claim": f"{text} {{{path}}}", **more},
    lines,
    st.sampled_from(PATHS),
    optional(
        sources=st.sampled_from(["urls", "person.urls", "people.urls", ["urls", "https://a.example/x"]]),
        instruction=lines,
    ),
)
checks = st.builds(
    lambda check, more: {"check": check, **more}, st.sampled_from(CONDITIONS), optional(description=lines)
)
leaves = st.builds(lambda leaf, more: {**leaf, **more}, claims | checks, common)
graded = st.builds(
    lambda one, two, more: {"graded": {"a": {"score": 0.25, **one}, "b": {"score": 1, **two}}, **more},
    claims | checks,
    claims | checks,
    common,
)


def inner(nodes: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    group = st.builds(
        lambda order, children, more, base: {order: children, **more, **base},
        st.sampled_from(["parallel", "sequential"]),
        st.dictionaries(ids, nodes, min_size=1, max_size=3),
        optional(description=lines, all_or_nothing=st.booleans()),
        common,
    )
    for_each = st.builds(
        lambda items, each, more, base: {"for_each": items, "as": "one", "each": each, **more, **base},
        st.sampled_from(["people", "urls", [{"id": "k", "name": "Kestrel"}, {"id": "h", "name": "12:30"}]]),
        leaves,
        optional(description=lines, order=st.sampled_from(["parallel", "sequential"])),
        common,
    )
    return group | for_each


nodes = st.recursive(leaves | graded, inner, max_leaves=6)
tasks = st.builds(
    lambda head, fields, order, children: {
        "format": 1,
        "description": "What?",
        "fields": {**KNOWN, **fields},
        **head,
        "rubric": {order: children},
    },
    optional(
        version=lines,
        description=lines,
        extract=lines,
        evaluation_date=st.dates().map(lambda day: day.isoformat()),
    ),
    st.dictionaries(names, extra_fields, max_size=3),
    st.sampled_from(["parallel", "sequential"]),
    st.dictionaries(ids, nodes, min_size=1, max_size=3),
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tasks)
def test_every_valid_task_compiles(content: dict[str, Any]) -> None:
    compiled = compile_task(write_document(content))
    assert len(compiled.sample_rubric()) > 1
    values = {name: "x" for name in KNOWN} | {"person": {"name": "x", "age": 4.0, "urls": []}, "people": [], "urls": []}
    assert compiled.schema is not None
    assert compiled.schema.model_validate(values)


@given(tasks, st.data())
def test_one_wrong_key_is_reported_at_its_line(content: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(content["rubric"][next(iter(content["rubric"]))])))
    next(iter(content["rubric"].values()))[key]["wieght"] = 2
    text = write_document(content)

    try:
        read_task(text, "t.yaml")
    except InvalidTask as error:
        (problem,) = error.problems
        assert "wieght" in read_document(text, "t.yaml").text.split("\n")[problem.line - 1]
        assert "unknown key 'wieght' (did you mean 'weight'?); allowed are" in problem.message
    else:
        pytest.fail("the wrong key was accepted")


async def test_first_task_of_the_documentation_is_scored_as_described(tmp_path: Path) -> None:
    text = (Path(__file__).parents[4] / "docs" / "add-a-task.md").read_text("utf-8")
    path = tmp_path / "walden_pond.yaml"
    path.write_text(text.partition("```yaml\n")[2].partition("```")[0])
    page = "https://ponds.example/walden"

    judgement = await try_judge(
        path,
        f"- Depth: 102 feet\n- Year: 2001\n- Source: {page}\n",
        {page: "Walden Pond is 102 feet deep. The depth of Walden Pond was measured in 1939."},
    )

    assert len(path.read_text().splitlines()) <= 20
    assert judgement.score.value == 2 / 3


def test_published_schema_is_that_of_the_models() -> None:
    published = (Path(__file__).parents[4] / "docs" / "task.schema.json").read_text("utf-8")
    assert json.loads(published) == task_schema(), "run `assay tasks show --schema > docs/task.schema.json`"


@given(st.lists(st.sets(st.integers(0, 4)), min_size=5, max_size=5))
def test_prerequisites_compile_unless_they_have_a_cycle(needed: list[set[int]]) -> None:
    claims = {
        f"n{number}": {"claim": f"{number} {{title}}", "requires": [f"n{each}" for each in sorted(ids - {number})]}
        for number, ids in enumerate(needed)
    }
    text = write_document({"format": 1, "description": "?", "fields": {"title": None}, "rubric": {"parallel": claims}})
    graph = {id: claim["requires"] for id, claim in claims.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        with pytest.raises(InvalidTask, match=r"t.yaml:\d+:7: cycle: n\d \(line \d+\) waits for n\d"):
            compile_task(text, "t.yaml")
    else:
        nodes = compile_task(text, "t.yaml").sample_rubric().leaves()
        assert {node.id: list(node.requires) for node in nodes} == graph


def test_schema_describes_every_key() -> None:
    schema = task_schema()
    undescribed = [
        f"{title}.{key}"
        for title, part in {"task": schema, **schema["$defs"]}.items()
        for key, value in part.get("properties", {}).items()
        if "description" not in value
    ]
    assert undescribed == []
