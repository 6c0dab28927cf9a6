"""Console tables of Mind2Web figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich import box
from rich.table import Table

_MEANS = {"micro": "steps (micro)", "macro": "tasks (macro)"}


def figures_table(metrics: Mapping[str, Any]) -> Table:
    """Return the figures for each policy on steps without a gold element, over steps and over tasks.

    Figures are ranges if steps were not judged.
    """
    source = metrics["model"] or metrics["predictions"]
    table = _table(
        f"{metrics['suite']}  {source}  {metrics['split']}  top {metrics['top_k']}, seed {metrics['seed']}, percent"
    )
    for heading in ("no positive", "mean over"):
        table.add_column(heading)
    second = "op F1" if metrics["metric"] == "mindact" else "action acc"
    for heading in ("steps", "element acc", second, "step success", "task success"):
        table.add_column(heading, justify="right", no_wrap=True)
    for policy, found in metrics["policies"].items():
        chosen = " *" if policy == metrics["no_positive"] else ""
        for mean, label in _MEANS.items():
            cells = [_cell(found, mean, name) for name in found[mean]]
            table.add_row(policy + chosen, label, str(found["steps"]), *cells, _cell(found, "task_success"))
    return table


def policy_lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the steps without a question, by reason."""
    if metrics["skipped"]:
        counts = ", ".join(f"{count} {reason}" for reason, count in metrics["skipped"].items())
        yield f"no question for {counts} of {metrics['n_steps']} steps"
    if metrics["gold_always_included"]:
        yield "candidates without ranks, gold elements first: not comparable to published figures"


def candidate_line(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the recall of the ranker, if the candidates have ranks."""
    ranking = metrics["candidates"]
    if not ranking["steps"] or metrics["gold_always_included"]:
        return
    shown = [f"recall@{k} {100 * ranking[f'recall@{k}']:.1f}" for k in (10, 50)]
    known = metrics["published_recall_at_50"]
    published = "" if known is None else f" (published recall@50: {known})"
    yield f"ranker: {', '.join(shown)}, MRR {ranking['mrr']:.3f}{published}"


def published_table(metrics: Mapping[str, Any]) -> Table:
    """Return the figures of the paper for this split."""
    table = _table("Published (paper, Table 2): means over tasks, percent")
    table.add_column("system", no_wrap=True)
    table.add_column("candidates")
    for heading in ("element acc", "op F1", "step success", "task success"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in metrics["published"]:
        figures = (row[name] for name in ("element_acc", "op_f1", "step_success", "task_success"))
        table.add_row(row["system"], row["setting"], *("" if value is None else f"{value:.1f}" for value in figures))
    return table


def _table(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=title, title_justify="left")


def _cell(found: Mapping[str, Any], *path: str) -> str:
    def lookup(values: Any) -> Any:
        for name in path:
            values = values[name]
        return values

    value = lookup(found)
    if value is not None:
        return f"{100 * value:.1f}"
    low, high = (lookup(found["bounds"][end]) for end in ("low", "high"))
    return f"{100 * low:.1f} .. {100 * high:.1f}" if low != high else f"{100 * low:.1f}"
