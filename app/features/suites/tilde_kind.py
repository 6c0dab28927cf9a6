"""Multimodal-Mind2Web~ as a suite of the service."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from functools import partial

from app.features.suites.boxes import GOLD, PICKED, parse_box
from app.features.suites.data_folders import DataFolders
from app.features.suites.multimodal import (
    NAME,
    PredictionsPlan,
    TildeOptions,
    TildePlan,
    figures,
    run_identity,
    summary_score,
)
from app.features.suites.records import TRACE, Record
from app.features.suites.run_options import MultimodalRunIn
from app.features.suites.suite_kind import Box, PreparedRun, StepView
from app.settings import Settings
from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.mind2web.errors import PageUnusable
from judges.suites.mind2web.page import ID, Page
from judges.suites.mind2web.representation import show_page
from judges.suites.multimodal.predictions import read_predictions
from judges.suites.multimodal.row_files import Row, read_row
from judges.suites.multimodal.scoring import root_id
from judges.suites.multimodal.tilde_rows import TildeRow, read_tilde_row

_TILDE_ID = re.compile(r"(\s)bnid=")


class TildeKind:
    """Suite ``mm-mind2web``."""

    name = NAME

    def opened(self, order: str, places: DataFolders, settings: Settings) -> PreparedRun:
        options = _options(order, places, settings)
        surveyed = options.open_data()
        if options.answers is None:
            return PreparedRun(
                plan=TildePlan(surveyed, counting=options.counting),
                asks=True,
                identity=run_identity(options, surveyed),
                figures=partial(figures, options, surveyed),
                score=summary_score,
            )
        plan = PredictionsPlan(surveyed, read_predictions(options.answers), counting=options.counting)
        return PreparedRun(
            plan=plan,
            asks=False,
            identity=run_identity(options, surveyed) | {"predictions": plan.digest},
            figures=partial(figures, options, surveyed, unknown=plan.unknown_ids()),
            score=summary_score,
        )

    def view(self, order: str, places: DataFolders, record: Record) -> StepView:
        source, row = _row(order, places, record)
        return StepView(
            page=_representation(source, row), has_picture=_uri(row) is not None, boxes=tuple(_boxes(row, record))
        )

    def picture(self, order: str, places: DataFolders, record: Record) -> bytes | None:
        _, row = _row(order, places, record)
        uri = _uri(row)
        if uri is None:
            return None
        try:
            return base64.b64decode(uri.partition(",")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise DataUnreadable(f"{row.place}, field prompt_0", "its screenshot is not valid base64") from error


def _options(order: str, places: DataFolders, settings: Settings) -> TildeOptions:
    request = MultimodalRunIn.model_validate_json(order)
    return TildeOptions(
        data=places.allowed(request.data),
        split=request.split,
        counting=request.tokens,
        seed=request.seed,
        max_examples=request.max_examples,
        model=None if request.predictions else request.model or settings.model,
        answers=None if request.predictions is None else places.allowed(request.predictions),
    )


def _row(order: str, places: DataFolders, record: Record) -> tuple[Row, TildeRow]:
    """Return the row of a record.

    Raises:
        DataMissing: the data have changed since the run.
    """
    request = MultimodalRunIn.model_validate_json(order)
    source = read_row(places.allowed(request.data), record["position"])
    row = None if source is None else read_tilde_row(source.values, place=source.place, position=source.position)
    if source is None or row is None or row.id != record["id"]:
        raise DataMissing(f"{request.data} has changed since the run: step {record['id']} is not at its position")
    return source, row


def _representation(source: Row, row: TildeRow) -> str:
    """Return the page around the candidates in Mind2Web's text representation; empty if the page is unusable."""
    page = source.values.get("cleaned_html")
    if not isinstance(page, str):
        return ""
    try:
        parsed = Page.parse(_TILDE_ID.sub(rf"\1{ID}=", page))
        return show_page(parsed, tuple(id for id in _ids(row.candidates) if parsed.holds(id))).context
    except PageUnusable:
        return ""


def _uri(row: TildeRow) -> str | None:
    pictures = [picture.url for turn in row.first_turns for picture in turn.pictures]
    return next((url for url in pictures if url.startswith("data:image/") and ";base64," in url[:100]), None)


def _boxes(row: TildeRow, record: Record) -> Iterator[Box]:
    """Yield the boxes of all gold elements, then of the picked one."""
    picked = (record.get(TRACE) or {}).get("picked")
    for role, elements in ((GOLD, row.targets), (PICKED, (picked,) if picked else ())):
        for id in _ids(elements):
            box = parse_box(row.boxes.get(id, ""))
            if box is not None:
                yield Box(role=role, id=id, x=box[0], y=box[1], width=box[2], height=box[3])


def _ids(elements: Iterable[str]) -> Iterator[str]:
    return (id for id in map(root_id, elements) if id is not None)
