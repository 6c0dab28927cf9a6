"""``assay results show``: the results of a server, and tokens and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.markup import escape

from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.errors import reject_given
from app.console.scorecard import score_text, usd_text
from app.console.streams import print_json, stderr_console, stdout_console
from app.console.tables import plain_table
from judges.agent_figures import score_of


class By(StrEnum):
    """Dimensions by which usage can be grouped."""

    AGENT = "agent"
    TASK = "task"
    MODEL = "model"
    ROLE = "role"


Dimension: TypeAlias = Literal["agent", "task_id", "model", "role"]
_DIMENSIONS: dict[By, Dimension] = {By.AGENT: "agent", By.TASK: "task_id", By.MODEL: "model", By.ROLE: "role"}
_SUMS = ("calls", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class _UsageOptions:
    usage: Annotated[
        bool, typer.Option("--usage", help="Show model requests, tokens and cost of the results instead.")
    ] = False
    by: Annotated[
        list[By] | None, typer.Option("--by", help="With --usage: group by this. Repeatable (default: all).")
    ] = None


def show(
    context: typer.Context,
    result_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Id of a result (default: list the results).")
    ] = None,
    *,
    agent: Annotated[str | None, typer.Option(help="Only this agent.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of listed results, newest first.")] = 20,
    usage: _UsageOptions,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List results, or print the page and JSON of one."""
    if result_id is not None:
        reject_given(context, "cannot be used with the ID of a result", "--agent", "--task", "--limit", "--usage")
    if usage.usage:
        reject_given(context, "cannot be used with --usage", "--limit")
        _show_usage(usage.by or list(By), agent, task, url, as_json=as_json)
        return
    reject_given(context, "requires --usage", "--by")
    if result_id is None:
        _list(agent, task, limit, url, as_json=as_json)
        return
    with connect(url) as client:
        result = client.get_result(result_id)
    if not as_json:
        stderr_console().print(f"{client.url}/results/{result['id']}", soft_wrap=True)
    print_json(result)


def _list(agent: str | None, task: str | None, limit: int, url: str, *, as_json: bool) -> None:
    with connect(url) as client:
        listed = list(islice(client.list_results(agent=agent, task_id=task), limit))
    if as_json:
        print_json({"items": listed})
        return
    table = plain_table("result", "agent", "task", "answer", "score", "status")
    for result in listed:
        cells = (str(result.get(key, "")) for key in ("id", "agent_name", "task_id"))
        answer = str(result.get("answer_name", "")).removesuffix(".md")
        table.add_row(*cells, answer, score_text(score_of(result)), str(result.get("status", "")))
    stdout_console().print(table if listed else "no results")


def _show_usage(by: Sequence[By], agent: str | None, task: str | None, url: str, *, as_json: bool) -> None:
    groups = [_DIMENSIONS[one] for one in dict.fromkeys(by)]
    with connect(url) as client:
        report = client.get_usage(by=groups, agent=agent, task_id=task)
    if as_json:
        print_json(report)
    else:
        _print_usage(report, groups)


def _print_usage(report: Mapping[str, Any], groups: Sequence[str]) -> None:
    numbers = ("calls", "tokens in", "out", "usd")
    table = plain_table(*(name.removesuffix("_id") for name in groups), *numbers, right=numbers)
    for item in report["items"]:
        table.add_row(*(escape(str(item[name])) for name in groups), *_cells(item))
    if len(report["items"]) > 1:
        table.add_section()
        table.add_row("all", *[""] * (len(groups) - 1), *_cells(report["total"]))
    stdout_console().print(table if report["items"] else "no model requests")


def _cells(item: Mapping[str, Any]) -> list[str]:
    return [*(str(item[name]) for name in _SUMS), usd_text(item["usd"])]
