"""A measurement of judges for a reader: a table, then where each judge and people part."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

SHOWN = 20
"""Disagreements of one judge that are printed; ``--json`` has them all."""

_FIGURES = ("raw", "kappa", "ac1", "tpr", "tnr")


def print_report(console: Console, report: dict[str, Any]) -> None:
    """``report`` is what ``report_json`` gives."""
    _print_labels(console, report["labels"])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("judge", overflow="fold")
    for heading in ("n", "raw", "kappa", "AC1", "TPR", "TNR", "not judged", "USD"):
        table.add_column(heading, justify="right")
    for one in report["judges"]:
        figures = (_figure(one[name]) for name in _FIGURES)
        table.add_row(escape(_name(one)), str(one["n"]), *figures, str(len(one["not_judged"])), _usd(one))
    console.print(table)
    for one in report["judges"]:
        _print_judge(console, one)


def _print_labels(console: Console, labels: dict[str, Any]) -> None:
    left_out = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in labels["left_out"].items() if count)
    of_use = f"{labels['labels']} label(s) on {labels['items']} claim(s), {labels['usable']} of use"
    _line(console, f"{of_use} ({left_out})" if left_out else of_use)
    several = labels["labelled_by_several"]
    if several["items"]:
        _line(console, f"people agree on {several['unanimous']} of {several['items']} claim(s) that several labelled")


def _print_judge(console: Console, one: dict[str, Any]) -> None:
    counts = one["confusion"]
    _line(
        console,
        f"{_name(one)}: of what people passed it passed {counts['true_positive']} and failed "
        f"{counts['false_negative']}; of what they failed it passed {counts['false_positive']} and failed "
        f"{counts['true_negative']}",
    )
    for each in one["disagreements"][:SHOWN]:
        place = " ".join(str(each[key]) for key in ("task_id", "leaf") if each[key])
        _line(console, f"  judge {each['judge']}, people {each['human']}: {each['claim']}  [{place}]")
        for said in each["people"]:
            if said["reason"]:
                _line(console, f"      {said['reviewer'] or 'somebody'}: {said['reason']}")
        if each["judge_reasoning"]:
            _line(console, f"      judge: {each['judge_reasoning']}")
    if len(one["disagreements"]) > SHOWN:
        _line(console, f"  and {len(one['disagreements']) - SHOWN} more: --json has them all")
    for each in one["not_judged"][:SHOWN]:
        _line(console, f"  not judged ({each['reason']}): {each['claim']}  {each['detail']}")


def _line(console: Console, text: str) -> None:
    """What people and pages wrote is text, never markup."""
    console.print(text, markup=False, soft_wrap=True)


def _name(one: dict[str, Any]) -> str:
    return f"{one['model']} (as recorded)" if one["verdicts"] == "recorded" else str(one["model"])


def _usd(one: dict[str, Any]) -> str:
    if one["verdicts"] == "recorded":
        return "-"
    usd = one["usage"]["usd"]
    return "?" if usd is None else f"{usd:.4f}"


def _figure(estimate: dict[str, Any]) -> str:
    if estimate["value"] is None:
        return "-"
    if estimate["low"] is None:
        return f"{estimate['value']:.2f}"
    return f"{estimate['value']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"
