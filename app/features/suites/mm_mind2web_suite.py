"""Multimodal-Mind2Web~ as a suite of the service."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from functools import partial

from app.features.suites.boxes import boxes_of
from app.features.suites.data_folders import DataFolders
from app.features.suites.multimodal import (
    NAME,
    PredictionsPlan,
    TildeOptions,
    figures,
    run_identity,
    summary_score,
)
from app.features.suites.records import TRACE, Record
from app.features.suites.run_options import MultimodalRunIn
from app.features.suites.service_suite import Box, PreparedRun, StepView
from app.settings import Settings
from judges.suites.errors import DataMissing, DataUnreadable, PageUnusable
from judges.suites.mind2web.page import ID, Page, show_page
from judges.suites.multimodal.dialogue import read_predictions
from judges.suites.multimodal.row_files import Row, read_row
from judges.suites.multimodal.scoring import root_id
from judges.suites.multimodal.tilde_rows import TildeRow, read_tilde_row

_TILDE_ID = re.compile(r"(\s)bnid=")


class MultimodalMind2WebSuite:
    """Suite ``mm-mind2web``."""

    name = NAME

    def prepare_run(self, options_json: str, folders: DataFolders, settings: Settings) -> PreparedRun:
        options = _options(options_json, folders, settings)
        run_input = options.open_input()
        if options.answers is None:
            return PreparedRun(
                plan=options.plan(run_input),
                needs_model=True,
                identity=run_identity(options, run_input),
                figures=partial(figures, options, run_input),
                summary_score=summary_score,
            )
        plan = PredictionsPlan(run_input, read_predictions(options.answers), counting=options.counting)
        return PreparedRun(
            plan=plan,
            needs_model=False,
            identity=run_identity(options, run_input) | {"predictions": plan.digest},
            figures=partial(figures, options, run_input, unknown=plan.unknown_ids()),
            summary_score=summary_score,
        )

    def step_view(self, options_json: str, folders: DataFolders, record: Record) -> StepView:
        source, row = _read_row(options_json, folders, record)
        return StepView(
            page=_page_text(source, row),
            has_screenshot=_screenshot_uri(row) is not None,
            boxes=tuple(_boxes(row, record)),
        )

    def screenshot(self, options_json: str, folders: DataFolders, record: Record) -> bytes | None:
        _, row = _read_row(options_json, folders, record)
        uri = _screenshot_uri(row)
        if uri is None:
            return None
        try:
            return base64.b64decode(uri.partition(",")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise DataUnreadable(f"{row.place}, field prompt_0", "its screenshot is not valid base64") from error


def _options(options_json: str, folders: DataFolders, settings: Settings) -> TildeOptions:
    request = MultimodalRunIn.model_validate_json(options_json)
    return TildeOptions(
        data=folders.resolve_allowed(request.data),
        split=request.split,
        counting=request.tokens,
        seed=request.seed,
        max_examples=request.max_examples,
        model=None if request.predictions else request.model or settings.model,
        answers=None if request.predictions is None else folders.resolve_allowed(request.predictions),
    )


def _read_row(options_json: str, folders: DataFolders, record: Record) -> tuple[Row, TildeRow]:
    """Return the row of a record.

    Raises:
        DataMissing: the data have changed since the run.
    """
    request = MultimodalRunIn.model_validate_json(options_json)
    source = read_row(folders.resolve_allowed(request.data), int(record["position"]))
    row = None if source is None else read_tilde_row(source.values, place=source.place, position=source.position)
    if source is None or row is None or row.id != record["id"]:
        raise DataMissing(f"{request.data} has changed since the run: step {record['id']} is not at its position")
    return source, row


def _page_text(source: Row, row: TildeRow) -> str:
    """Return the page around the candidates in Mind2Web's text representation; empty if the page is unusable."""
    page = source.values.get("cleaned_html")
    if not isinstance(page, str):
        return ""
    try:
        parsed = Page.parse(_TILDE_ID.sub(rf"\1{ID}=", page))
        return show_page(parsed, tuple(id for id in _root_ids(row.candidates) if parsed.contains(id))).context
    except PageUnusable:
        return ""


def _screenshot_uri(row: TildeRow) -> str | None:
    pictures = [picture.url for turn in row.first_turns for picture in turn.pictures]
    return next((url for url in pictures if url.startswith("data:image/") and ";base64," in url[:100]), None)


def _boxes(row: TildeRow, record: Record) -> Iterator[Box]:
    picked = (record.get(TRACE) or {}).get("picked")
    return boxes_of(row.boxes, gold=_root_ids(row.targets), picked=_root_ids((picked,) if picked else ()))


def _root_ids(elements: Iterable[str]) -> Iterator[str]:
    return (id for id in map(root_id, elements) if id is not None)
