"""Steps of Mind2Web: their candidates, selected before a model is asked, and their records with the scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from app.features.suites.records import Record, StepStatus, step_record
from app.features.suites.run_options import Mind2WebRunIn
from judges.suites.errors import DataUnreadable, RankMissing
from judges.suites.mind2web.candidate_scores import ScoreTable
from judges.suites.mind2web.data import Candidate, Split, Step
from judges.suites.mind2web.ranks import RankOrigin, ids_in_top_k, ranked, with_known_ranks
from judges.suites.mind2web.step_player import PlayedStep, keep_candidates, operation_f1
from judges.suites.mind2web.tournament import Prediction, gold_op_string, score_prediction, shuffled
from judges.suites.rules import DROPPABLE, Metric, NoPositive, Shuffle, Unplayed
from rubrics.verdict import Usage

NO_RANK = "no_rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStep:
    """Step with everything that is known before a model is asked.

    ``order`` are the candidates of the tournament, ``kept`` those of the guide. ``unplayed`` says why no question is
    needed. ``fault`` (reason, text) says why the step cannot be judged. ``rank_origin`` is None if there is a fault.
    """

    step: Step
    positives: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    kept: tuple[Candidate, ...] = ()
    rank_origin: RankOrigin | None = None
    unplayed: Unplayed | None = None
    fault: tuple[str, str] | None = None


def prepare_steps(split: Split, options: Mind2WebRunIn, ranks: ScoreTable | None) -> Iterator[PreparedStep]:
    """Yield every step with its candidates, cut at ``top_k`` and for the tournament shuffled. Blocks.

    ``max_examples`` limits the number of steps that are evaluated; dropped ones do not count.

    Raises:
        DataUnreadable: a file is damaged, or contains a step twice.
    """
    by_stream = options.shuffle is Shuffle.STREAM
    stream = Random(options.seed) if by_stream else None  # noqa: S311 - not security-relevant
    seen: dict[str, str] = {}
    evaluated = 0
    for step in split.steps():
        if step.sample_id in seen:
            raise DataUnreadable(step.place, f"repeats step {step.sample_id} of {seen[step.sample_id]}")
        seen[step.sample_id] = step.place
        if options.is_guide:
            prepared = _for_guide(step, ranks, options)
        else:
            prepared = _for_tournament(step, ranks, options, stream)
        yield prepared
        evaluated += not _is_dropped(prepared, options)
        if evaluated == options.max_examples:
            return


def _is_dropped(step: PreparedStep, options: Mind2WebRunIn) -> bool:
    """Return whether a step without a question is excluded from all figures."""
    return options.no_positive_policy is NoPositive.SKIP and step.unplayed in DROPPABLE


def _for_guide(step: Step, ranks: ScoreTable | None, options: Mind2WebRunIn) -> PreparedStep:
    step, rank_origin = with_known_ranks(step, ranks)
    kept = keep_candidates(step, options.top_k)
    kept_ids = {candidate.id for candidate in kept}
    positives = tuple(positive.id for positive in step.positives if positive.id in kept_ids)
    unplayed = _without_positive(step) if not positives else None
    if unplayed is None and kept_ids.issubset(positives):
        unplayed = Unplayed.NO_NEGATIVE
    return PreparedStep(step=step, positives=positives, kept=tuple(kept), rank_origin=rank_origin, unplayed=unplayed)


def _for_tournament(
    step: Step, ranks: ScoreTable | None, options: Mind2WebRunIn, stream: Random | None
) -> PreparedStep:
    """Return a step with the order of its candidates.

    Without ``stream``, the order depends only on the seed and the step.
    """
    try:
        step, rank_origin = ranked(step, ranks)
    except RankMissing as error:
        return PreparedStep(step=step, fault=(NO_RANK, str(error)))
    positives, negatives = (ids_in_top_k(each, options.top_k) for each in (step.positives, step.negatives))
    order: list[str] = []
    if positives:
        own_seed = f"{options.seed}:{step.sample_id}".encode("utf-8", "surrogatepass")
        order = shuffled(positives, negatives, stream or Random(own_seed))  # noqa: S311 - not security-relevant
        unplayed = Unplayed.SINGLE if len(order) == 1 else None
    else:
        unplayed = _without_positive(step)
    return PreparedStep(
        step=step, positives=tuple(positives), order=tuple(order), rank_origin=rank_origin, unplayed=unplayed
    )


def _without_positive(step: Step) -> Unplayed:
    return Unplayed.OUTSIDE_TOP_K if step.positives else Unplayed.NO_POSITIVE


def scored_record(
    step: PreparedStep,
    prediction: Prediction,
    options: Mind2WebRunIn,
    played: PlayedStep | None = None,
    usage: Usage | None = None,
) -> Record:
    """Return the record of a judged step. A step without a positive is scored by the policy ``no_positive``."""
    element, op_f1 = score_prediction(prediction, step.positives, gold_op_string(step.step.op, step.step.value))
    op, _, value = prediction.op_string.partition(" ")
    action = int(op == step.step.op)
    if options.is_guide:
        op_f1 = operation_f1(step.step.op, step.step.value, op, value)
    second = float(action) if options.step_metric is Metric.ACTION else op_f1
    skipped = _is_dropped(step, options)
    own = {
        "judged": True,
        "element": element,
        "op_f1": op_f1,
        "action": action,
        "prediction": list(prediction),
        "empty_outputs": 0 if played is None else played.empty,
    }
    return step_record(
        _step_fields(step) | own,
        _trace(step, played),
        status=StepStatus.SKIPPED if skipped else StepStatus.SCORED,
        reason=None if step.unplayed is None else str(step.unplayed),
        figures=(None, None, None) if skipped else (element, second, int(element == second == 1.0)),
        usage=usage,
    )


def not_judged_record(step: PreparedStep, reason: str, detail: str, usage: Usage | None = None) -> Record:
    none = dict.fromkeys(("element", "op_f1", "action", "prediction"))
    fields = {**_step_fields(step), "judged": False, **none, "empty_outputs": 0}
    trace = _trace(step, None)
    return step_record(fields, trace, status=StepStatus.NOT_JUDGED, reason=reason, detail=detail, usage=usage)


def _step_fields(step: PreparedStep) -> dict[str, Any]:
    return {
        "id": step.step.sample_id,
        "position": step.step.position,
        "task_id": step.step.task_id,
        "action_uid": step.step.action_uid,
        "step": step.step.number,
        "website": step.step.website,
        "domain": step.step.domain,
        "unplayed": None if step.unplayed is None else str(step.unplayed),
        "positive_ranks": _positive_ranks(step),
        "origin": None if step.rank_origin is None else str(step.rank_origin),
    }


def _positive_ranks(step: PreparedStep) -> list[int] | None:
    """Return the best rank of a gold element as a list, empty without one. None if the candidates have no ranks."""
    if step.fault is not None or step.rank_origin is RankOrigin.LISTED:
        return None
    return sorted(positive.rank for positive in step.step.positives if positive.rank is not None)[:1]


def _trace(step: PreparedStep, played: PlayedStep | None) -> dict[str, Any]:
    """Return the questions of all rounds and the gold answer."""
    rounds = () if played is None else played.rounds
    shown_ids = {*step.positives, *(id for item in rounds for id, _ in item.options)}
    boxes = {
        item.id: item.box for item in (*step.step.positives, *step.step.negatives) if item.box and item.id in shown_ids
    }
    return {
        "task": step.step.task,
        "history": list(step.step.history),
        "order": list(step.order),
        "prompt": [item.prompt for item in rounds],
        "raw_output": [item.raw for item in rounds],
        "rounds": [
            {
                "candidate_ids": list(item.candidate_ids),
                "options": [list(option) for option in item.options],
                "letter": item.parsed.letter,
                "op_string": item.parsed.op_string,
                "picked": item.picked,
            }
            for item in rounds
        ],
        "gold": {
            "elements": list(step.positives),
            "op": step.step.op,
            "value": step.step.value,
            "op_string": gold_op_string(step.step.op, step.step.value),
        },
        "boxes": boxes,
    }
