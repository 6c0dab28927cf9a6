"""Run of Mind2Web from its options to its figures and files. Shared by the command line and the service."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree

from app.features.suites.mindact import NAME, MindActPlan, PlayOptions, prepare_steps
from app.features.suites.records import TRACE, Record, without_trace
from app.features.suites.reports import atomic_text_file, not_judged_summary, tool_version, total_usage
from app.features.suites.step_loop import Plan
from judges.llm.providers import parse_model
from judges.suites.errors import DataMissing
from judges.suites.mind2web.data import Split, find_split
from judges.suites.mind2web.questions import Template, load_template, shipped_template
from judges.suites.mind2web.ranks import RankOrigin
from judges.suites.mind2web.report import (
    OFFICIAL_KEYS,
    RANKER_RECALL_AT_50,
    guide_figures,
    published,
    report,
)
from judges.suites.mind2web.scores import ScoreTable
from judges.suites.mind2web.step_player import shipped_guide_template
from judges.suites.mind2web.tournament import RecordedPrediction, read_predictions
from judges.suites.questions import request_params
from judges.suites.rules import STEP_RULES
from rubrics.scoring import Score, bounded_score

SCORES_FOLDER = "scores"
"""Subfolder of the data folder with converted scores files, named by the digest of the pickle."""
_EDGE_BYTES = 1 << 20
_MAX_UNKNOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MindActOptions:
    """Options of a run.

    ``scores`` is a Parquet file of ``judges.suites.mind2web.scores``; ``scores_name`` is the name of the original file.
    ``model`` is ``provider/model``, or None if the predictions in ``predictions`` are scored.
    """

    data: Path
    split: str
    scores: Path | None = None
    scores_name: str = ""
    template: Path | None = None
    play_options: PlayOptions = field(default_factory=PlayOptions)
    compat_trailing: bool = False
    max_examples: int | None = None
    model: str | None = None
    predictions: Path | None = None

    def plan(self, run_input: MindActInput) -> Plan[Any]:
        return run_input.plan(self.play_options)

    def open_input(self) -> MindActInput:
        """Validate and count all steps; open template, scores and predictions. Blocks.

        Damaged data is found here, before the first request is paid for.

        Raises:
            DataMissing, DataUnreadable, TemplateUnusable, PredictionsUnusable: the named input cannot be used.
        """
        split, ranks = find_split(self.data, self.split), self.open_ranks()
        # Which steps are dropped depends on the ranks, but without a limit all steps are read anyway.
        known_ranks = None if self.max_examples is None else ranks
        total = sum(1 for _ in prepare_steps(split, self.play_options, known_ranks, max_examples=self.max_examples))
        if not total:
            raise DataMissing(f"{self.data}: the files of split {self.split!r} contain no step")
        return MindActInput(
            split=split,
            total=total,
            template=self.open_template(),
            ranks=ranks,
            max_examples=self.max_examples,
            predictions=None if self.predictions is None else read_predictions(self.predictions),
            files=tuple(_file_identity(file) for file in split.files),
        )

    def open_ranks(self) -> ScoreTable | None:
        return None if self.scores is None else ScoreTable(self.scores, name=self.scores_name)

    def open_template(self) -> Template:
        if self.template is not None:
            return load_template(self.template)
        return shipped_guide_template() if self.play_options.is_guide else shipped_template()


@dataclass(frozen=True, slots=True, kw_only=True)
class MindActInput:
    """Input of a run. ``files`` identify the data by name, size, and a digest of the beginning and the end."""

    split: Split
    total: int
    template: Template
    ranks: ScoreTable | None
    max_examples: int | None
    predictions: Mapping[str, RecordedPrediction] | None
    files: tuple[Mapping[str, Any], ...]

    def plan(self, play_options: PlayOptions) -> MindActPlan:
        return MindActPlan(
            self.split,
            self.total,
            play_options=play_options,
            ranks=self.ranks,
            template=self.template,
            predictions=self.predictions,
            max_examples=self.max_examples,
        )

    def unknown_prediction_ids(self, records: Sequence[Record]) -> list[str]:
        """Return ids of predicted steps that are not in the data. Empty if only part of the data is run."""
        if self.predictions is None or self.max_examples is not None:
            return []
        return sorted(self.predictions.keys() - {record["id"] for record in records})


def run_identity(options: MindActOptions, run_input: MindActInput) -> dict[str, Any]:
    """Return the values that must be equal for the steps of an earlier run to be reused."""
    return {
        "suite": NAME,
        "model": options.model,
        "split": options.split,
        "protocol": str(options.play_options.protocol),
        "top_k": options.play_options.top_k,
        "seed": options.play_options.seed,
        "shuffle": str(options.play_options.shuffle),
        "max_tokens": options.play_options.max_tokens,
        "max_html_chars": options.play_options.max_html_chars,
        "temperature": options.play_options.temperature,
        "metric": str(options.play_options.metric),
        "no_positive": str(options.play_options.no_positive),
        "template": run_input.template.ref,
        "scores": None if options.scores is None else _file_identity(options.scores),
        "data": list(run_input.files),
        "predictions": None if options.predictions is None else _file_identity(options.predictions),
    }


def figures(options: MindActOptions, run_input: MindActInput, records: Sequence[Record]) -> dict[str, Any]:
    """Return the figures of a run with its options and data. Blocks."""
    play_options, missing, unknown = (
        options.play_options,
        not_judged_summary(records),
        run_input.unknown_prediction_ids(records),
    )
    model_name = None if options.model is None else parse_model(options.model).model
    origins = Counter(record["origin"] for record in records if record["origin"])
    return {
        "suite": NAME,
        "status": "incomplete" if missing["count"] else "complete",
        "protocol": str(play_options.protocol),
        "metric": str(play_options.metric),
        "step_rule": STEP_RULES[play_options.metric],
        "no_positive": str(play_options.no_positive),
        "compat_trailing": options.compat_trailing,
        "model": options.model,
        "predictions": None if options.predictions is None else options.predictions.name,
        "temperature": play_options.temperature,
        "params": None
        if model_name is None
        else dict(request_params(model_name, max_tokens=play_options.max_tokens, temperature=play_options.temperature)),
        "template": run_input.template.ref,
        "split": options.split,
        "top_k": play_options.top_k,
        "seed": play_options.seed,
        "shuffle": str(play_options.shuffle),
        "max_examples": options.max_examples,
        "data": list(run_input.files),
        "scores": None if run_input.ranks is None else run_input.ranks.name,
        "rank_origin": dict(origins),
        "max_html_chars": play_options.max_html_chars if play_options.is_guide else None,
        "gold_always_included": RankOrigin.LISTED in origins,
        "versions": {"assay": tool_version(), "python": platform.python_version(), "lxml": etree.__version__},
        "n_steps": len(records),
        "n_tasks": len({record["task_id"] for record in records}),
        **report(
            records,
            metric=play_options.metric,
            no_positive=play_options.no_positive,
            top_k=play_options.top_k,
            seed=play_options.seed,
            compat_trailing=options.compat_trailing,
            official=not play_options.is_guide,
        ),
        **(guide_figures(records, play_options.no_positive) if play_options.is_guide else {}),
        "empty_outputs": sum(record["empty_outputs"] for record in records),
        "published": [] if play_options.is_guide else published(options.split),
        "published_recall_at_50": RANKER_RECALL_AT_50.get(options.split),
        "not_judged": missing,
        "unknown_ids": unknown[:_MAX_UNKNOWN],
        "unknown_count": len(unknown),
        "usage": total_usage(records),
    }


def score_file(options: MindActOptions, run_input: MindActInput) -> tuple[dict[str, Any], list[Record]]:
    """Return the figures and records for predictions from a file. Blocks.

    Raises:
        DataUnreadable: the data are damaged.
    """
    plan = run_input.plan(options.play_options)
    records = [record for step in plan.steps() if (record := plan.score(step)) is not None]
    return figures(options, run_input, [without_trace(record) for record in records]), records


def summary_score(metrics: Mapping[str, Any]) -> Score:
    """Return the figure for lists of runs: step success over all steps, with its bounds."""
    low, high = (float(metrics["bounds"][end]["micro"]["step_success"]) for end in ("low", "high"))
    return bounded_score(low, high)


def write_official_files(
    options: MindActOptions, folder: Path, metrics: Mapping[str, Any], records: Iterator[Record]
) -> None:
    """Write the three files of the published evaluation, with its names. Blocks.

    The guide's protocol has none.

    The results file is written only if every step was judged by the published metric, because its format has no bounds.

    Raises:
        RunUnwritable: a file cannot be written.
    """
    if options.play_options.is_guide:
        return
    name, top_k = options.split, options.play_options.top_k
    results = folder / f"{name}_results_top{top_k}.json"
    with (
        atomic_text_file(folder / f"{name}_predictions_top{top_k}.json") as predictions,
        atomic_text_file(folder / f"{name}_outputs_top{top_k}.json") as outputs,
    ):
        begun = False
        for record in records:
            if not record["judged"]:
                continue
            between = ",\n" if begun else "[\n"
            begun = True
            predictions.write(between + json.dumps([record["id"], *record["prediction"]], ensure_ascii=False))
            outputs.write(between + json.dumps([record["id"], official_rounds(record)], ensure_ascii=False))
        for file in (predictions, outputs):
            file.write("\n]\n" if begun else "[]\n")
    if "element_acc" in metrics:
        with atomic_text_file(results) as file:
            json.dump({key: metrics[key] for key in OFFICIAL_KEYS}, file, ensure_ascii=False, indent=2)
            file.write("\n")
    else:
        results.unlink(missing_ok=True)


def official_rounds(record: Record) -> list[Any]:
    """Return ``[candidate_ids, [page, question, options], raw]`` for each round."""
    trace = record[TRACE]
    rounds = []
    for round_trace, prompt, raw in zip(trace["rounds"], trace["prompt"], trace["raw_output"], strict=True):
        page, _, question = prompt.removeprefix("'''\n").partition("\n'''\n\n")  # a page is a single line
        rounds.append([round_trace["candidate_ids"], [page, question, round_trace["options"]], raw])
    return rounds


def _file_identity(file: Path) -> dict[str, Any]:
    size, digest = file.stat().st_size, hashlib.sha256()
    with file.open("rb") as source:
        digest.update(source.read(_EDGE_BYTES))
        source.seek(max(0, size - _EDGE_BYTES))
        digest.update(source.read(_EDGE_BYTES))
    return {"name": file.name, "bytes": size, "sha256_of_ends": digest.hexdigest()}
