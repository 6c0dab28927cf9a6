"""``assay results compare``: compare agents, runs or results on shared tasks, with significance tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.errors import WrongUsage
from app.console.streams import print_json, stdout_console
from app.console.summaries import MixJudgesOption, check_judges, judges_text, outcomes_in_folder
from app.console.tables import PlainTable, bounds_text, interval_text, plain_table, range_line
from app.features.comparison.paired_comparison import ComparisonSide, comparison_json, direction
from judges.errors import advice, installed

SIDES = "agent, agent@run or result id on the server, or a result folder OUT/AGENT"
_VERDICTS = {
    "b_higher": "{b} is higher than {a}",
    "b_lower": "{b} is lower than {a}",
    "not_tested": f"{{b}} is {{direction}}. For a significance test, {advice('statistics')}",
    "not_told_apart": "no significant difference between {b} and {a} on these tasks",
    **dict.fromkeys(
        ("too_few_tasks", "nothing_to_compare"),
        "{b} is {direction}; too few tasks for a significant difference: {certain} with a certain score on both sides, "
        "at least 6 are needed",
    ),
}


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help=f"Baseline: {SIDES}.")],
    others: Annotated[list[str], typer.Argument(metavar="B...", help="One or more sides to compare with A.")],
    url: UrlOption = URL,
    mix_judges: MixJudgesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare agents, runs or results task by task. Differences are B - A."""
    document = compare_sides(url, first, others, mix_judges=mix_judges, needs_tests=False)
    if as_json:
        print_json(document)
        return
    for comparison in document["comparisons"]:
        print_comparison(document["a"], comparison, corrected=len(others) > 1)


def print_comparison(
    first: Mapping[str, Any], comparison: Mapping[str, Any], *, corrected: bool, with_tasks: bool = True
) -> None:
    """Print one comparison of ``comparison_json``. ``corrected``: its p values were corrected for several."""
    console, before, after = stdout_console(), first["name"], comparison["b"]["name"]
    console.print(f"{after} - {before}", style="bold", markup=False)
    for side in (first, comparison["b"]):
        console.print_line(f"{side['name']}: {judges_text(side)}")
    figures = plain_table("figure", "A", "B", "difference", "95 % interval", "p")
    for name, key in (("score", "score"), ("success rate", "success")):
        figure = comparison[key]
        test = figure["sign_flip"]
        p = "-" if test is None else f"{test['p_holm']:.4f}"
        bounds = bounds_text({"low": figure["low"], "high": figure["high"]}, sign="+")
        interval = interval_text(figure["student_t"], sign="+")
        figures.add_row(name, bounds_text(figure["a"]), bounds_text(figure["b"]), bounds, interval, p)
    console.print(figures)
    if with_tasks:
        console.print(_task_table(comparison))
    for line in _remarks(before, comparison, corrected=corrected):
        console.print_line(line)


def _task_table(comparison: Mapping[str, Any]) -> PlainTable:
    tasks = plain_table("task", "A", "B", "difference", "-1 to 1")
    for task in comparison["tasks"]:
        cells = (bounds_text(task["a"]), bounds_text(task["b"]), bounds_text(task["difference"], sign="+"))
        change = task["difference"]
        line = range_line(change["low"], change["high"], value=change["value"], lowest=-1.0)
        tasks.add_row(escape(task["task_id"]), *cells, line)
    return tasks


def _remarks(before: str, comparison: Mapping[str, Any], *, corrected: bool) -> list[str]:
    score, after = comparison["score"], comparison["b"]["name"]
    lines = [
        _VERDICTS[score["verdict"]].format(
            a=before, b=after, certain=score["certain"], direction=direction(comparison["tasks"])
        )
    ]
    test = score["sign_flip"]
    if test is not None and score["verdict"] != "too_few_tasks":
        lines.append(f"p: {test['method']}{', Holm correction' if corrected else ''}")
        if score["bootstrap"] is not None:
            lines.append(f"bootstrap: {interval_text(score['bootstrap'], sign='+')} ({score['bootstrap']['method']})")
        lines += [f"warning: {warning}" for warning in score["warnings"]]
    if score["certain"] < score["tasks"]:
        lines.append(f"open: {score['tasks'] - score['certain']} of {score['tasks']} tasks are not completely judged")
    if score["smallest_detectable_difference"] is not None:
        smallest_difference = score["smallest_detectable_difference"]
        lines.append(f"minimum detectable difference with these tasks (power 0.8): {smallest_difference:.3f}")
    for name, key in ((before, "only_a"), (after, "only_b")):
        if comparison[key]:
            lines.append(f"only {name}: {', '.join(comparison[key])}")
    return lines


def compare_sides(
    url: str, first: str, others: Sequence[str], *, mix_judges: bool, needs_tests: bool = True
) -> Mapping[str, Any]:
    """Compare ``first`` with each of ``others``: names on the server, or result folders.

    Names of agents, runs and results never contain a slash. Unless ``needs_tests``, folders can be compared without
    the extra ``statistics``.

    Raises:
        WrongUsage: the names mix folders with others, one has no judged answer, or the sides have several judges and
            ``mix_judges`` is false.
        ToolFailed: the server does not answer.
    """
    names = [first, *others]
    folders = ["/" in name for name in names]
    if any(folders) and not all(folders):
        raise WrongUsage(
            f"{' and '.join(names)}: folders can only be compared with folders",
            hint="A name that contains / is a result folder; other names refer to the server.",
        )
    if all(folders):
        before, *after = (ComparisonSide(name=name, outcomes=outcomes_in_folder(Path(name))) for name in names)
        document: Mapping[str, Any] = comparison_json(before, after, is_tested=needs_tests or installed("statistics"))
    else:
        with connect(url) as client:
            document = client.compare(first, others, mix_judges=True)
    sides = [document["a"], *(comparison["b"] for comparison in document["comparisons"])]
    check_judges(*(side.get("judges") or {} for side in sides), mix=mix_judges)
    return document
