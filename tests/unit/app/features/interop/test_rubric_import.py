"""Rubrics of other tools become task files that compile, and everything else is reported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers.submission import Answer
from app.features.interop.rubrics import RubricFormat
from app.features.interop.rubrics.conversion import import_rubrics
from app.features.interop.rubrics.draft import Difference, ImportedTask
from app.features.interop.rubrics.sources import MAX_ROWS, Malformed, fill
from judges.context import ExtractionService, JudgeContext, SettlementService
from judges.yaml_tasks.compiler import MAX_LEAVES, CompiledTask, compile_task
from rubrics.node import RubricNode
from rubrics.rubric import Rubric
from rubrics.scoring import tree_score

NAMES = {
    RubricFormat.HEALTHBENCH: "rows.json",
    RubricFormat.PAPERBENCH: "tree.json",
    RubricFormat.HARBOR: "judge.toml",
    RubricFormat.PROMPTFOO: "config.yaml",
    RubricFormat.OPENAI: "eval.json",
}


def imported(format: RubricFormat, content: Any, name: str = "", **options: Any) -> list[ImportedTask]:
    text = content if isinstance(content, str) else json.dumps(content)
    return import_rubrics(format, text.encode("utf-8", "surrogatepass"), name or NAMES[format], **options)


def compiled(task: ImportedTask) -> CompiledTask:
    assert task.text is not None, task.differences
    return compile_task(task.text)


def claims(task: ImportedTask) -> list[str]:
    return [leaf.claim.text for leaf in compiled(task).sample_rubric().leaves() if leaf.claim]


def score(task: ImportedTask, passed: Mapping[str, bool]) -> float:
    """Return the score of the task if these leaves pass and all others fail."""
    return tree_score(compiled(task).sample_rubric().root, lambda leaf: float(passed.get(leaf.id, False)))


def difference(task: ImportedTask, what: str) -> Difference:
    found = [each for each in task.differences if each.what.startswith(what)]
    assert len(found) == 1, task.differences
    return found[0]


def fault(format: RubricFormat, content: Any, name: str = "", **options: Any) -> str:
    with pytest.raises(Malformed) as raised:
        imported(format, content, name, **options)
    return str(raised.value)


# HealthBench


def row(*points: float, **changes: Any) -> dict[str, Any]:
    rubrics = [{"criterion": f"Says thing {n}", "points": each, "tags": []} for n, each in enumerate(points)]
    return {
        "prompt_id": "p-1",
        "prompt": [{"role": "user", "content": "Is {this} safe?"}],
        "rubrics": rubrics,
    } | changes


def test_signed_points_become_weights() -> None:
    (task,) = imported(RubricFormat.HEALTHBENCH, row(5, -3))

    assert task.id == "p_1"
    assert compiled(task).description == "Is {this} safe?"
    assert claims(task) == [
        "The answer meets this criterion: Says thing 0",
        "The answer does not meet this criterion: Says thing 1",
    ]
    assert "score = (5 s + 3) / 8" in difference(task, "negative points").why


@given(st.lists(st.integers(-10, 10).filter(bool), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_score_of_signed_points_is_linear_in_the_original_score(points: list[int], random: Any) -> None:
    met = [random.random() < 0.5 for _ in points]
    (task,) = imported(RubricFormat.HEALTHBENCH, row(*points))
    positive, negative = sum(p for p in points if p > 0), -sum(p for p in points if p < 0)
    earned = sum(p for p, is_met in zip(points, met, strict=True) if is_met)

    ids = [leaf.id for leaf in compiled(task).sample_rubric().leaves() if leaf.claim]
    passed = {id: is_met == (p > 0) for id, is_met, p in zip(ids, met, points, strict=True)}

    assert score(task, {**passed, "answer_given": True}) == pytest.approx((earned + negative) / (positive + negative))
    if negative:
        assert score(task, {**passed, "answer_given": False}) == 0


def test_conversations_are_kept_in_order_and_tags_are_reported_once() -> None:
    content = row(1, 2, prompt=[{"role": "user", "content": "A?"}, {"role": "assistant", "content": "B."}])
    for each in content["rubrics"]:
        each["tags"] = ["axis:accuracy"]
    (task,) = imported(RubricFormat.HEALTHBENCH, content)

    assert compiled(task).description == "user: A?\n\nassistant: B."
    assert (difference(task, "tags").count, difference(task, "tags").where) == (2, "rows.json: rubrics[0].tags")


def test_rows_of_json_lines_are_tasks_with_unique_ids() -> None:
    lines = "\n".join(json.dumps(each) for each in (row(1), row(2), row(3, prompt_id=None)))
    tasks = imported(RubricFormat.HEALTHBENCH, lines, "our rubrics.jsonl")

    assert [task.id for task in tasks] == ["p_1", "p_1_2", "our_rubrics"]


def test_all_broken_rows_are_named_with_their_line() -> None:
    rows = [row(1), row(1, rubrics=[{"points": 1}]), row(1), row(1, rubrics=[{"criterion": "x", "points": "many"}])]
    message = fault(RubricFormat.HEALTHBENCH, "\n".join(map(json.dumps, rows)), "rows.jsonl")

    assert message.splitlines() == [
        "rows.jsonl:2: rubrics[0].criterion: 'criterion' must be text, found nothing",
        "rows.jsonl:4: rubrics[0].points: 'points' must be a number between -1e9 and 1e9, found text 'many'",
    ]


# PaperBench


def test_tree_keeps_its_weighted_mean() -> None:
    leaf = {"sub_tasks": [], "task_category": "Code Development"}
    inner = [
        {"id": "c", "requirements": "C", "weight": 1, **leaf},
        {"id": "d", "requirements": "D", "weight": 3, **leaf},
    ]
    tree = {
        "id": "root",
        "requirements": "The paper is reproduced",
        "weight": 1,
        "sub_tasks": [
            {"id": "a", "requirements": "A {x}", "weight": 2, **leaf},
            {"id": "b", "requirements": "B", "weight": 1, "sub_tasks": inner},
            {"id": "e", "requirements": "E", "weight": 0, **leaf},
        ],
    }
    (task,) = imported(RubricFormat.PAPERBENCH, tree)

    assert compiled(task).description == "The paper is reproduced"
    assert claims(task) == [f"The answer meets this criterion: {each}" for each in ("A {x}", "C", "D")]
    assert score(task, {"B/D": True}) == pytest.approx(0.75 / 3)
    assert difference(task, "task_category").count == 3
    assert difference(task, "weight: 0").left_out


def test_branches_below_the_deepest_level_are_reported() -> None:
    tree: dict[str, Any] = {"id": "leaf", "requirements": "deep", "weight": 1}
    for level in range(30):
        flat = {"id": "flat", "requirements": f"flat {level}", "weight": 1}
        tree = {"id": "x", "requirements": f"level {level}", "weight": 1, "sub_tasks": [flat, tree]}
    (task,) = imported(RubricFormat.PAPERBENCH, tree)

    assert len(claims(task)) == 19
    assert any("use fewer levels" in each.why for each in task.differences)


# Harbor

JUDGE = """
[judge]
judge = "some/model"
files = ["/app/main.py"]
[[criterion]]
description = "Is it correct?"
[[criterion]]
name = "readable"
description = "How readable is it?"
type = "likert"
points = 3
weight = 2.0
[[criterion]]
description = "Rate the coverage"
type = "numeric"
min = 0
max = 100
"""


def test_scales_become_graded_nodes() -> None:
    (task,) = imported(RubricFormat.HARBOR, JUDGE, question="Write a parser.")

    assert (task.id, compiled(task).description) == ("judge", "Write a parser.")
    assert claims(task)[1:3] == [
        f"On a scale from 1 to 3, the answer scores at least {each} on this criterion: How readable is it?"
        for each in (2, 3)
    ]
    assert score(task, {"readable/step_1": True}) == pytest.approx(0.5 * 2 / 4)
    assert score(task, {"Rate_the_coverage/step_1": True, "Rate_the_coverage/step_3": True}) == pytest.approx(0.25 / 4)
    assert difference(task, "judge.files").left_out
    assert not any(each.what == "question" for each in task.differences)


def test_aggregations_are_converted_or_reported() -> None:
    (all_pass,) = imported(RubricFormat.HARBOR, JUDGE + '[scoring]\naggregation = "all-pass"')
    (threshold,) = imported(RubricFormat.HARBOR, JUDGE + '[scoring]\naggregation = "threshold"\nthreshold = 0.7')

    assert score(all_pass, {"Is_it_correct": True}) == 0
    assert difference(threshold, "threshold: 0.7").where == "judge.toml: scoring"
    assert score(threshold, {"Is_it_correct": True}) == pytest.approx(0.25)
    assert difference(threshold, "question").why.endswith("use --question")


# promptfoo

CONFIG = """
prompts: ["Tell me about {{topic}}"]
providers: [some:model]
assertionTemplates:
  polite: {type: llm-rubric, value: Is polite, weight: 3}
defaultTest:
  assert: [{$ref: "#/assertionTemplates/polite"}]
tests:
  - description: Ferries
    vars: {topic: "ferries {{x}}"}
    threshold: 0.5
    assert:
      - {type: llm-rubric, value: "Covers {{ topic }}", threshold: 0.8}
      - {type: not-icontains-any, value: "car, bus"}
      - {type: javascript, value: process.exit()}
      - {type: llm-rubric, value: "file://rubric.txt"}
      - {type: llm-rubric, value: "{{ topic | upper }}"}
      - {type: llm-rubric, value: counted elsewhere, weight: 0}
      - type: assert-set
        weight: 2
        assert: [{type: equals, value: it's}, {type: contains, value: "'\\""}]
"""


def test_assertions_become_claims_and_checks() -> None:
    (task,) = imported(RubricFormat.PROMPTFOO, CONFIG)
    rubric = compiled(task).sample_rubric()

    assert compiled(task).description == "Tell me about ferries {{x}}"
    assert claims(task) == [
        "The answer meets this criterion: Is polite",
        "The answer meets this criterion: Covers ferries {{x}}",
    ]
    assert [(node.id, node.weight) for node in rubric.root.children] == [
        ("Is_polite", 3), ("Covers_ferries_x", 1), ("not_icontains_any_car_bus", 1), ("assert_set", 2),
    ]  # fmt: skip
    assert [(each.what, each.where) for each in task.differences if each.left_out] == [
        ("javascript", "config.yaml:15: tests[0].assert[2]"),
        ("llm-rubric: value", "config.yaml:16: tests[0].assert[3]"),
        ("llm-rubric: value", "config.yaml:17: tests[0].assert[4]"),
        ("weight: 0", "config.yaml:18: tests[0].assert[5]"),
        ("contains '\"", "config.yaml:21: tests[0].assert[6].assert[1]"),
        ("providers", "config.yaml:3: providers"),
    ]
    assert difference(task, "threshold: 0.5").where == "config.yaml:9: tests[0]"
    assert difference(task, "threshold: 0.8 of llm-rubric").left_out is False


@pytest.mark.parametrize(
    ("answer", "passes"), [("We go by ferry.", True), ("A CAR is fine.", False), ("Scars heal.", True), ("", False)]
)
def test_checks_read_the_answer(answer: str, passes: bool) -> None:
    (task,) = imported(RubricFormat.PROMPTFOO, CONFIG)

    assert checks_of(task, answer)["not_icontains_any_car_bus"] is passes


def checks_of(task: ImportedTask, answer: str) -> dict[str, bool | None]:
    """Return the checks of the task, by id, for an answer."""
    rubric = Rubric("task", "question")
    context = JudgeContext(
        rubric=rubric,
        task="question",
        answer=Answer(name="answer_1.md", text=answer),
        reading=cast(ExtractionService, None),  # the task extracts nothing
        settling=cast(SettlementService, None),
    )
    compiled(task).declare(context, {}, answer)
    return {leaf.id: leaf.check for leaf in rubric.leaves()}


# OpenAI

GRADED = {"role": "user", "content": "Grade {{ sample.output_text }} for {{item.question}}"}
EXACT = {
    "type": "string_check",
    "name": "exact",
    "input": "{{sample.output_text}}",
    "reference": "{{ item.answer }}",
    "operation": "ilike",
}
SCORE = {"type": "score_model", "name": "quality", "model": "m", "input": [GRADED], "range": [0, 10]}
LABEL = {
    "type": "label_model",
    "name": "tone",
    "model": "m",
    "input": [{"role": "user", "content": {"type": "input_text", "text": "Which tone?"}}],
    "labels": ["kind", "rude"],
    "passing_labels": ["kind"],
}
PYTHON = {"type": "python", "name": "code", "source": "import os; os._exit(3)"}
ROWS = (
    b'{"item": {"question": "Capital of France?", "answer": "Paris"}}\n{"question": "Q2", "answer": "A2"}',
    "r.jsonl",
)


def test_graders_are_filled_with_each_row() -> None:
    definition = {"object": "eval", "id": "e", "name": "Capitals", "testing_criteria": [EXACT, SCORE, LABEL, PYTHON]}
    first, second = imported(RubricFormat.OPENAI, definition, rows=ROWS)

    assert [first.id, second.id] == ["Capitals_1", "Capitals_2"]
    assert compiled(first).description == "Capital of France?"
    assert "check: contains(answer, 'Paris')" in str(first.text)
    assert "check: contains(answer, 'A2')" in str(second.text)
    assert claims(first)[0] == (
        "On a scale from 0 to 10, the answer scores at least 2.5 on this criterion: "
        "Grade [the answer] for Capital of France?"
    )
    assert claims(first)[-1].startswith(
        "Of the labels kind, rude, the right one for the answer is kind, by these rules"
    )
    assert "not executed" in difference(first, "python: code").why


def test_graders_that_need_rows_are_reported_without_them() -> None:
    (task,) = imported(RubricFormat.OPENAI, [EXACT, LABEL])

    assert len(claims(task)) == 1
    assert difference(task, "string_check: exact").why.endswith("give the rows of the data set with --rows")


@pytest.mark.parametrize(
    ("formula", "score_of_a", "reported"),
    [("0.8 * a + 0.2 * b", 0.8, False), ("3*a + b", 0.75, True), ("max(a, b)", 0.5, True), ("a + b * -1", 0.5, True)],
)
def test_multi_graders_are_weighted_by_their_formula(formula: str, score_of_a: float, reported: bool) -> None:
    graders = {name: {**LABEL, "name": name} for name in "ab"}
    (task,) = imported(
        RubricFormat.OPENAI, {"type": "multi", "name": "both", "graders": graders, "calculate_output": formula}
    )

    assert score(task, {"both/a": True}) == pytest.approx(score_of_a)
    assert any(each.what.startswith("calculate_output") for each in task.differences) is reported


def test_graders_of_fine_tuning_jobs_and_lists_of_evals_are_found() -> None:
    assert len(imported(RubricFormat.OPENAI, {"grader": LABEL})) == 1
    tasks = imported(
        RubricFormat.OPENAI, {"object": "list", "data": [{"name": n, "testing_criteria": [LABEL]} for n in "ab"]}
    )
    assert [task.id for task in tasks] == ["a", "b"]


def test_a_threshold_becomes_one_claim() -> None:
    (task,) = imported(RubricFormat.OPENAI, {**SCORE, "input": [{"content": "Clear?"}], "pass_threshold": 7})

    assert claims(task) == ["On a scale from 0 to 10, the answer scores at least 7 on this criterion: Clear?"]
    assert difference(task, "pass_threshold: 7").left_out is False


# Thresholds

CONTAINS: dict[str, Any] = {"type": "contains", "value": "ferry"}
GRADE = {**SCORE, "input": [{"content": "Clear?"}]}
SIMILAR = {"type": "text_similarity", "name": "near", "pass_threshold": 0.4}


@pytest.mark.parametrize(
    ("format", "content", "what", "left_out"),
    [
        (RubricFormat.HARBOR, '[scoring]\naggregation = "threshold"\n', "threshold: 0.5", False),
        (RubricFormat.HARBOR, "[scoring]\nthreshold = 0.4\n", "threshold", True),
        (RubricFormat.HARBOR, "[judge]\nthreshold = 0.4\n", "judge.threshold", True),
        (RubricFormat.PROMPTFOO, {"threshold": 0.4}, "threshold: 0.4", False),
        (RubricFormat.PROMPTFOO, {}, "test without threshold", False),
        (RubricFormat.PROMPTFOO, {"assert": [{**CONTAINS, "threshold": 0.4}]}, "threshold: 0.4 of contains", False),
        (RubricFormat.PROMPTFOO, {"assert": [CONTAINS, {"type": "similar", "value": "x", "threshold": 0.4}]},
         "similar with threshold: 0.4", True),
        (RubricFormat.PROMPTFOO, {"assert": [{"type": "assert-set", "threshold": 0.4, "assert": [CONTAINS]}]},
         "threshold: 0.4", False),
        (RubricFormat.OPENAI, [{**GRADE, "pass_threshold": 4}], "pass_threshold: 4", False),
        (RubricFormat.OPENAI, [LABEL, SIMILAR], "text_similarity with pass_threshold: 0.4", True),
        (RubricFormat.OPENAI, [{"type": "multi", "name": "m", "graders": {"a": {**GRADE, "pass_threshold": 4}},
                                "calculate_output": "a", "pass_threshold": 0.4}], "pass_threshold", True),
    ],
)  # fmt: skip
def test_every_threshold_is_reported(format: RubricFormat, content: Any, what: str, left_out: bool) -> None:
    if format is RubricFormat.HARBOR:
        content = f'{content}[[criterion]]\ndescription = "Is it correct?"\n'
    if format is RubricFormat.PROMPTFOO:
        content = {"prompts": ["Tell me"], "tests": [{"assert": [CONTAINS], **content}]}
    (task,) = imported(format, content)

    assert task.text is not None
    assert [each.left_out for each in task.differences if each.what.startswith(what)][-1] is left_out


def test_threshold_of_a_test_replaces_the_one_of_all_tests() -> None:
    config = {
        "defaultTest": {"threshold": 0.9},
        "tests": [{"assert": [CONTAINS], "threshold": 0.4}, {"assert": [CONTAINS]}],
    }
    first, second = imported(RubricFormat.PROMPTFOO, config)

    assert [each.what for each in first.differences if "threshold" in each.what] == ["threshold: 0.4"]
    assert [each.what for each in second.differences if "threshold" in each.what] == ["threshold: 0.9"]


# Bad input


@pytest.mark.parametrize(
    ("format", "content", "name", "message"),
    [
        (RubricFormat.HEALTHBENCH, '{"prompt":\n  x}', "", "rows.json:2:3: not JSON"),
        (RubricFormat.HEALTHBENCH, "{}\n{}", "", "must be named .jsonl"),
        (RubricFormat.HEALTHBENCH, '{"a": NaN}', "", "NaN is not a number"),
        (RubricFormat.HEALTHBENCH, "9" * 5000, "", "not JSON"),
        (RubricFormat.HEALTHBENCH, "[" * 100_000, "", "nested too deeply"),
        (RubricFormat.HEALTHBENCH, "3", "", "expected an object with 'prompt_id'"),
        (RubricFormat.HEALTHBENCH, "[]", "", "contains no rubric"),
        (RubricFormat.HEALTHBENCH, "{}\n" * (MAX_ROWS + 1), "a.jsonl", f"a.jsonl:{MAX_ROWS + 1}: more than"),
        (RubricFormat.PAPERBENCH, {"requirements": "x", "sub_tasks": {}}, "", "'sub_tasks' must be a list"),
        (RubricFormat.PAPERBENCH, {"requirements": "x", "weight": -1}, "", "'weight' must not be negative"),
        (RubricFormat.PAPERBENCH, {"requirements": "x", "weight": True}, "", "'weight' must be a number"),
        (RubricFormat.HARBOR, "[judge\n", "", "judge.toml: not TOML"),
        (RubricFormat.HARBOR, "[judge]\n" + "a." * 500_000 + "a = 1", "", "judge.toml:2: not read: a key with more"),
        (RubricFormat.HARBOR, JUDGE + 'type = "x"\n', "", "not TOML"),
        (RubricFormat.HARBOR, '[[criterion]]\ndescription = "x"\ntype = "five"', "", "use binary, likert or numeric"),
        (RubricFormat.HARBOR, '[[criterion]]\ndescription = "x"\ntype = "likert"\npoints = 1e8', "", "from 2 to 20"),
        (RubricFormat.HARBOR, '[[criterion]]\ndescription = "x"\ntype = "numeric"\nmin = 2', "", "above 'min'"),
        (RubricFormat.HARBOR, JUDGE + '[scoring]\naggregation = "sum"', "", "unknown aggregation 'sum'"),
        (RubricFormat.PROMPTFOO, "a: &x [1]\nb: [*x, *x]", "", "config.yaml:1:4: anchors"),
        (RubricFormat.PROMPTFOO, "tests: !!python/object/apply:os.system [ls]", "", "tags"),
        (RubricFormat.PROMPTFOO, "tests: file://tests.csv", "", "config.yaml:1: tests: 'tests' must be a list"),
        (RubricFormat.PROMPTFOO, "tests: [{assert: [{$ref: x}]}]", "", "no assertion template 'x'"),
        (RubricFormat.PROMPTFOO, "prompts: [x]", "", "config.yaml:1: 'tests' is missing or empty"),
        (RubricFormat.HEALTHBENCH, {"prompt": "x"}, "", "rows.json: 'rubrics' is missing or empty"),
        (RubricFormat.OPENAI, {"name": "x"}, "", "no graders"),
        (RubricFormat.OPENAI, {**EXACT, "operation": "is"}, "", "use eq, ne, like or ilike"),
        (RubricFormat.OPENAI, {**LABEL, "labels": "kind"}, "", "'labels' must be a list"),
        (RubricFormat.OPENAI, {**SCORE, "input": [{"content": "x"}], "range": [1, 1]}, "", "the lower one first"),
    ],
)
def test_malformed_files_are_errors_with_their_place(
    format: RubricFormat, content: Any, name: str, message: str
) -> None:
    assert message in fault(format, content, name)


def test_text_that_is_not_utf_8_is_an_error() -> None:
    with pytest.raises(Malformed, match=r"rows\.json:2: not UTF-8"):
        import_rubrics(RubricFormat.HEALTHBENCH, b'{\n"\xff": 1}', "rows.json")


def test_too_many_leaves_are_reported_and_nothing_is_written() -> None:
    (task,) = imported(RubricFormat.HEALTHBENCH, row(*[1] * (MAX_LEAVES + 1)))

    assert task.text is None
    assert f"more than {MAX_LEAVES} leaves" in difference(task, "task").why


def test_too_many_entries_of_a_list_are_refused_before_they_are_read() -> None:
    message = fault(RubricFormat.HEALTHBENCH, [{}] * (MAX_ROWS + 1), "rows.json")

    assert message == f"rows.json: {MAX_ROWS + 1} entries (maximum {MAX_ROWS}); split the file"


def test_a_criterion_that_is_too_long_is_reported_and_the_others_are_kept() -> None:
    content = row(1, 2)
    content["rubrics"][0]["criterion"] = "long " * 500
    (task,) = imported(RubricFormat.HEALTHBENCH, content)

    assert claims(task) == ["The answer meets this criterion: Says thing 1"]
    assert "shorten" in difference(task, "long").why


def test_values_of_templates_are_not_templates() -> None:
    assert fill("{{ a.b }} and {{c}}", {"a": {"b": "{{c}}"}, "c": [1]}) == "{{c}} and [1]"


# Any content

TEXTS = st.text(max_size=60) | st.sampled_from(
    ["{{x}}", "{a}", "}", "'\"", "a\nb\r\u2028", "- : #", "é\x00", "12", "no"]
)
POINTS = st.integers(-10, 10) | st.floats(-1e9, 1e9) | st.just(1e-300)


def trees() -> st.SearchStrategy[dict[str, Any]]:
    leaf = st.fixed_dictionaries(
        {"id": TEXTS, "requirements": TEXTS.map(lambda text: f"x{text}"), "weight": POINTS.map(abs)}
    )
    return st.recursive(
        leaf,
        lambda inner: st.builds(
            lambda node, children: {**node, "sub_tasks": children}, leaf, st.lists(inner, max_size=4)
        ),
        max_leaves=12,
    )


SIGNED = st.fixed_dictionaries(
    {
        "prompt": TEXTS,
        "rubrics": st.lists(
            st.fixed_dictionaries({"criterion": TEXTS.map(lambda text: f"x{text}"), "points": POINTS}), min_size=1
        ),
    }
)
ASSERTIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["llm-rubric", "not-contains-all", "equals", "cost", "not-g-eval"]), "value": TEXTS},
        optional={"weight": POINTS.map(abs), "threshold": POINTS, "metric": TEXTS},
    ),
    max_size=5,
)
GRADERS = st.lists(
    st.builds(
        lambda grader, text, name: grader | {"name": name} | ({"reference": text} if "reference" in grader else {}),
        st.sampled_from([EXACT, SCORE, LABEL, PYTHON, {**EXACT, "operation": "ne"}]),
        TEXTS,
        TEXTS,
    ),
    min_size=1,
    max_size=5,
)
CONTENTS = st.one_of(
    st.tuples(st.just(RubricFormat.HEALTHBENCH), SIGNED),
    st.tuples(st.just(RubricFormat.PAPERBENCH), trees()),
    st.tuples(st.just(RubricFormat.PROMPTFOO), st.builds(lambda each: {"tests": [{"assert": each}]}, ASSERTIONS)),
    st.tuples(st.just(RubricFormat.OPENAI), GRADERS),
)


def parts(value: Any) -> int:
    """Return the number of criteria in a source. A branch without weight is reported as one."""
    if isinstance(value, list):
        return sum(map(parts, value))
    if not isinstance(value, dict):
        return 0
    is_part = any(key in value for key in ("criterion", "value", "input", "source")) or (
        "requirements" in value and (not value.get("sub_tasks") or value["weight"] == 0)
    )
    return 1 if is_part else sum(map(parts, value.values()))


@given(CONTENTS)
def test_every_criterion_is_compiled_or_reported(content: tuple[RubricFormat, Any]) -> None:
    format, source = content
    name = "config.json" if format is RubricFormat.PROMPTFOO else ""
    for task in imported(format, source, name):
        left_out = sum(each.count for each in task.differences if each.left_out)
        if task.text is None:
            assert difference(task, "task").left_out
        else:
            nodes: list[RubricNode] = list(compiled(task).sample_rubric().leaves())
            owners = {node.id.rpartition("/step_")[0] or node.id for node in nodes} - {"answer_given"}
            assert len(owners) + left_out >= parts(
                source.get("sub_tasks") or source if isinstance(source, dict) else source
            )


# fmt: off
KEYS = st.sampled_from([
    "prompt", "rubrics", "criterion", "points", "requirements", "weight", "sub_tasks", "description", "type",
    "scoring", "tests", "assert", "value", "vars", "prompts", "testing_criteria", "graders", "input", "content",
    "item", "range", "defaultTest", "threshold", "name", "id", "calculate_output", "data", "grader", "labels",
    "judge", "assertionTemplates",
])
# fmt: on
KINDS = st.sampled_from(["likert", "numeric", "llm-rubric", "assert-set", "multi", "score_model", "label_model", "{{"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | KINDS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(st.sampled_from(RubricFormat), ANYTHING)
def test_any_json_is_converted_or_rejected_with_its_place(format: RubricFormat, value: Any) -> None:
    try:
        tasks = imported(format, value, "any.json")
    except Malformed as error:
        assert str(error).startswith("any.json")
        return
    for task in tasks:
        if task.text is not None:
            compile_task(task.text)
