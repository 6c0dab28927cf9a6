"""Tables of scores, at most 80 columns wide: scorecard of agents, and list of answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.markup import escape
from rich.text import Text

from app.console.tables import PlainTable, plain_table
from judges.agent_figures import AnswerOutcome, ScorecardRow, leaves_not_judged, score_of, seconds_of
from rubrics.scoring import Score
from rubrics.tree_json import GOOD_STATES, leaf_states
from rubrics.verdict import Outcome

_MAX_MISSING = 5


def score_text(score: Score | None) -> str:
    """Format a score: ``0.83``, or ``0.50-0.83`` if it is open, or ``-`` if there is none."""
    if score is None:
        return "-"
    if score.value is not None:
        return f"{score.value:.2f}"
    return f"{score.low:.2f}-{score.high:.2f}"


def scorecard(rows: Sequence[ScorecardRow], *, title: str | None = None) -> PlainTable:
    """Build the scorecard, with one row per agent."""
    runs = {row.k for row in rows}
    k = str(runs.pop()) if len(runs) == 1 else "k"
    priced = any(row.usage.usd != 0 for row in rows)
    numbers = ["partial\ncompletion", "success\nrate", f"\npass@{k}", "not\njudged", "\nanswers", "\nseconds"]
    numbers += ["\nusd"] if priced else []
    table = plain_table("\nagent", *numbers, right=numbers, title=title)
    for row in rows:
        cells = [
            score_text(row.partial),
            score_text(row.success),
            score_text(row.pass_at_k),
            str(row.answers_not_judged),
            str(row.answers),
            f"{row.seconds:.1f}",
        ]
        table.add_row(escape(row.agent), *cells, *([usd_text(row.usage.usd)] if priced else []))
    return table


def missing_answers_line(missing: Sequence[tuple[str, str]]) -> str | None:
    """Return a line that names the answers that tasks lack, given as task and name; None without any."""
    if not missing:
        return None
    names = [f"{task_id} {name.removesuffix('.md')}" for task_id, name in missing[:_MAX_MISSING]]
    more = [f"and {len(missing) - _MAX_MISSING} more"] if len(missing) > _MAX_MISSING else []
    return f"missing answers: {', '.join([*names, *more])}. pass@k is over the tasks with all answers."


def usd_text(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.4f}"


def answer_table(outcomes: Iterable[tuple[str, AnswerOutcome]]) -> PlainTable:
    """Build a table with one row per answer.

    The columns "not judged" and "final score" appear only if there are leaves that were not judged.
    """
    known = list(outcomes)
    unsure = any(one.result is not None and leaves_not_judged(one.result) for _, one in known)
    if_unsure = ["final\nscore", "not\njudged"] if unsure else []
    numbers = ["\nscore", *if_unsure[:1], "checks\npassed", *if_unsure[1:], "time\n(s)"]
    table = plain_table("\nagent", "\ntask", "\nanswer", *numbers, right=numbers)
    for agent, one in known:
        names = map(escape, (agent, one.task_id, one.answer_name.removesuffix(".md")))
        table.add_row(*names, *_cells(one, unsure=unsure))
    return table


def _cells(outcome: AnswerOutcome, *, unsure: bool) -> list[Text | str]:
    if outcome.result is None:
        return [Text(outcome.error_code or "no result", style="red"), "-", *(["-", "-"] if unsure else []), "-"]
    states = [state for _, state in leaf_states(outcome.result)]
    unknown = states.count(Outcome.NOT_JUDGED)
    passed = sum(state in GOOD_STATES for state in states)
    return [
        Text(score_text(score_of(outcome.result)), style="" if outcome.complete else "yellow"),
        *([f"{outcome.result['final_score']:.2f}"] if unsure else []),
        f"{passed}/{len(states)}" if states else "-",  # a citation check has no tree
        *([str(unknown)] if unsure else []),
        f"{seconds_of(outcome.result):.1f}",
    ]


def finished_line(label: str, outcome: AnswerOutcome) -> str:
    """Return a line with markup for a finished answer. ``label`` must be escaped."""
    if outcome.result is None:
        return f"{label}  [red]no result[/] ({outcome.error_code})"
    mark = "[green]judged[/]" if outcome.complete else "[yellow]incomplete[/]"
    return f"{label}  {mark}  {score_text(score_of(outcome.result))}  {seconds_of(outcome.result):.1f} s"
