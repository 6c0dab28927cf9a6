"""``python -m tests.bench``: measure and print the table."""

from __future__ import annotations

import argparse
import logging
import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace

import structlog
from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.row import Row
from tests.bench.rows import LONG, ROWS, run_once

PIPED_WIDTH = 140
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_VERDICTS = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}


def main() -> None:
    """Measure the selected rows."""
    options = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", choices=sorted(ROWS), metavar="ROW", help=", ".join(ROWS))
    options.add_argument("--full", action="store_true", help=f"with the long ones: {', '.join(sorted(LONG))}")
    options.add_argument("--runs", type=int, default=1, help="measure each row so often and print ranges (default: 1)")
    given = options.parse_args()
    wanted = given.only or [name for name in ROWS if given.full or name not in LONG]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    # A redirected table has no terminal width to fit into.
    console, progress = Console(width=None if Console().is_terminal else PIPED_WIDTH), Console(stderr=True)
    began, load = time.monotonic(), os.getloadavg()[0]
    by_name: dict[str, list[Sequence[Row]]] = {name: [] for name in wanted}
    for number in range(given.runs):
        run_once.cache_clear()  # rows of one round share their runs
        for name in wanted:
            with progress.status(f"measuring {name}, run {number + 1} of {given.runs}"):
                by_name[name].append(_measured(name))
    console.print(_table([row for runs in by_name.values() for row in repeated(runs)]))
    console.print(
        f"{os.cpu_count()} processors, load {load:.1f} before it began; {time.monotonic() - began:.0f} s in all. "
        "The toolkit's figures were measured elsewhere, on two idle cores."
    )


def repeated(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of several runs with the range of each number. A target is met if every run meets it.

    Notes that differ in more than numbers are those of the last run. Runs with other rows, because one failed, are
    listed one after the other.
    """
    if len({tuple(row.what for row in rows) for rows in runs}) > 1:
        return [row for rows in runs for row in rows]
    return [
        replace(
            rows[-1],
            ours=value_range([row.ours for row in rows]),
            note=value_range(notes) if _differ_in_numbers(notes := [row.note for row in rows]) else rows[-1].note,
            met=min((row.met for row in rows), key=_met_order),
        )
        for rows in zip(*runs, strict=True)
    ]


def value_range(texts: Sequence[str]) -> str:
    """Return a text with the minimum and maximum of its numbers; all texts, if they differ in more than numbers.

    >>> value_range(["14.0 ms, 3 calls", "12.7 ms, 3 calls"])
    '12.7-14.0 ms, 3 calls'
    """
    if not _differ_in_numbers(texts):
        return " | ".join(texts)
    columns = iter(list(zip(*map(_NUMBER.findall, texts), strict=True)))

    def merged(_: re.Match[str]) -> str:
        values = sorted(next(columns), key=lambda value: float(value.replace(",", "")))
        return values[0] if values[0] == values[-1] else f"{values[0]}-{values[-1]}"

    return _NUMBER.sub(merged, texts[0])


def _differ_in_numbers(texts: Sequence[str]) -> bool:
    """Return whether the texts are equal except for their numbers."""
    return len({_NUMBER.sub("", text) for text in texts}) == 1


def _met_order(met: bool | None) -> int:
    return (False, None, True).index(met)


def _measured(name: str) -> list[Row]:
    """Return the rows of one measurement; a failed one becomes a row and does not affect the others."""
    try:
        return list(ROWS[name]())
    except RuntimeError as error:
        return [Row(what=name, toolkit="", target="", ours="failed", met=False, note=str(error)[-1000:])]


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", overflow="fold", ratio=5)
    for heading in ("toolkit", "target", "ours"):
        table.add_column(heading, overflow="fold", justify="right", ratio=2)
    table.add_column("")
    for row in rows:
        what = f"{row.what}\n[dim]  {row.note}[/]" if row.note else row.what
        table.add_row(what, row.toolkit, row.target, row.ours, _VERDICTS[row.met])
    return table


if __name__ == "__main__":
    main()
