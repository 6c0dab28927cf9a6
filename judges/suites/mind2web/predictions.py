"""Precomputed Mind2Web predictions, scored without a model.

The format is detected: the published predictions ``[sample_id, node_id, op_string]``, the published outputs
``[sample_id, rounds]`` (raw replies are parsed again), or the predictions file of a suite report. A step without
prediction has "" and "".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judges.suites.json_items import read_items
from judges.suites.mind2web.errors import PredictionsUnusable
from judges.suites.mind2web.parsing import Parsed, parse_llm
from judges.suites.mind2web.tournament import EMPTY_PREDICTION, Prediction, Tournament


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRound:
    """One recorded question: its candidates, the ids of its options in document order, and the raw reply."""

    candidate_ids: tuple[str, ...]
    option_ids: tuple[str, ...]
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRounds:
    """Recorded rounds of a step, from which its prediction is computed."""

    rounds: tuple[RecordedRound, ...]

    def prediction(self, candidates: int, parse: Callable[[str], Parsed] = parse_llm) -> Prediction:
        """Return the prediction of a step that started with this number of candidates."""
        remaining = candidates
        tournament = Tournament([])
        for one in self.rounds:
            tournament.queue.clear()
            remaining -= len(one.candidate_ids)
            remaining += tournament.reply(one.option_ids, parse(one.raw)) is not None
        tournament.queue[:] = ["remaining"] * max(remaining, 0)
        return tournament.prediction


RecordedPrediction = Prediction | RecordedRounds


def read_predictions(path: Path) -> dict[str, RecordedPrediction]:
    """Return the predictions by step id. Blocks.

    Raises:
        DataMissing, DataUnreadable: the file does not exist, or is not a JSON list.
        PredictionsUnusable: an entry has an unknown format, or its step occurs twice. The message names the entry.
    """
    predictions: dict[str, RecordedPrediction] = {}
    for number, entry in enumerate(read_items(path)):
        place = f"{path.name}, entry {number}"
        id, prediction = _read(entry, place)
        if id in predictions:
            raise PredictionsUnusable(f"{place}: duplicate prediction for step {id!r}")
        if prediction is not None:
            predictions[id] = prediction
    return predictions


def _read(entry: Any, place: str) -> tuple[str, RecordedPrediction | None]:
    if isinstance(entry, dict):
        return _report_entry(entry, place)
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
        raise PredictionsUnusable(f"{place}: must be [sample_id, node_id, op_string] or [sample_id, rounds]")
    if len(entry) == 3:
        predicted = _prediction(entry[1], entry[2], place)
        return entry[0], predicted if predicted.node_id else EMPTY_PREDICTION
    if len(entry) == 2 and isinstance(entry[1], list):
        rounds = tuple(_round(one, f"{place}, round {number}") for number, one in enumerate(entry[1]))
        return entry[0], RecordedRounds(rounds=rounds)
    raise PredictionsUnusable(f"{place}: must be [sample_id, node_id, op_string] or [sample_id, rounds]")


def _report_entry(entry: dict[str, Any], place: str) -> tuple[str, RecordedPrediction | None]:
    """Read an entry of a suite report. A step that was not judged has no prediction.

    In the guide's protocol, an operation without an element is a prediction.
    """
    id, prediction = entry.get("id"), entry.get("prediction")
    if not isinstance(id, str):
        raise PredictionsUnusable(f"{place}: has no id")
    if entry.get("status") == "not_judged":
        return id, None
    if not isinstance(prediction, list) or len(prediction) != 2:
        raise PredictionsUnusable(f"{place}: prediction must be [node_id, op_string]")
    return id, _prediction(prediction[0], prediction[1], place)


def _prediction(node_id: Any, op_string: Any, place: str) -> Prediction:
    if not isinstance(node_id, str) or not isinstance(op_string, str):
        raise PredictionsUnusable(f'{place}: node_id and op_string must be strings ("" without a prediction)')
    return Prediction(node_id, op_string)


def _round(value: Any, place: str) -> RecordedRound:
    """Read ``[candidate_ids, [page, question, options], raw]``."""
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[2], str):
        raise PredictionsUnusable(f"{place}: must be [candidate_ids, [page, question, options], raw]")
    ids, question, raw = value
    if not isinstance(question, list) or len(question) != 3 or not isinstance(question[2], list):
        raise PredictionsUnusable(f"{place}: must contain [page, question, options]")
    return RecordedRound(
        candidate_ids=_texts(ids, f"{place}, candidate_ids"),
        option_ids=_texts([_option_id(one) for one in question[2]], f"{place}, options"),
        raw=raw,
    )


def _option_id(option: Any) -> Any:
    """Return the id of an option, which may be written as (id, text)."""
    return option[0] if isinstance(option, list) and option else option


def _texts(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
        raise PredictionsUnusable(f"{place}: must be a list of ids as strings")
    return tuple(value)
