"""``assay results summary``: figures of an agent with confidence intervals and counts of unjudged answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape

from app.console.connection import URL, JsonOption, ResultsOption, UrlOption
from app.console.scorecard import missing_answers_line
from app.console.streams import counted, print_json, stdout_console
from app.console.summaries import MixJudgesOption, judges_text, load_summary
from app.console.tables import bounds_text, interval_text, number_text, plain_table, range_line
from judges.errors import advice


def summary(
    agent: Annotated[str, typer.Option(help="Agent to summarize.")],
    run: Annotated[str | None, typer.Option(help="Only this run of the agent.")] = None,
    folder: ResultsOption = None,
    url: UrlOption = URL,
    mix_judges: MixJudgesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Summarize an agent's scores over all its tasks and answers."""
    document = load_summary(agent, run=run, folder=folder, url=url, mix_judges=mix_judges)
    if as_json:
        print_json(document)
        return
    _print_summary(document)


def _print_summary(document: Mapping[str, Any]) -> None:
    console = stdout_console()
    console.print(
        f"[bold]{escape(document['agent_name'])}[/]: {counted(document['num_tasks'], 'task')}, "
        f"{counted(document['num_runs'], 'answer')} each"
    )
    console.print_line(judges_text(document))
    statistics = document.get("statistics")
    if statistics is not None:
        _print_figures(statistics)
    elif document.get("avg_score") is not None:
        console.print_line(f"For confidence intervals, {advice('statistics')}.")
    public = plain_table("public toolkit", "value", "std. dev. over answers")
    for name in ("avg_score", "success_rate", "avg_answer_word_count"):
        public.add_row(name, number_text(document.get(name)), number_text(document.get(f"{name}_std")))
    for name in sorted(key for key in document if key.startswith("pass_at_")):
        public.add_row(name, number_text(document[name]), "")
    console.print(public)
    tasks = plain_table("task", "best", "average", "pass")
    for task_id, task in document["tasks"].items():
        tasks.add_row(
            escape(task_id),
            number_text(task["best_score"]),
            number_text(task["avg_score"]),
            "yes" if task["pass"] else "no",
        )
    console.print(tasks)
    not_judged = document["not_judged"]
    if missing := missing_answers_line([(one["task_id"], one["answer_name"]) for one in document["missing_answers"]]):
        console.print_line(missing)
    line = f"{not_judged['answers']} of {document['num_answers']} answers not judged ({not_judged['leaves']} leaves)"
    console.print(line + (f", {document['unfinished']} jobs unfinished" if document.get("unfinished") else ""))


def _print_figures(statistics: Mapping[str, Any]) -> None:
    console = stdout_console()
    figures = plain_table("figure", "value", "95 % interval", "0 to 1", "method")
    for name, key in (("score", "score"), ("success rate", "success")):
        figure = statistics[key]
        interval = figure["interval"]
        value = figure["low"] if figure["low"] == figure["high"] else None
        line = range_line(interval["low"], interval["high"], value=value)
        figures.add_row(name, bounds_text(figure), interval_text(interval), line, interval["method"])
    for name, key in (("pass@", "pass_at_k"), ("pass^", "pass_hat_k")):
        for estimate in statistics[key]:
            basis = f"over {counted(estimate['tasks'], 'task')}"
            figures.add_row(
                f"{name}{estimate['k']}", bounds_text(estimate), interval_text(estimate["interval"]), "", basis
            )
    console.print(figures)
    for warning in statistics["warnings"]:
        console.print(f"warning: {warning}")
    smallest_difference = statistics["smallest_detectable_difference"]
    if smallest_difference is not None:
        console.print(f"minimum detectable difference with this number of tasks (power 0.8): {smallest_difference:.3f}")
