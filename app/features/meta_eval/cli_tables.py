"""Console report of a meta-evaluation: a table of figures, then the disagreements of each judge."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

SHOWN = 20
"""Maximum number of printed disagreements per judge. ``--json`` has all of them."""

_FIGURES = ("raw", "kappa", "ac1", "tpr", "tnr")


def print_report(console: Console, report: dict[str, Any]) -> None:
    """Print the output of ``report_json``."""
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
    line = f"{labels['labels']} label(s) on {labels['items']} claim(s), {labels['usable']} usable"
    _line(console, f"{line} ({left_out})" if left_out else line)
    several = labels["labelled_by_several"]
    if several["items"]:
        _line(console, f"people agree on {several['unanimous']} of {several['items']} claim(s) with several labels")


def _print_judge(console: Console, one: dict[str, Any]) -> None:
    counts = one["confusion"]
    _line(
        console,
        f"{_name(one)}: labelled passed: {counts['true_positive']} judged passed, {counts['false_negative']} judged "
        f"failed; labelled failed: {counts['false_positive']} judged passed, {counts['true_negative']} judged failed",
    )
    for each in one["disagreements"][:SHOWN]:
        location = " ".join(str(each[key]) for key in ("task_id", "leaf") if each[key])
        _line(console, f"  judge {each['judge']}, people {each['human']}: {each['claim']}  [{location}]")
        for opinion in each["people"]:
            if opinion["reason"]:
                _line(console, f"      {opinion['reviewer'] or 'anonymous'}: {opinion['reason']}")
        if each["judge_reasoning"]:
            _line(console, f"      judge: {each['judge_reasoning']}")
    if len(one["disagreements"]) > SHOWN:
        _line(console, f"  and {len(one['disagreements']) - SHOWN} more: use --json to list all")
    for each in one["not_judged"][:SHOWN]:
        _line(console, f"  not judged ({each['reason']}): {each['claim']}  {each['detail']}")


def _line(console: Console, text: str) -> None:
    """Print text without markup: it may come from people or pages."""
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
