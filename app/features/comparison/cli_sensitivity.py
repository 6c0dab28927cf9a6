"""``assay results sensitivity``: effect of single verdicts, votes and weights on scores and on the order of agents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.connection import URL, JsonOption, ResultsOption, UrlOption, connect
from app.console.errors import WrongUsage
from app.console.streams import counted, print_json, stdout_console
from app.console.tables import bounds_text, interval_text, plain_table
from app.features.comparison.cli_comparison_sides import SIDES, check_order, is_folder

_MAX_SHOWN = 20


def program() -> typer.Typer:
    commands = typer.Typer(no_args_is_help=True, help="Show how single verdicts, votes and weights affect scores.")
    commands.command("result")(result)
    commands.command("order")(order)
    commands.command("judge")(judge)
    return commands


def result(
    result_id: Annotated[str, typer.Argument(metavar="RESULT", help="Result id on the server, or a result file.")],
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Invert each leaf of a result and show the change of its score. One leaf is inverted at a time."""
    if is_folder(result_id) or result_id.endswith(".json"):
        from app.features.comparison.sensitivity_json import inversions_json

        document: Mapping[str, Any] = inversions_json(_read(Path(result_id)))
    else:
        with connect(url) as client:
            document = client.get_result_sensitivity(result_id)
    if as_json:
        print_json(document)
        return
    from rich.markup import escape

    table = plain_table("leaf", "votes", "inversion", "change", "new score")
    for inversion in document["flips"][:_MAX_SHOWN]:
        change = {"low": inversion["change"]["least"], "high": inversion["change"]["greatest"]}
        votes = f"{inversion['votes']['yes']}:{inversion['votes']['no']}" if any(inversion["votes"].values()) else "-"
        transition = f"{inversion['outcome']} -> {inversion['to']}"
        table.add_row(
            escape(inversion["leaf"]), votes, transition, bounds_text(change, sign="+"), bounds_text(inversion["score"])
        )
    console = stdout_console()
    console.print(table)
    unlisted = len(document["flips"]) - _MAX_SHOWN
    line = f"score {bounds_text(document['score'])}; {document['without_effect']} leaves have no effect"
    console.print(line + (f"; {unlisted} more with --json" if unlisted > 0 else ""))


def order(
    first: Annotated[str, typer.Argument(metavar="A", help=f"{SIDES}.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Side to compare with A.")],
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Check whether the leading side keeps its lead. Leaves, votes and weights are changed. Differences are B - A."""
    document = check_order(url, first, second)
    if as_json:
        print_json(document)
        return
    console = stdout_console()
    if document["difference"] is None:
        console.print("the two sides have no judged task in common")
        return
    votes, weights = document["votes"], document["weights"]
    table = plain_table("change", "tried", "holds", "lost", "open", "difference")
    table.add_row("none", "", "", "", "", bounds_text(document["difference"], sign="+"))
    for name, tally in (
        ("one leaf left out", document["leave_one_leaf_out"]),
        ("minority wins at one leaf", votes["minority_wins"]),
        ("votes resampled", votes["redrawn"]),
        ("weights resampled", weights["redrawn"]),
    ):
        difference = interval_text(tally, sign="+") if "low" in tally else ""
        table.add_row(name, *(str(tally[each]) for each in ("tried", "holds", "lost", "open")), difference)
    table.add_row("minority wins everywhere", "", "", "", "", bounds_text(votes["minority_wins_everywhere"], sign="+"))
    table.add_row("all weights equal", "", "", "", "", bounds_text(weights["equal"], sign="+"))
    console.print(table)
    leader = {"a": first, "b": second}.get(document["ahead"])
    line = f"{leader} is ahead" if leader else "neither side leads with certainty, so there is no lead to test"
    console.print_line(f"{line}, over {counted(document['tasks'], 'task')}")
    for name, changes in (("without", document["leave_one_leaf_out"]), ("outvoted", votes["minority_wins"])):
        for turn in changes["turns"][:_MAX_SHOWN]:
            bounds = bounds_text(turn["difference"], sign="+")
            console.print_line(f"{name} {turn['task_id']} {turn['leaf']}: {bounds}")


def judge(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task to analyze.")],
    folder: ResultsOption = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Measure the self-consistency of a task's judge. Show split votes, and leaves with different outcomes."""
    if folder is None:
        with connect(url) as client:
            document: Mapping[str, Any] = client.get_task_consistency(task)
    else:
        from app.features.comparison.sensitivity_json import consistency_json

        document = {"task_id": task, **consistency_json(_results(folder, task))}
    if as_json:
        print_json(document)
        return
    console = stdout_console()
    console.print(f"{task}: {counted(document['results'], 'result')}", markup=False)
    table = plain_table("model", "prompt", "leaves", "split", "share split (95 %)", "agreement", "votes lost")
    for row in document["votes"]:
        agreement = "-" if row["agreement"] is None else f"{row['agreement']:.3f}"
        cells = (str(row["leaves"]), str(row["split"]), interval_text(row["split_share"]), agreement, str(row["lost"]))
        table.add_row(row["model"], row["prompt"] or "", *cells)
    console.print(table)
    line = f"{document['flaky_leaves']} of {document['judged_again']} leaves judged more than once have both outcomes"
    console.print(line + (f" (95 % {interval_text(document['flaky_share'])})" if document["flaky_share"] else ""))
    for row in document["flaky"][:_MAX_SHOWN]:
        shown = f"{row['leaf']}: passed {row['passed']} of {row['judged']} times ({row['model']})"
        console.print_line(shown)


def _results(folder: Path, task: str) -> Iterator[Mapping[str, Any]]:
    """Parse all results of a task in a result folder, for all agents and times.

    Raises:
        WrongUsage: there is none.
    """
    from judges.result_files import DEBUG_MARK

    paths = [path for path in sorted(folder.glob("*/*/*/results/*.json")) if path.parts[-4] == task]
    final_paths = [path for path in paths if not path.stem.endswith(DEBUG_MARK)]
    if not final_paths:
        raise WrongUsage(f"{folder}: contains no result of task {task}")
    return map(_read, final_paths)


def _read(path: Path) -> Mapping[str, Any]:
    """Parse one result file.

    Raises:
        WrongUsage: the file cannot be read or is not a result.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise WrongUsage(f"Cannot read the result {path}: {error}") from error
    if not isinstance(document, dict) or "final_score" not in document:
        raise WrongUsage(f"{path} is not a result: it has no final_score")
    return {"id": path.name, **document} if document.get("id") is None else document
