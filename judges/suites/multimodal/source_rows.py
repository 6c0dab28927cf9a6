"""Rows of Multimodal-Mind2Web: steps with page, screenshot and positive elements.

Several columns contain JSON strings; the candidates' attributes are JSON strings within them.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.tilde_rows import RowFields

COLUMNS = (
    "action_uid",
    "raw_html",
    "cleaned_html",
    "operation",
    "pos_candidates",
    "neg_candidates",
    "website",
    "domain",
    "subdomain",
    "annotation_id",
    "confirmed_task",
    "screenshot",
    "action_reprs",
    "target_action_index",
)
"""Columns that are read. In the test splits raw_html is a copy of cleaned_html."""
LAYOUT_COLUMNS = ("actions", "task_id")
"""Columns of other layouts of the two data sets, by which they are recognized."""
OPS = frozenset({"CLICK", "TYPE", "SELECT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Candidate element. ``box`` is ``x,y,w,h`` in page pixels, empty if unknown."""

    id: str
    tag: str
    box: str
    attributes: str
    """JSON text, empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStep:
    """One step. ``screenshot`` is the content of an image file, or None for the few rows without one."""

    place: str
    action_uid: str
    task_id: str
    step: int
    task: str
    history: tuple[str, ...]
    raw_page: str
    page: str
    op: str
    value: str
    positives: tuple[Candidate, ...]
    negatives: tuple[Candidate, ...]
    screenshot: bytes | None
    website: str
    domain: str
    subdomain: str


def read_source_step(values: Mapping[str, Any], *, place: str) -> SourceStep:
    """Validate and convert a row.

    Raises:
        DataUnreadable: a field is missing or malformed. The message names the first one.
    """
    check_layout(values, place)
    row = RowFields(values, place)
    step = row.whole("target_action_index")
    operation = row.decoded("operation")
    if not isinstance(operation, Mapping):
        raise row.error("operation", "must be an object with op and value")
    inner = RowFields(operation, f"{place}, field operation")
    op = inner.text("op", needed=True)
    if op not in OPS:
        raise inner.error("op", f"must be one of {', '.join(sorted(OPS))}, not {op[:40]!r}")
    reprs = row.texts("action_reprs", needed=True)
    return SourceStep(
        place=place,
        action_uid=row.text("action_uid", needed=True),
        task_id=row.text("annotation_id", needed=True),
        step=step,
        task=row.text("confirmed_task", needed=True),
        history=reprs[:step],
        raw_page=row.text("raw_html"),
        page=row.text("cleaned_html", needed=not values.get("raw_html")),
        op=op,
        value=inner.text("value"),
        positives=_candidates(row, "pos_candidates"),
        negatives=_candidates(row, "neg_candidates"),
        screenshot=_screenshot(row, values.get("screenshot")),
        website=row.text("website"),
        domain=row.text("domain"),
        subdomain=row.text("subdomain"),
    )


def check_layout(values: Mapping[str, Any], place: str) -> None:
    """Raise DataUnreadable if the row belongs to another layout of the data sets."""
    if "actions" in values:
        raise DataUnreadable(
            place,
            "is a whole task of Mind2Web, as in the Parquet files that the hub makes of it: use its JSON files "
            "(data/<split>/<split>_0.json) with `assay suites mind2web`",
        )
    if "task_id" in values and "annotation_id" not in values:
        raise DataUnreadable(
            place,
            "is a row of Multimodal-Mind2Web~: use it with `assay suites mm-mind2web`, which needs no other file",
        )


def _candidates(row: RowFields, name: str) -> tuple[Candidate, ...]:
    listed = row.decoded(name)
    if listed is None:
        return ()
    if not isinstance(listed, list | tuple):
        raise row.error(name, "must be a list of candidates")
    candidates = []
    for number, one in enumerate(listed):
        item_place = f"{name}.{number}"
        candidate = row.json(item_place, one) if isinstance(one, str) else one
        if not isinstance(candidate, Mapping) or not isinstance(candidate.get("backend_node_id"), str):
            raise row.error(item_place, "must be an object with a string backend_node_id")
        attributes = candidate.get("attributes") or {}
        if isinstance(attributes, str):
            attributes = row.json(f"{item_place}.attributes", attributes)
        if not isinstance(attributes, Mapping):
            raise row.error(f"{item_place}.attributes", "must be an object")
        box = attributes.get("bounding_box_rect")
        candidates.append(
            Candidate(
                id=candidate["backend_node_id"],
                tag=str(candidate.get("tag") or ""),
                box=box if isinstance(box, str) else "",
                attributes=text if isinstance(text := candidate.get("attributes"), str) else json.dumps(attributes),
            )
        )
    return tuple(candidates)


def _screenshot(row: RowFields, value: Any) -> bytes | None:
    """Return the image bytes. Parquet stores them in a struct, JSON lines as base64 or as a data URI."""
    if isinstance(value, Mapping):
        value = value.get("bytes")
    if isinstance(value, str) and value:
        try:
            value = base64.b64decode(value.rpartition(",")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise row.error("screenshot", "is not valid base64") from error
    if not value:
        return None
    if not isinstance(value, bytes):
        raise row.error("screenshot", "must be the bytes of an image")
    return value
