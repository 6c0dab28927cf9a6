"""Tables of scores, at most 80 columns wide: scorecard of agents, and list of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from app.agent_summary import AnswerOutcome, ScorecardRow, leaves, leaves_not_judged, score_of, seconds_of
from rubrics.scoring import Score
from rubrics.verdict import Outcome

if TYPE_CHECKING:
    from rich.table import Table


def score_text(score: Score | None) -> str:
    """Format a score: ``0.83``, or ``0.50-0.83`` if it is open, or ``-`` if there is none."""
    if score is None:
        return "-"
    if score.value is not None:
        return f"{score.value:.2f}"
    return f"{score.low:.2f}-{score.high:.2f}"


def scorecard(rows: Sequence[ScorecardRow], *, title: str | None = None) -> Table:
    """Build the scorecard, with one row per agent."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("agent", overflow="fold")
    runs = {row.k for row in rows}
    k = str(runs.pop()) if len(runs) == 1 else "k"
    for heading in ("partial\ncompletion", "success\nrate", f"\npass@{k}", "not\njudged", "\nanswers", "\nseconds"):
        table.add_column(heading, justify="right")
    priced = any(row.usage.usd != 0 for row in rows)
    if priced:
        table.add_column("\nusd", justify="right")
    for row in rows:
        cells = [
            score_text(row.partial),
            score_text(row.success),
            score_text(row.pass_at_k),
            str(row.answers_not_judged),
            str(row.answers),
            f"{row.seconds:.1f}",
        ]
        table.add_row(row.agent, *cells, *([usd_text(row.usage.usd)] if priced else []))
    return table


def usd_text(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.4f}"


def answer_table(outcomes: Iterable[tuple[str, AnswerOutcome]]) -> Table:
    """Build a table with one row per answer. The column "not judged" appears only if there are such leaves."""
    known = list(outcomes)
    unsure = any(one.result is not None and leaves_not_judged(one.result) for _, one in known)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("agent", "task", "answer"):
        table.add_column(f"\n{heading}", overflow="fold")
    for heading in ("\nscore", "checks\npassed", *(["not\njudged"] if unsure else []), "\nseconds"):
        table.add_column(heading, justify="right")
    for agent, one in known:
        table.add_row(agent, one.task_id, one.answer_name.removesuffix(".md"), *_cells(one, unsure=unsure))
    return table


def _cells(outcome: AnswerOutcome, *, unsure: bool) -> list[Text | str]:
    if outcome.result is None:
        return [Text(outcome.error_code or "no result", style="red"), "-", *(["-"] if unsure else []), "-"]
    settled = [leaf.get("outcome") for leaf in leaves(outcome.result)]
    unknown = settled.count(Outcome.NOT_JUDGED)
    return [
        Text(score_text(score_of(outcome.result)), style="" if outcome.complete else "yellow"),
        f"{settled.count(Outcome.PASSED)}/{len(settled)}",
        *([str(unknown)] if unsure else []),
        f"{seconds_of(outcome.result):.1f}",
    ]


def finished_line(label: str, outcome: AnswerOutcome) -> str:
    """Return a line with markup for a finished answer. ``label`` must be escaped."""
    if outcome.result is None:
        return f"{label}  [red]no result[/] ({outcome.error_code})"
    mark = "[green]judged[/]" if outcome.complete else "[yellow]incomplete[/]"
    return f"{label}  {mark}  {score_text(score_of(outcome.result))}  {seconds_of(outcome.result):.1f} s"


_UNWRAPPED = ("job", "result", "score", "status")
"""Columns that are never wrapped, because users copy ids from them."""


def plain_table(*headings: str) -> Table:
    """Return a table with these columns. Cells are markup, so escape text that may contain brackets."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in _UNWRAPPED)
    return table


def number_text(value: Any) -> str:
    return "-" if value is None else f"{value:g}"


def bounds_text(figure: Mapping[str, Any] | None, *, sign: str = "") -> str:
    """Format a figure: ``0.8333``, or ``0.5 to 0.8333`` while answers that were not judged could change it."""
    if figure is None or figure["low"] is None:
        return "-"
    low, high = (f"{round(figure[end], 6) + 0.0:{sign}.4g}" for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def interval_text(interval: Mapping[str, Any] | None, *, sign: str = "") -> str:
    """Format an interval."""
    return "-" if interval is None else f"{interval['low']:{sign}.4f} to {interval['high']:{sign}.4f}"
