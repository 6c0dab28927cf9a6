"""``assay suites mind2web``: run a model over Mind2Web, or score predictions from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.errors import WrongUsage
from app.console.tables import PlainTable, plain_table
from app.features.suites.cli_suite_run import ConfigOption, RunOptions, percent_range, published_table, run_suite
from app.features.suites.mind2web import Mind2WebRun
from app.features.suites.run_options import Mind2WebRunIn
from judges.suites.rules import MAX_HTML_CHARS, Metric, NoPositive, Protocol, Shuffle


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    data_root: Annotated[
        Path | None, typer.Option(help="Data file, folder of a split, or folder with files named after the split.")
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            help="Split, for example test_task (default: test_task for --protocol guide; name of a single file)."
        ),
    ] = None
    scores_pickle: Annotated[
        Path | None,
        typer.Option(
            help="Candidate scores of the ranker: scores_all_data.pkl. A restricted child process converts it."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Questions:
    protocol: Annotated[
        Protocol, typer.Option(help="tournament: published rounds of five elements; guide: one question per step.")
    ] = Protocol.TOURNAMENT
    top_k: Annotated[int, typer.Option(min=1, help="Number of top-ranked candidates to ask about.")] = 50
    shuffle: Annotated[
        Shuffle, typer.Option(help="step: one random generator per step; stream: one for all steps.")
    ] = Shuffle.STEP
    temperature: Annotated[float, typer.Option(min=0.0, max=2.0, help="Sampling temperature of the model.")] = 0.0
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum output tokens of a reply (default: 50; guide: 512).")
    ] = None
    max_html_chars: Annotated[
        int, typer.Option(min=100, help="Maximum characters of the page in the question of the guide.")
    ] = MAX_HTML_CHARS
    prompt_template: Annotated[
        Path | None,
        typer.Option(
            help="JSON list of chat messages, or JSON object {system, examples, template} (default: built-in template)."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoring:
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="Rule for a successful step: mindact (operation F1) or action (default: mindact; guide: action)."
        ),
    ] = None
    no_positive: Annotated[
        NoPositive | None,
        typer.Option(help="Score of steps without a gold element within top-k (default: zero; guide: skip)."),
    ] = None
    compat_trailing: Annotated[
        bool, typer.Option("--compat-trailing", help="Reproduce the published handling of the end of a split.")
    ] = False


def mind2web(
    *, config: ConfigOption = None, data: _Data, questions: _Questions, scoring: _Scoring, run: RunOptions
) -> None:
    """Run a model over Mind2Web. Multiple-choice questions are scored as published, or as in the guide."""
    root, split = _check_data(data.data_root, data.split, questions.protocol)
    own = asdict(questions) | asdict(scoring)
    run_suite(Mind2WebRun, Mind2WebRunIn, _summary, run, data=root, split=split, scores=data.scores_pickle, **own)


def _check_data(root: Path | None, split: str | None, protocol: Protocol) -> tuple[Path, str | None]:
    if root is None:
        raise WrongUsage("--data-root is missing", hint="assay suites mind2web --data-root DATA --split test_task")
    if not root.exists():
        raise WrongUsage(f"--data-root {root}: no such file or folder")
    if split is None and root.is_dir() and protocol is Protocol.GUIDE:
        return root, "test_task"
    if split is None and root.is_dir():
        raise WrongUsage(
            "--split is missing: a folder can contain several splits", hint="For example: --split test_task"
        )
    return root, split


def _summary(metrics: Mapping[str, Any]) -> Iterator[PlainTable | str]:
    yield figures_table(metrics)
    yield from policy_lines(metrics)
    yield from candidate_line(metrics)
    if metrics["published"] and metrics["protocol"] == "tournament":
        yield published_table(metrics, "Published (paper, Table 2): means over tasks, percent")


_MEANS = {"micro": "steps (micro)", "macro": "tasks (macro)"}


def figures_table(metrics: Mapping[str, Any]) -> PlainTable:
    """Return the figures for each policy on steps without a gold element, over steps and over tasks.

    Figures are ranges if steps were not judged.
    """
    source = metrics["model"] or metrics["predictions"]
    title = f"{metrics['suite']} ({metrics['protocol']})  {source}  {metrics['split']}  top {metrics['top_k']}"
    second = "op F1" if metrics["metric"] == "mindact" else "action acc"
    numbers = ("steps", "element acc", second, "step success", "task success")
    title = f"{title}, seed {metrics['seed']}, percent"
    table = plain_table("no positive", "mean over", *numbers, right=numbers, title=title)
    for policy, figures in metrics["policies"].items():
        chosen = " *" if policy == metrics["no_positive"] else ""
        for mean, label in _MEANS.items():
            cells = [_cell(figures, mean, name) for name in figures[mean]]
            table.add_row(policy + chosen, label, str(figures["steps"]), *cells, _cell(figures, "task_success"))
    return table


def policy_lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of steps that were loaded, dropped and evaluated without a question, by reason."""
    dropped = metrics["dropped"]
    yield f"{metrics['n_loaded']} steps loaded, {metrics['n_evaluated']} evaluated; dropped: {_counts(dropped)}"
    failed = {reason: count for reason, count in metrics["skipped"].items() if not dropped.get(reason)}
    if failed:
        yield f"no question for {_counts(failed)} of {metrics['n_steps']} steps"
    if metrics["gold_always_included"]:
        yield "candidates without ranks, gold elements first: not comparable to published figures"


def _counts(by_reason: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in by_reason.items())


def candidate_line(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the recall of the ranker, if the candidates have ranks."""
    ranking = metrics["candidates"]
    if not ranking["steps"] or metrics["gold_always_included"]:
        return
    recalls = [f"recall@{k} {100 * ranking[f'recall@{k}']:.1f}" for k in (10, 50)]
    known = metrics["published_recall_at_50"]
    published = "" if known is None else f" (published recall@50: {known})"
    yield f"ranker: {', '.join(recalls)}, MRR {ranking['mrr']:.3f}{published}"


def _cell(figures: Mapping[str, Any], *path: str) -> str:
    def lookup(values: Any) -> Any:
        for name in path:
            values = values[name]
        return values

    value = lookup(figures)
    if value is not None:
        return f"{100 * value:.1f}"
    return percent_range(*(lookup(figures["bounds"][end]) for end in ("low", "high")))
