"""Mind2Web as a suite of the service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.features.suites.boxes import boxes_of
from app.features.suites.data_folders import DataFolders
from app.features.suites.mindact import NAME, PlayOptions
from app.features.suites.mindact_run import SCORES_FOLDER, MindActOptions, figures, run_identity, summary_score
from app.features.suites.records import TRACE, Record
from app.features.suites.run_options import Mind2WebRunIn
from app.features.suites.service_suite import Box, PreparedRun, StepView
from app.settings import Settings
from judges.suites.errors import DataMissing
from judges.suites.mind2web.data import ROW_SUFFIXES, Step, find_split, read_step
from judges.suites.mind2web.scores import parquet_of
from judges.suites.multimodal.row_files import count_rows, read_row


class Mind2WebSuite:
    """Suite ``mind2web``."""

    name = NAME

    def prepare_run(self, options_json: str, folders: DataFolders, settings: Settings) -> PreparedRun:
        options = _options(options_json, folders, settings)
        run_input = options.open_input()
        return PreparedRun(
            plan=options.plan(run_input),
            needs_model=options.predictions is None,
            identity=run_identity(options, run_input) | {"max_examples": options.max_examples},
            figures=partial(figures, options, run_input),
            summary_score=summary_score,
        )

    def step_view(self, options_json: str, folders: DataFolders, record: Record) -> StepView:
        """Return the page of the last question and the boxes."""
        trace = record[TRACE]
        question = trace["prompt"][-1] if trace["prompt"] else ""
        if question.startswith("'''"):
            page, _, _ = question.removeprefix("'''\n").partition("\n'''\n\n")
        else:  # the guide's question
            page, _, _ = question.partition('"""\n')[2].rpartition('\n"""')
        return StepView(
            page=page,
            has_screenshot=self.screenshot(options_json, folders, record) is not None,
            boxes=tuple(_boxes(record)),
        )

    def screenshot(self, options_json: str, folders: DataFolders, record: Record) -> bytes | None:
        source = _source_row(options_json, folders, record)
        return None if source is None else source.screenshot


def _options(options_json: str, folders: DataFolders, settings: Settings) -> MindActOptions:
    request = Mind2WebRunIn.model_validate_json(options_json)
    data = folders.resolve_allowed(request.data)
    paths = {name: folders.resolve_allowed(path) for name, path in request.paths().items()}
    options = MindActOptions(
        data=data,
        split=request.split or data.stem,
        scores=scores_table(paths.get("scores"), settings),
        template=paths.get("prompt_template"),
        play_options=PlayOptions.of_request(request),
        compat_trailing=request.compat_trailing,
        max_examples=request.max_examples,
        model=request.model or settings.model,
    )
    if "predictions" not in paths:
        return options
    return replace(options, model=None, predictions=paths["predictions"])


def scores_table(file: Path | None, settings: Settings) -> Path | None:
    """Return the Parquet file of a scores file, which is converted if necessary."""
    return None if file is None else parquet_of(file, settings.data_dir / SCORES_FOLDER)


def _source_row(options_json: str, folders: DataFolders, record: Record) -> Step | None:
    """Return the Multimodal-Mind2Web row of a step, or None if the data are the published JSON.

    Raises:
        DataMissing: the data have changed since the run.
    """
    request = Mind2WebRunIn.model_validate_json(options_json)
    data = folders.resolve_allowed(request.data)
    position = int(record["position"])
    for file in find_split(data, request.split or data.stem).files:
        if file.suffix not in ROW_SUFFIXES:
            return None
        count = count_rows(file)
        if position < count:
            return _read_source_row(file, position, record)
        position -= count
    raise DataMissing(f"{request.data} has changed since the run: it has fewer steps")


def _read_source_row(file: Path, position: int, record: Record) -> Step:
    row = read_row(file, position)
    step = None if row is None else read_step(row.values, place=row.place)
    if step is None or (step.task_id, step.action_uid) != (record["task_id"], record["action_uid"]):
        raise DataMissing(f"{file.name} has changed since the run: step {record['id']} is not at its position")
    return step


def _boxes(record: Record) -> Iterator[Box]:
    trace = record[TRACE]
    prediction = record.get("prediction") or ["", ""]
    return boxes_of(trace["boxes"], gold=trace["gold"]["elements"], picked=prediction[:1])
