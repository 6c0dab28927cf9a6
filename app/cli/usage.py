"""``assay results usage``: model requests, tokens and cost, from a running server or from result files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from app.console.connection import URL, JsonOption, ResultsOption, UrlOption, connect
from app.console.streams import print_json, stdout_console
from app.console.tables import plain_table


class By(StrEnum):
    """Dimensions by which usage can be grouped."""

    AGENT = "agent"
    TASK = "task"
    MODEL = "model"
    ROLE = "role"


Dimension: TypeAlias = Literal["agent", "task_id", "model", "role"]
_DIMENSIONS: dict[By, Dimension] = {By.AGENT: "agent", By.TASK: "task_id", By.MODEL: "model", By.ROLE: "role"}
_DEFAULT = [By.AGENT, By.TASK, By.MODEL, By.ROLE]
_SUMS = ("calls", "input_tokens", "output_tokens")


def usage(
    by: Annotated[
        list[By] | None, typer.Option("--by", help="Group by this dimension. Repeatable (default: all).")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    folder: ResultsOption = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Show model requests, tokens and cost. Groups are agent, task, model and role."""
    groups = [_DIMENSIONS[one] for one in dict.fromkeys(by or _DEFAULT)]
    if folder is None:
        with connect(url) as client:
            report: Mapping[str, Any] = client.get_usage(by=groups, agent=agent, task_id=task)
    else:
        report = _of_files(folder, groups, agent, task)
    if as_json:
        print_json(report)
    else:
        _print(report, groups)


def _of_files(folder: Path, groups: Sequence[str], agent: str | None, task: str | None) -> dict[str, Any]:
    """Compute the usage from the newest result of each answer in a folder."""
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in _rows(folder, agent, task):
        key = tuple(str(row[name]) for name in groups)
        group_sums = sums.setdefault(key, {**dict.fromkeys(_SUMS, 0), "usd_known": 0.0, "unpriced_calls": 0})
        for name in _SUMS:
            group_sums[name] += row[name]
        group_sums["usd_known"] += row["usd"] or 0.0
        group_sums["unpriced_calls"] += row["calls"] if row["usd"] is None else 0
    items = [{**dict(zip(groups, key, strict=True)), **_priced(values)} for key, values in sums.items()]
    items.sort(key=lambda item: (-item["usd_known"], *(item[name] for name in groups)))
    total = {name: sum(item[name] for item in items) for name in (*_SUMS, "usd_known", "unpriced_calls")}
    return {"items": items, "total": _priced(total)}


def _rows(folder: Path, agent: str | None, task: str | None) -> Iterator[dict[str, Any]]:
    from app.engine.result_folder import read_outcomes

    agents = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for name in agents if agent is None else [agent]:
        for one in read_outcomes(folder, name):
            if task is not None and one.task_id != task:
                continue
            for row in (one.result or {}).get("usage_by") or ():
                yield {"agent": name, "task_id": one.task_id, **row}


def _priced(values: Mapping[str, Any]) -> dict[str, Any]:
    return {**values, "usd": None if values["unpriced_calls"] else values["usd_known"]}


def _print(report: Mapping[str, Any], groups: Sequence[str]) -> None:
    from rich.markup import escape

    from app.console.scorecard import usd_text

    numbers = ("calls", "tokens in", "out", "usd")
    table = plain_table(*(name.removesuffix("_id") for name in groups), *numbers, right=numbers)
    for item in report["items"]:
        table.add_row(*(escape(str(item[name])) for name in groups), *_cells(item, usd_text))
    if len(report["items"]) > 1:
        table.add_section()
        table.add_row("all", *[""] * (len(groups) - 1), *_cells(report["total"], usd_text))
    stdout_console().print(table if report["items"] else "no model requests")


def _cells(item: Mapping[str, Any], usd_text: Any) -> list[str]:
    return [*(str(item[name]) for name in _SUMS), usd_text(item["usd"])]
