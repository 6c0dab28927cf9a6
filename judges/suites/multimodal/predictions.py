"""Precomputed answers, scored without a model.

The file is a JSON list or JSON lines. An entry identifies its step by ``task_id`` and ``step``. It contains either
``raw_output``, the final answer of a model, or the parsed ``element`` (an option's letters), ``action`` and ``value``.
The predictions file of a suite report has this format.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.multimodal.seeact_parse import INVALID, NO_ACTION, SeeActReply, parse_seeact
from judges.suites.multimodal.tilde_rows import RowFields


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """Answer from a file. ``raw`` is None if the file contains only the parsed fields."""

    reply: SeeActReply
    raw: str | None


def read_predictions(path: Path) -> dict[str, RecordedAnswer]:
    """Return the answers by step id.

    Raises:
        DataMissing, DataUnreadable: an entry is malformed, or a step has two answers. The message names the entry.
    """
    answers: dict[str, RecordedAnswer] = {}
    for number, entry in enumerate(_entries(path)):
        place = f"{path.name}, entry {number}"
        if not isinstance(entry, Mapping):
            raise DataUnreadable(place, "must be an object")
        fields = RowFields(entry, place)
        id = f"{fields.text('task_id', needed=True)}:{fields.whole('step')}"
        if entry.get("status") in ("skipped", "not_judged"):
            continue  # from a suite report: this step has no answer
        if id in answers:
            raise DataUnreadable(place, f"is a second answer to step {id}")
        answers[id] = _answer(entry, fields)
    return answers


def _answer(entry: Mapping[str, Any], fields: RowFields) -> RecordedAnswer:
    raw = entry.get("raw_output")
    if isinstance(raw, str):
        return RecordedAnswer(reply=parse_seeact(raw), raw=raw)
    if "element" not in entry and "action" not in entry:
        raise fields.error("raw_output", "is missing, and there is no element or action either")
    reply = SeeActReply(
        element=fields.text("element") or INVALID, action=fields.text("action") or NO_ACTION, value=fields.text("value")
    )
    return RecordedAnswer(reply=reply, raw=None)


def _entries(path: Path) -> Iterator[Any]:
    try:
        if path.suffix == ".jsonl":
            with path.open("rb") as lines:
                yield from (json.loads(line) for line in lines if line.removeprefix(BOM_UTF8).strip())
            return
        whole = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise DataMissing(f"{path} does not exist") from error
    except OSError as error:
        raise DataUnreadable(path.name, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataUnreadable(path.name, f"is not valid JSON: {error}") from error
    if not isinstance(whole, list):
        raise DataUnreadable(path.name, "must be a list of predictions")
    yield from whole
