from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from judges.analysis.recomputation import score_differences
from judges.context import JudgeContext
from judges.extractor import Extractor
from judges.llm.lexical import MODEL, LexicalClient
from judges.loader import load_judge, load_judges
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import MARK, JudgeKind, judge
from judges.result import native_summary
from judges.runner import Judgement, JudgeTools, run_judge
from judges.trial import TextPages, try_judge
from judges.verifier import Verifier
from judges.yaml_tasks.compiler import MAX_LEAVES, compile_task, yaml_judge
from judges.yaml_tasks.document import InvalidTask
from judges.yaml_tasks.model import task_schema
from rubrics.scoring import Score
from rubrics.tree import RubricNode, Strategy
from rubrics.verdict import Outcome, Reason, Verdict

HEAD = """format: 1
description: Which gauges does Pellard sell?
fields:
  gauges: {list_of: {name: , price: , hours: {type: number}, sources: {list_of: url}}}
  best: {fields: {name: , why: reason, sources: {list_of: url}}}
  day: {type: date}
  note:
rubric:
"""
PAGE = "https://pellard.example/gauges"
PAGES = {PAGE: "The Kestrel 4 costs 900 crowns.\n\nThe Heron 2 costs 1,350 crowns."}
KESTREL = {"name": "Kestrel 4", "price": "900 crowns", "hours": 96, "sources": [PAGE]}
HERON = {"name": "Heron 2", "price": "1,350 crowns", "hours": 120, "sources": [PAGE]}
BEST = {"name": "Kestrel 4", "why": "", "sources": []}
VALUES = {"gauges": [KESTREL, HERON], "best": BEST, "day": "", "note": ""}
ANSWER = f"""## Gauges

### Kestrel 4
- Price: 900 crowns
- Hours: 96
- Source: {PAGE}

### Heron 2
- Price: 1,350 crowns
- Hours: 120
- Source: {PAGE}
"""


def task(rubric: str, head: str = HEAD) -> str:
    return head + "".join(f"  {line}\n" for line in rubric.strip("\n").splitlines())


async def judged(rubric: str, **values: Any) -> Judgement:
    """Judge an answer with these extracted values by the lexical judge."""
    compiled = compile_task(task(rubric))

    @judge(task="gauges", description=compiled.description, strategy=compiled.task.rubric.strategy)
    async def gauges(context: JudgeContext) -> None:
        compiled.declare(context, {**VALUES, **values}, context.answer.text)

    llm, block_builder = LexicalClient(), BlockBuilder(b"any secret will do for a test")
    preparer = PagePreparer(block_builder)
    tools = JudgeTools(
        verifier=Verifier(llm, MODEL, block_builder=block_builder, pages=preparer),
        extractor=Extractor(llm, MODEL, block_builder=block_builder, pages=preparer),
        evidence_for=TextPages(PAGES).evidence_for,
        trials=1,
    )
    return await run_judge(getattr(gauges, MARK), Answer(name="answer_1.md", text=ANSWER), tools)


def leaf(judgement: Judgement, id: str) -> RubricNode:
    return judgement.rubric.find(id)


def verdict(judgement: Judgement, id: str) -> Verdict:
    found = leaf(judgement, id).verdict
    assert found is not None
    return found


def outcomes(judgement: Judgement) -> dict[str, str]:
    return {each.id: each.verdict.outcome.value for each in judgement.rubric.leaves() if each.verdict}


async def test_extracted_list_gives_one_child_per_item() -> None:
    judgement = await judged(
        """
parallel:
  gauges:
    for_each: gauges
    as: gauge
    each:
      description: "{position}. {gauge.name}"
      parallel:
        price: {claim: "The {gauge.name} costs {gauge.price}", sources: gauge.sources}
        hours: {check: gauge.hours > 100}
""",
    )

    assert outcomes(judgement) == {
        "gauges/1/price": "passed",
        "gauges/1/hours": "failed",
        "gauges/2/price": "passed",
        "gauges/2/hours": "passed",
    }
    assert leaf(judgement, "gauges/2").desc == "2. Heron 2"
    assert judgement.score.value == 0.75


@pytest.mark.parametrize(("bounds", "items"), [("", 2), ("min: 3", 3), ("max: 1", 1), ("min: 0", 2)])
async def test_number_of_items_is_bounded(bounds: str, items: int) -> None:
    rubric = "parallel:\n  g: {for_each: gauges, %s each: {claim: 'It costs {item.price}', sources: item.sources}}"
    judgement = await judged(rubric % (bounds and f"{bounds},"))

    assert len(leaf(judgement, "g").children) == items
    if items == 3:
        assert verdict(judgement, "g/3").reason is Reason.NO_SOURCE


async def test_node_that_does_not_apply_is_not_part_of_the_mean() -> None:
    rubric = """
parallel:
  best: {check: given(best.name)}
  empty: {parallel: {a: {check: given(note), applies_if: given(note)}}}
  dated: {check: given(best.why), applies_if: given(day), weight: 3}
  late: {claim: "'{best.name}' and 'x' are the same", requires: [dated]}
"""
    judgement = await judged(rubric)
    assert outcomes(judgement) == {"best": "passed", "late": "failed"}

    judgement = await judged(rubric, day="2025-08-16")
    assert outcomes(judgement) == {"best": "passed", "dated": "failed", "late": "skipped"}


@pytest.mark.parametrize(
    "rubric",
    [
        "parallel: {a: {check: given(day), applies_if: not given(note)}, b: {claim: '{note}', applies_if: given(day)}}",
        "parallel: {g: {sequential: {a: {check: given(day), applies_if: not given(note)}}}}",
        "parallel: {g: {for_each: gauges, min: 0, each: {check: given(item.name)}}}",
    ],
)
async def test_result_has_no_score_if_nothing_applies(rubric: str) -> None:
    judgement = await judged(rubric, note="There is one.", gauges=[])
    summary = native_summary(judgement, agent_name="me")
    nothing = {"value": None, "low": None, "high": None, "reason": "nothing_applies"}
    assert (summary["score"], summary["score_strict"], summary["status"]) == (nothing, nothing, "complete")
    assert list(score_differences({**summary, "script": {"kind": "native"}})) == []


@pytest.mark.parametrize(("name", "score"), [("Kestrel 4 of Pellard", 1.0), ("Kestrel 4", 0.3), ("Heron 2", 0.0)])
async def test_graded_node_gives_the_score_of_the_last_level_without_a_gap(name: str, score: float) -> None:
    judgement = await judged(
        """
parallel:
  exact:
    description: How exactly the best gauge is named
    graded:
      model: {score: 0.3, check: "contains(best.name, 'Kestrel 4')"}
      maker: {score: 1, check: "contains(best.name, 'Pellard')"}
""",
        best={**BEST, "name": name},
    )

    assert leaf(judgement, "exact").strategy is Strategy.SEQUENTIAL
    assert judgement.score.value == pytest.approx(score)


async def test_children_of_an_all_or_nothing_group_are_critical_and_the_group_is_not() -> None:
    judgement = await judged(
        """
parallel:
  pair:
    all_or_nothing: true
    parallel:
      a: {check: given(best.name)}
      b: {parallel: {c: {check: given(note)}, d: {check: given(best.name)}}}
  other: {check: given(best.name)}
""",
    )

    assert [node.id for node in judgement.rubric.walk() if node.critical] == [
        "pair/a",
        "pair/b",
        "pair/b/c",
        "pair/b/d",
    ]
    assert judgement.score.value == 0.5


async def test_requires_names_a_sibling_or_an_id_from_the_top() -> None:
    judgement = await judged(
        """
parallel:
  first: {parallel: {a: {check: given(note)}, b: {claim: "'{best.name}' and 'x' are the same", requires: [a]}}}
  second: {claim: "'{best.name}' and 'y' are the same", requires: [first/a]}
  each:
    for_each: gauges
    each: {parallel: {a: {check: given(item.name)}, b: {claim: "{item.name} exists", requires: [a]}}}
""",
    )

    assert leaf(judgement, "first/b").requires == ("first/a",)
    assert leaf(judgement, "second").requires == ("first/a",)
    assert leaf(judgement, "each/2/b").requires == ("each/2/a",)
    assert verdict(judgement, "second").blocked_by == "first/a"


def test_sources_are_fields_lists_or_addresses() -> None:
    rubric = task(
        """
parallel:
  a: {claim: "{note}", sources: gauges.sources}
  b: {claim: "{note}", sources: [best.sources, 'https://law.example/1']}
  c: {claim: "{note}", sources: https://law.example/2}
  d: {claim: "{note}"}
"""
    )
    found = {each.id: each.claim.sources for each in compile_task(rubric).sample_rubric().leaves() if each.claim}

    assert found == {"a": (), "b": ("https://law.example/1",), "c": ("https://law.example/2",), "d": None}


async def test_task_without_fields_judges_the_answer_without_an_extraction(tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(
        "format: 1\ndescription: Be brief.\nrubric:\n  parallel:\n    short: {check: words(answer) <= 5}\n"
        "    kind: {claim: Kestrel gauges are heavy}\n"
    )

    judgement = await try_judge(path, "Kestrel gauges are heavy.", {})

    assert judgement.extractions == ()
    assert outcomes(judgement) == {"short": "passed", "kind": "passed"}


def test_sample_rubric_shows_placeholders_and_every_node() -> None:
    compiled = compile_task(
        task(
            """
sequential:
  g:
    for_each: gauges
    as: gauge
    min: 3
    each: {claim: "{gauge.name} costs {gauge.price}", sources: gauge.sources, applies_if: given(gauge.price)}
  b: {let: {first: "item(gauges, 1)"}, parallel: {c: {claim: "{first.name} is {best.why}"}}}
"""
        )
    )

    rubric = compiled.sample_rubric()

    assert [each.desc for each in rubric.leaves()] == ["{gauge.name} costs {gauge.price}", "{first.name} is {best.why}"]
    assert rubric.root.strategy is Strategy.SEQUENTIAL
    assert compiled.lines("g/2") == (14, 14)
    assert compiled.lines("b/c") == (15, 15)
    assert compiled.lines("nothing") is None


def problems(rubric: str, head: str = HEAD) -> list[str]:
    with pytest.raises(InvalidTask) as caught:
        compile_task(task(rubric, head), "t.yaml")
    return str(caught.value).splitlines()


GOOD = "  z: {check: given(note)}\n"


@pytest.mark.parametrize(
    ("rubric", "place", "message"),
    [
        ("a: {claim: 'It is {titel}'}", "10:24", "no field 'titel'; the fields here are gauges, best"),
        ("a: {claim: 'It is {best.__class__.__mro__}'}", "10:29", "best has no field '__class__'"),
        ("a: {claim: It is so, sources: best.sources}", "10:9", "the claim names no field"),
        ("a: {claim: '{note}', sources: www.a.example}", "10:35", "write https://www.a.example"),
        ("a: {claim: '{note}', sources: best}", "10:35", "sources must be a url field"),
        ("a: {check: 1 == 1}", "10:9", "the check reads no field"),
        ("a: {check: given(note), weight: 0}", "10:29", "a weight of 0 has no effect; use another number"),
        ("a: {check: given(note), crtical: true}", "10:29",
         "unknown key 'crtical' (did you mean 'critical'?); allowed are"),
        ("a: {check: given(note), weight: -5, critical: true}", "10:5",
         "a penalty (weight -5) cannot be critical; remove `critical`"),
        ("g: {all_or_nothing: true, parallel: {a: {check: given(note)}, b: {check: given(day), weight: -5}}}", "10:67",
         "move it out of the critical group"),
        ("g: {sequential: {a: {check: given(note)}, b: {check: given(day), weight: -5}}}", "10:47",
         "cannot be a step of the sequence 'g'"),
        ("a: {weight: 2}", "10:5", "'a' has no content; a node has exactly one of"),
        ("a: {check: given(note), critical: yes}", "10:29", "critical is 'yes'; write true or false"),
        ("parallel:\n  a: {check: given(note), critical: true}\n  b: {check: given(day), critical: true}\n", "9:3",
         "every child of this parallel group is critical"),
        ("g: {critical: true, parallel: {a: {check: given(note), critical: false}}}", "10:60",
         "its group is critical"),
        ("parallel:\n  a: {claim: '{note}', requires: [b]}\n  b: {claim: '{day}', requires: [a]}\n", "10:26",
         "cycle: a (line 10) waits for b (line 11), which waits for a; remove one of them from `requires`"),
        ("parallel:\n  g: {requires: [h], parallel: {a: {claim: '{note}'}}}\n"
         "  h: {requires: [g], parallel: {a: {claim: '{day}'}}}\n", "10:9",
         "cycle: g (line 10) waits for g/a (line 10), which waits for h (line 11), which waits for h/a (line 11), "),
        ("parallel:\n  one: {claim: '{note}'}\n  b: {claim: '{day}', requires: [one2]}\n", "11:36",
         "no node 'one2' (did you mean 'one'?); name a sibling, or an id from the top"),
        ("g: {requires: [g/a], parallel: {a: {claim: '{note}'}}}", "10:20", "'g/a' is inside this node"),
        ("g: {let: {x: y, y: x}, parallel: {a: {check: given(x)}}}", "10:18",
         "cycle: 'y' is defined by 'x'; remove one of them"),
        ("g: {let: {x: y, y: note}, parallel: {a: {check: given(x)}}}", "10:18",
         "'y' is defined below; move it above 'x'"),
        ("g: {let: {note: day}, parallel: {a: {check: given(note)}}}", "10:15", "already used"),
        ("g: {for_each: note, each: {check: given(item)}}", "10:19", "for_each needs a list"),
        ("g: {for_each: [{id: a}, {id: b, n: 1}], each: {check: given(note)}}", "10:29",
         "every record needs the keys of the first one: id"),
        ("g: {for_each: gauges, min: 30, each: {check: given(item.name)}}", "10:5", "min is above max"),
        ("g: {graded: {a: {score: 0.5, check: given(note)}, b: {score: 0.4, check: given(day)}}}", "10:9",
         "must ascend"),
        ("a: {claim: '{note}', check: given(note)}", "10:5", "use either claim or check"),
        ("parallel:\n  root/a: {check: given(note)}\n", "10:5", "is not a valid name"),
    ],
)  # fmt: skip
def test_error_has_file_line_column_and_what_would_be_right(rubric: str, place: str, message: str) -> None:
    (line,) = problems(rubric if rubric.startswith(("parallel", "sequential")) else f"parallel:\n  {rubric}\n{GOOD}")
    assert line.startswith(f"t.yaml:{place}: ")
    assert message in line


def test_penalties_that_are_combined_with_gates_are_reported_with_the_other_problems() -> None:
    lines = problems(
        """
parallel:
  a: {check: given(note), weight: -5, critical: true}
  b: {claim: "It is {titel}"}
  c: {weight: -1, all_or_nothing: true, parallel: {x: {check: given(note)}, y: {check: given(day)}}}
  d: {sequential: {x: {check: given(note)}, y: {check: given(day), weight: -2}}}
  e: {for_each: gauges, weight: -1, each: {check: given(item.name), weight: -3}}
  f: {claim: "{note}", requires: [e]}
  g: {weight: -1, parallel: {x: {claim: "{note}", requires: [b]}, z: {check: given(note)}}}
"""
    )
    expected = [
        "10:5: node 'a': a penalty (weight -5) cannot be critical",
        "11:24: no field 'titel'",
        "12:54: node 'c': a penalty (weight -1) cannot be critical",
        "13:47: node 'd/y': a penalty (weight -2) cannot be a step of the sequence 'd'",
        "14:39: node 'e/*': it is inside the penalty 'e'",
        "15:37: node 'f' requires 'e', and one of the two is part of a penalty",
        "16:64: node 'g/x' requires 'b', and one of the two is part of a penalty",
    ]
    for line, wanted in zip(lines, expected, strict=True):
        assert line.startswith(f"t.yaml:{wanted}")


@pytest.mark.parametrize("text", ["- 1\n", "hello\n"])
def test_file_that_is_no_mapping_is_an_error(text: str) -> None:
    with pytest.raises(
        InvalidTask, match=r"t.yaml:1:1: the file is .*; a task is a mapping that starts with `format: 1`"
    ):
        compile_task(text, "t.yaml")


def test_forbidden_sources_of_a_task_are_checked_where_they_are_written():
    entries = "  - {host: bench.example, reason: the benchmark}\n  - {host: a.example/b, reason: x}\n"
    head = HEAD.replace("rubric:", f"forbidden_sources:\n{entries}rubric:")
    [line] = problems("parallel:\n" + GOOD, head)
    assert "host 'a.example/b' is not a host name" in line
    source = task("parallel:\n" + GOOD, head.replace("a.example/b", "a.example"))
    found = getattr(yaml_judge(source.encode(), "t.yaml"), MARK).forbidden_sources
    assert [one.host for one in found] == ["bench.example", "a.example"]


async def test_negative_weight_is_subtracted_and_the_total_is_kept_before_it_is_clipped():
    judgement = await judged(
        "parallel:\n  a: {check: given(note), weight: 7}\n  b: {check: given(day), weight: 3}\n"
        "  c: {check: given(answer), weight: -5}\n"
    )

    assert outcomes(judgement) == {"a": "failed", "b": "failed", "c": "passed"}
    assert (judgement.score.value, judgement.score_unclipped) == (0.0, Score(value=-0.5, low=-0.5, high=-0.5))


async def test_claim_can_require_a_node_that_is_declared_after_it() -> None:
    judgement = await judged("parallel:\n  a: {claim: '{best.name}', requires: [b]}\n  b: {check: given(note)}\n")

    assert outcomes(judgement) == {"a": "skipped", "b": "failed"}
    assert leaf(judgement, "a").requires == ("b",)


async def test_required_node_that_does_not_apply_is_left_out_and_never_replaced_by_an_outer_one() -> None:
    judgement = await judged(
        """
parallel:
  b: {check: given(note)}
  g:
    parallel:
      a: {claim: "'{best.name}' and 'Kestrel 4' are the same", requires: [b]}
      b: {check: given(day), applies_if: given(day)}
""",
    )

    assert outcomes(judgement) == {"b": "failed", "g/a": "passed"}


def test_all_problems_of_a_file_are_reported_at_once() -> None:
    assert len(problems("parallel:\n  a: {check: given(x)}\n  b: {claim: '{y}', sources: z}\n")) == 3


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("format: 2\ndescription: x\nrubric:\n", "t.yaml:1:1: format 2 is not supported; write `format: 1`"),
        ("description: x\nrubric:\n", "t.yaml:1:1: the key 'format' is missing; add it"),
        ("format: 1\ndescription: x\nevaluation_date: soon\nrubric:\n", "t.yaml:3:1: evaluation_date: not a date"),
        (
            "format: 1\ndescription: x\nfields: {json: x}\nrubric:\n",
            "t.yaml:3:10: 'json' is reserved; use another name",
        ),
        ("format: 1\ndescription: x\nfields: {a: {type: text, list_of: url}}\nrubric:\n", "use only one of type,"),
    ],
)
def test_error_in_the_head_of_the_file(head: str, message: str) -> None:
    assert message in problems("parallel: {a: {check: words(answer) > 3}}", head)[0]


def test_leaves_of_nested_lists_are_counted_with_their_maximum() -> None:
    inner = "{for_each: gauges, as: b, max: 41, each: {check: given(b.name)}}"
    nested = f"parallel: {{g: {{for_each: gauges, max: 50, each: {inner}}}}}"
    assert f"more than {MAX_LEAVES} leaves" in problems(nested)[0]


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    for text in (
        "a: !!python/object/new:os.system ['touch %s']" % (tmp_path / "x"),
        task("parallel: {a: {check: \"__import__('os').mkdir('%s')\"}}" % (tmp_path / "x")),
        task("parallel: {a: {claim: \"{__import__('os').mkdir('%s')}\"}}" % (tmp_path / "x")),
    ):
        with pytest.raises(InvalidTask):
            compile_task(text)
    assert list(tmp_path.iterdir()) == []


TASK = task("parallel: {a: {check: given(note)}, b: {claim: 'It is {best.name}', sources: best.sources}}")


def test_yaml_file_is_loaded_as_a_native_judge_without_a_child_process(tmp_path: Path) -> None:
    path = tmp_path / "gauges.yaml"
    path.write_text(TASK)

    judge = load_judge(path, importing=False)

    assert (judge.task, judge.kind, judge.source) == ("gauges", JudgeKind.NATIVE, TASK.encode())
    assert judge.coroutine is not None
    assert judge.description == "Which gauges does Pellard sell?"


def test_file_with_problems_is_listed_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("format: 1\n")

    broken = load_judges([tmp_path]).broken["bad"]

    assert broken.splitlines()[0] == f"{tmp_path}/bad.yaml:1:1: the key 'description' is missing; add it"


def test_file_with_another_suffix_is_not_ignored(tmp_path: Path) -> None:
    name = "gauges.yml"
    (tmp_path / name).write_text(TASK)

    assert load_judges([tmp_path]).broken == {"gauges": f"{tmp_path}/{name}: rename it to gauges.yaml"}


def test_two_files_of_one_task_in_a_folder_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "gauges.yaml").write_text(TASK)
    (tmp_path / "gauges.py").write_text("x = 1")

    catalogue = load_judges([tmp_path])

    assert catalogue.judges == {}
    assert "gauges.yaml defines the same task; remove one of the two files" in catalogue.broken["gauges"]


MIXED = '''
from judges.registry import judge
from judges.yaml_tasks.compiler import compile_task

RUBRIC = compile_task("""{text}""", "mixed.py")


@judge(task="mixed", description=RUBRIC.description)
async def mixed(ctx):
    facts = ctx.parallel("facts", "What the answer says")
    values = await ctx.extract(RUBRIC.schema, RUBRIC.task.extract)
    RUBRIC.declare(facts, values.model_dump(), ctx.answer.text)
    ctx.check("sum", sum(gauge.hours or 0 for gauge in values.gauges) == 216)
'''


async def test_python_judge_may_declare_a_part_of_its_rubric_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "mixed.py"
    rubric = (
        "parallel: {a: {check: given(best.name)}, b: {claim: \"'{best.name}' and 'x' are the same\", requires: [a]}}"
    )
    path.write_text(MIXED.format(text=task(rubric)))

    judgement = await try_judge(path, f"{ANSWER}\n## Best\n\n- Name: Kestrel 4\n", PAGES)

    assert outcomes(judgement) == {"facts/a": "passed", "facts/b": "failed", "sum": "passed"}
    assert leaf(judgement, "facts/b").requires == ("facts/a",)


async def test_values_of_a_hostile_answer_are_only_text() -> None:
    hostile = {**BEST, "name": "{note.__class__} {0} {{x}}"}
    judgement = await judged("parallel: {a: {claim: 'It is {best.name}'}, b: {check: given(best.name)}}", best=hostile)

    claim: Any = leaf(judgement, "a").claim
    assert claim.text == "It is {note.__class__} {0} {{x}}"
    assert verdict(judgement, "b").outcome is Outcome.PASSED


EMPTY: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("It has {note} rooms", {"note": ""}),
    "one of two": ("{best.name} is best because of {best.why}", {}),
    "number": ("It lasts {item.hours} hours", {"gauges": [{**KESTREL, "hours": None}]}),
    "list of nothing": ("The gauges are {gauges.name}", {"gauges": [{**KESTREL, "name": " "}]}),
    "number read from a text": ("It costs {cost} crowns", {"note": "COVID-19"}),
}


@pytest.mark.parametrize("sources", [f"'{PAGE}'", "[]"])
@pytest.mark.parametrize("case", EMPTY)
async def test_claim_with_an_empty_placeholder_fails_without_a_model_request(case: str, sources: str) -> None:
    claim, values = EMPTY[case]
    named = "best.sources" if sources == "[]" else sources
    leaf = f"{{claim: '{claim}', sources: {named}}}"
    judgement = await judged(
        f"""
let: {{cost: number(note), cheap: number(note) < 5}}
parallel:
  one: {{for_each: gauges, max: 1, each: {leaf}}}
""",
        **values,
    )

    found = verdict(judgement, "one/1")
    reason = Reason.NO_SOURCE if sources == "[]" else Reason.NO_VALUE
    assert (found.outcome, found.reason, found.votes, found.usage.calls) == (Outcome.FAILED, reason, (), 0)


async def test_claim_about_a_list_names_only_the_given_items() -> None:
    judgement = await judged(
        "parallel: {all: {claim: 'The gauges are {gauges.name}'}}", gauges=[{**KESTREL, "name": ""}, KESTREL, HERON]
    )

    assert leaf(judgement, "all").desc == "The gauges are Kestrel 4, Heron 2"
    assert verdict(judgement, "all").reason is not Reason.NO_VALUE


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


def test_fields_that_nothing_reads_are_named():
    task = """
format: 1
description: Who lived there?
fields:
  name: the name
  born: the year of birth
  films: {list_of: {title: text, length: number}}
rubric:
  parallel:
    given: {check: given(name)}
    films:
      for_each: films
      as: film
      max: 3
      each: {claim: "{film.title} is a film by {name}"}
"""
    assert compile_task(task).unread_fields == ("born", "films.length")
