"""``python -m tests.bench``: measure and print the table."""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Sequence

import structlog
from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.row import Row
from tests.bench.rows import LONG, ROWS

PIPED_WIDTH = 140
_VERDICTS = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}


def main() -> None:
    """Measure the selected rows."""
    options = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", choices=sorted(ROWS), metavar="ROW", help=", ".join(ROWS))
    options.add_argument("--full", action="store_true", help=f"with the long ones: {', '.join(sorted(LONG))}")
    given = options.parse_args()
    wanted = given.only or [name for name in ROWS if given.full or name not in LONG]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    # A redirected table has no terminal width to fit into.
    console, progress = Console(width=None if Console().is_terminal else PIPED_WIDTH), Console(stderr=True)
    began, load = time.monotonic(), os.getloadavg()[0]
    rows: list[Row] = []
    for name in wanted:
        with progress.status(f"measuring {name}"):
            rows += _measured(name)
    console.print(_table(rows))
    console.print(
        f"{os.cpu_count()} processors, load {load:.1f} before it began; {time.monotonic() - began:.0f} s in all. "
        "The toolkit's figures were measured elsewhere, on two idle cores."
    )


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
