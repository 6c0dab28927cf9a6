"""Runs of Mind2Web: read steps lazily, ask about the candidates, score the predictions, and write the figures."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from app.features.suites.boxes import boxes_of
from app.features.suites.mind2web_steps import PreparedStep, not_judged_record, prepare_steps, scored_record
from app.features.suites.records import TRACE, Record, atomic_text_file
from app.features.suites.run_options import Mind2WebRunIn, SuiteName
from app.features.suites.suite_run import Resolve, StepView, SuiteModel, SuiteRun, tool_version
from app.settings import Settings
from judges.suites.errors import PageUnusable, SuiteError
from judges.suites.mind2web.candidate_scores import ScoreTable, parquet_of
from judges.suites.mind2web.data import ROW_SUFFIXES, Step, find_split, read_step
from judges.suites.mind2web.questions import Template, load_template, shipped_template
from judges.suites.mind2web.ranks import RankOrigin
from judges.suites.mind2web.report import (
    OFFICIAL_KEYS,
    RANKER_RECALL_AT_50,
    guide_figures,
    published,
    report,
)
from judges.suites.mind2web.step_player import (
    PlayedStep,
    guide_questions,
    parse_guide,
    shipped_guide_template,
    tournament_questions,
)
from judges.suites.mind2web.tournament import EMPTY_PREDICTION, parse_llm, read_predictions
from judges.suites.multimodal.row_files import read_row
from judges.suites.questions import Questions
from judges.suites.rules import DROPPABLE, STEP_RULES, Metric
from rubrics.verdict import Usage

NO_PREDICTION = "no_prediction"
PAGE_UNUSABLE = "page_unusable"
SCORES_FOLDER = "scores"
"""Subfolder of the data folder with converted scores files, named by the digest of the pickle."""
_EDGE_BYTES = 1 << 20


class Mind2WebRun(SuiteRun[PreparedStep]):
    """Run that asks a model about every step with a question, or scores the predictions of a file."""

    name = SuiteName.MIND2WEB
    options_class = Mind2WebRunIn
    options: Mind2WebRunIn

    def __init__(self, options: Mind2WebRunIn, resolve: Resolve, settings: Settings) -> None:
        """Validate and count all steps; open template, scores and predictions. Blocks.

        Raises:
            SuiteError: the named input cannot be used.
            PathNotAllowed: ``resolve`` refuses a path.
        """
        self._paths = {name: resolve(path) for name, path in options.paths().items()}
        data, scores = self._paths["data"], self._paths.get("scores")
        self._split = find_split(data, _split_name(options, data))
        self._template = _template(options, self._paths.get("prompt_template"))
        self.prompt = self._template.ref
        self._ranks: ScoreTable | None = None
        if scores is not None:
            self._paths["scores"] = parquet_of(scores, settings.data_dir / SCORES_FOLDER)
            self._ranks = ScoreTable(self._paths["scores"], name=scores.name)
        predictions = self._paths.get("predictions")
        self._predictions = None if predictions is None else read_predictions(predictions)
        self._parse = parse_guide if options.step_metric is Metric.ACTION else parse_llm
        # Which steps are dropped depends on the ranks, but without a limit all steps are read anyway.
        known_ranks = None if options.max_examples is None else self._ranks
        total = sum(1 for _ in prepare_steps(self._split, options, known_ranks))
        if not total:
            raise SuiteError(f"{data}: the files of split {self._split.name!r} contain no step")
        super().__init__(options, settings, total=total, max_tokens=options.reply_tokens)

    def steps(self) -> Iterator[PreparedStep]:
        return prepare_steps(self._split, self.options, self._ranks)

    def step_id(self, step: PreparedStep) -> str:
        return step.step.sample_id

    async def judge(self, step: PreparedStep, suite_model: SuiteModel) -> Record:
        """Judge one step. A fault of the data makes it ``not_judged``; errors of the model are raised."""
        fixed_record = self._fixed_record(step)
        if fixed_record is not None:
            return fixed_record
        metadata = {"sample_id": step.step.sample_id, "task_id": step.step.task_id, "step": str(step.step.number)}
        try:
            played, usage = await self.ask(self._questions(step), suite_model, metadata)
        except PageUnusable as error:
            return self.not_judged(step, PAGE_UNUSABLE, f"{step.step.place}: {error}")
        return scored_record(step, played.prediction, self.options, played, usage)

    def not_judged(self, step: PreparedStep, reason: str, detail: str, usage: Usage | None = None) -> Record:
        return not_judged_record(step, reason, detail, usage)

    def _questions(self, step: PreparedStep) -> Questions[PlayedStep]:
        if self.options.is_guide:
            max_html_chars = self.options.max_html_chars
            return guide_questions(step.step, step.kept, template=self._template, max_html_chars=max_html_chars)
        return tournament_questions(step.step, step.order, template=self._template, parse=self._parse)

    def _fixed_record(self, step: PreparedStep) -> Record | None:
        """Return the record of a step that needs no model, or None if a model must be asked."""
        if step.fault is not None:
            return self.not_judged(step, *step.fault)
        if step.unplayed in DROPPABLE or (step.unplayed is not None and self._predictions is None):
            return scored_record(step, EMPTY_PREDICTION, self.options)
        if self._predictions is None:
            return None
        recorded = self._predictions.get(step.step.sample_id)
        if recorded is None:
            return self.not_judged(step, NO_PREDICTION, "the file contains no prediction for this step")
        return scored_record(step, recorded, self.options)

    def _settings(self) -> dict[str, Any]:
        """Return the options that determine the figures."""
        options = self.options
        return {
            "split": self._split.name,
            "protocol": str(options.protocol),
            "metric": str(options.step_metric),
            "no_positive": str(options.no_positive_policy),
            "temperature": options.temperature,
            "template": self._template.ref,
            "top_k": options.top_k,
            "shuffle": str(options.shuffle),
            "data": list(map(_file_identity, self._split.files)),
        }

    def identity(self) -> dict[str, Any]:
        return {
            **self._settings(),
            "suite": self.name.value,
            "model": self.model,
            "seed": self.options.seed,
            "max_tokens": self.options.reply_tokens,
            "max_html_chars": self.options.max_html_chars,
            "scores": self._identity_of("scores"),
            "predictions": self._identity_of("predictions"),
        }

    def _identity_of(self, name: str) -> dict[str, Any] | None:
        return _file_identity(self._paths[name]) if name in self._paths else None

    def unknown_ids(self, records: Sequence[Record]) -> list[str]:
        """Return ids of predicted steps that are not in the data. Empty if only part of the data is run."""
        if self._predictions is None or self.options.max_examples is not None:
            return []
        return sorted(self._predictions.keys() - {record["id"] for record in records})

    def own_figures(self, records: Sequence[Record]) -> dict[str, Any]:
        options, split = self.options, self._split.name
        metric, no_positive = options.step_metric, options.no_positive_policy
        origins = Counter(record["origin"] for record in records if record["origin"])
        return {
            **self._settings(),
            "step_rule": STEP_RULES[metric],
            "compat_trailing": options.compat_trailing,
            "predictions": None if options.predictions is None else Path(options.predictions).name,
            "scores": None if self._ranks is None else self._ranks.name,
            "rank_origin": dict(origins),
            "max_html_chars": options.max_html_chars if options.is_guide else None,
            "gold_always_included": RankOrigin.LISTED in origins,
            "versions": {"assay": tool_version(), "python": platform.python_version(), "lxml": etree.__version__},
            "n_tasks": len({record["task_id"] for record in records}),
            **report(
                records,
                metric=metric,
                no_positive=no_positive,
                top_k=options.top_k,
                seed=options.seed,
                compat_trailing=options.compat_trailing,
                official=not options.is_guide,
            ),
            **(guide_figures(records, no_positive) if options.is_guide else {}),
            "empty_outputs": sum(record["empty_outputs"] for record in records),
            "published": [] if options.is_guide else published(split),
            "published_recall_at_50": RANKER_RECALL_AT_50.get(split),
        }

    def describe(self) -> Iterator[str]:
        source = f"predictions of {self.options.predictions}" if self.model is None else self.model
        yield f"{self.total} steps of {self._split.name} by {source}"
        if self._ranks is None:
            yield (
                "no --scores-pickle: unless the data contain ranks, gold elements and the first other listed ones are "
                "used. The gold element is then always an option, and figures are not comparable to published ones."
            )

    def write_more(self, folder: Path, metrics: Mapping[str, Any], records: Iterator[Record]) -> None:
        """Write the three files of the published evaluation, with its names. The guide's protocol has none.

        The results file is written only if every step was judged by the published metric, because its format has no
        bounds.

        Raises:
            AppError: a file cannot be written.
        """
        if self.options.is_guide:
            return
        name, top_k = self._split.name, self.options.top_k
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

    @classmethod
    def step_view(cls, options: Mind2WebRunIn, resolve: Resolve, record: Record) -> StepView:
        """Return the page of the last question and the boxes."""
        trace = record[TRACE]
        question = trace["prompt"][-1] if trace["prompt"] else ""
        if question.startswith("'''"):
            page, _, _ = question.removeprefix("'''\n").partition("\n'''\n\n")
        else:  # the guide's question
            page, _, _ = question.partition('"""\n')[2].rpartition('\n"""')
        prediction = record.get("prediction") or ["", ""]
        boxes = boxes_of(trace["boxes"], gold=trace["gold"]["elements"], picked=prediction[:1])
        row = _source_row(options, resolve, record)
        return StepView(page=page, screenshot=None if row is None else row.screenshot, boxes=tuple(boxes))


def _split_name(options: Mind2WebRunIn, data: Path) -> str:
    return options.split or data.stem


def _template(options: Mind2WebRunIn, file: Path | None) -> Template:
    if file is not None:
        return load_template(file)
    return shipped_guide_template() if options.is_guide else shipped_template()


def _source_row(options: Mind2WebRunIn, resolve: Resolve, record: Record) -> Step | None:
    """Return the Multimodal-Mind2Web row of a step, or None if the data are the published JSON.

    Raises:
        SuiteError: the data have changed since the run.
    """
    data = resolve(options.data)
    files = find_split(data, _split_name(options, data)).files
    if not ROW_SUFFIXES.issuperset(file.suffix for file in files):
        return None
    row = read_row(files, int(record["position"]))
    step = None if row is None else read_step(row.values, place=row.place)
    if step is None or step.sample_id != record["id"]:
        raise SuiteError(f"{options.data} has changed since the run: step {record['id']} is not at its position")
    return step


def official_rounds(record: Record) -> list[Any]:
    """Return ``[candidate_ids, [page, question, options], raw]`` for each round."""
    trace = record[TRACE]
    rounds = []
    for round_trace, prompt, raw in zip(trace["rounds"], trace["prompt"], trace["raw_output"], strict=True):
        page, _, question = prompt.removeprefix("'''\n").partition("\n'''\n\n")  # a page is a single line
        rounds.append([round_trace["candidate_ids"], [page, question, round_trace["options"]], raw])
    return rounds


def _file_identity(file: Path) -> dict[str, Any]:
    """Return name, size, and a digest of the beginning and the end of a file."""
    size, digest = file.stat().st_size, hashlib.sha256()
    with file.open("rb") as source:
        digest.update(source.read(_EDGE_BYTES))
        source.seek(max(0, size - _EDGE_BYTES))
        digest.update(source.read(_EDGE_BYTES))
    return {"name": file.name, "bytes": size, "sha256_of_ends": digest.hexdigest()}
