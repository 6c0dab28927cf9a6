"""``assay suites mind2web``: run a model over Mind2Web, or score predictions from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from app.console.connection import JsonOption
from app.console.errors import WrongUsage
from app.console.judging_options import judging_settings, quiet_logging
from app.console.tables import PlainTable, plain_table
from app.features.suites.cli_suite_run import (
    ConfigOption,
    DryRunOption,
    MaxLlmOption,
    ModelOption,
    NoCacheOption,
    OutputDirOption,
    percent_range,
    published_table,
    run_options,
    run_suite,
)
from app.features.suites.mind2web import Mind2WebRun
from app.features.suites.run_options import Mind2WebRunIn
from judges.suites.rules import MAX_HTML_CHARS, Metric, NoPositive, Protocol, Shuffle

DataRootOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="Data file, folder of a split, or folder with files named after the split.")
]
ScoresOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Candidate scores of the ranker: scores_all_data.pkl. A restricted child process converts it."),
]
TemplateOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="JSON list of chat messages, or JSON object {system, examples, template} (default: built-in template)."
    ),
]
NoPositiveOption: TypeAlias = Annotated[
    NoPositive | None,
    typer.Option(help="Score of steps without a gold element within top-k (default: zero; guide: skip)."),
]


ProtocolOption: TypeAlias = Annotated[
    Protocol, typer.Option(help="tournament: published rounds of five elements; guide: one question per step.")
]
SplitOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Split, for example test_task (default: test_task for --protocol guide; name of a single file)."),
]
MaxTokensOption: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Maximum output tokens of a reply (default: 50; guide: 512).")
]
MaxHtmlOption: TypeAlias = Annotated[
    int, typer.Option(min=100, help="Maximum characters of the page in the question of the guide.")
]
ShuffleOption: TypeAlias = Annotated[
    Shuffle, typer.Option(help="step: one random generator per step; stream: one for all steps.")
]
MetricOption: TypeAlias = Annotated[
    Metric | None,
    typer.Option(
        help="Rule for a successful step: mindact (operation F1) or action (default: mindact; guide: action)."
    ),
]
CompatTrailingOption: TypeAlias = Annotated[
    bool, typer.Option("--compat-trailing", help="Reproduce the published handling of the end of a split.")
]
PredictionsOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="Score the predictions in this file instead of asking a model.")
]


def mind2web(
    config: ConfigOption = None,
    protocol: ProtocolOption = Protocol.TOURNAMENT,
    data_root: DataRootOption = None,
    split: SplitOption = None,
    scores_pickle: ScoresOption = None,
    top_k: Annotated[int, typer.Option(min=1, help="Number of top-ranked candidates to ask about.")] = 50,
    temperature: Annotated[float, typer.Option(min=0.0, max=2.0, help="Sampling temperature of the model.")] = 0.0,
    max_tokens: MaxTokensOption = None,
    max_html_chars: MaxHtmlOption = MAX_HTML_CHARS,
    max_examples: Annotated[int | None, typer.Option(min=1, help="Maximum number of steps to evaluate.")] = None,
    prompt_template: TemplateOption = None,
    output_dir: OutputDirOption = None,
    model: ModelOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the order of candidates and for the intervals.")] = 0,
    shuffle: ShuffleOption = Shuffle.STEP,
    max_llm: MaxLlmOption = None,
    metric: MetricOption = None,
    no_positive: NoPositiveOption = None,
    compat_trailing: CompatTrailingOption = False,
    predictions: PredictionsOption = None,
    dry_run: DryRunOption = False,
    no_cache: NoCacheOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a model over Mind2Web. Multiple-choice questions are scored as published, or as in the guide."""
    root, split = _check_data(data_root, split, protocol)

    settings = judging_settings(model=model, max_llm=max_llm, reply_cache_bytes=0 if no_cache else None)
    quiet_logging(settings)
    options = run_options(
        Mind2WebRunIn, data=str(root), split=split, scores=scores_pickle and str(scores_pickle), protocol=protocol,
        prompt_template=prompt_template and str(prompt_template), metric=metric, no_positive=no_positive, top_k=top_k,
        seed=seed, shuffle=shuffle, temperature=temperature, max_tokens=max_tokens, max_html_chars=max_html_chars,
        compat_trailing=compat_trailing, max_examples=max_examples, predictions=predictions and str(predictions),
    )  # fmt: skip
    run_suite(Mind2WebRun, options, settings, _summary, folder=output_dir, dry_run=dry_run, as_json=as_json)


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
