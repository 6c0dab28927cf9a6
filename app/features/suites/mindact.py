"""Mind2Web plan: read steps lazily, select the candidates, ask about them and score the prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from app.features.suites.records import Record, StepStatus
from app.features.suites.step_loop import SuiteModel
from judges.errors import LLMError
from judges.llm.client import LLMRequest, Message
from judges.suites.errors import DataUnreadable, PageUnusable, RankMissing
from judges.suites.mind2web.data import Candidate, Split, Step
from judges.suites.mind2web.questions import Template
from judges.suites.mind2web.ranks import RankOrigin, ids_in_top_k, ranked, with_known_ranks
from judges.suites.mind2web.scores import ScoreTable
from judges.suites.mind2web.step_player import (
    GUIDE_MAX_TOKENS,
    MAX_TOKENS,
    PlayedStep,
    guide_questions,
    keep_candidates,
    operation_f1,
    parse_guide,
    tournament_questions,
)
from judges.suites.mind2web.tournament import (
    EMPTY_PREDICTION,
    Parsed,
    Prediction,
    RecordedPrediction,
    RecordedRounds,
    gold_op_string,
    parse_llm,
    score_prediction,
    shuffled,
)
from judges.suites.questions import Questions, ask_all, reply_or_empty, request_params
from judges.suites.rules import (
    DROPPABLE,
    MAX_HTML_CHARS,
    Metric,
    NoPositive,
    Protocol,
    Shuffle,
    Unplayed,
)
from rubrics.verdict import Usage

if TYPE_CHECKING:
    from app.features.suites.run_options import Mind2WebRunIn

NAME = "mind2web"
NO_PREDICTION = "no_prediction"
NO_RANK = "no_rank"
PAGE_UNUSABLE = "page_unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """Options for playing and scoring steps. ``max_tokens`` limits a reply, ``max_html_chars`` the guide's page."""

    protocol: Protocol = Protocol.TOURNAMENT
    top_k: int = 50
    seed: int = 0
    shuffle: Shuffle = Shuffle.STEP
    metric: Metric = Metric.MINDACT
    no_positive: NoPositive = NoPositive.ZERO
    temperature: float = 0.0
    max_tokens: int = MAX_TOKENS
    max_html_chars: int = MAX_HTML_CHARS

    @classmethod
    def of(
        cls,
        *,
        protocol: Protocol,
        metric: Metric | None,
        no_positive: NoPositive | None,
        max_tokens: int | None = None,
        **others: Any,
    ) -> PlayOptions:
        """Return options in which None stands for the default of the protocol."""
        guide = protocol is Protocol.GUIDE
        return cls(
            protocol=protocol,
            metric=metric or (Metric.ACTION if guide else Metric.MINDACT),
            no_positive=no_positive or (NoPositive.SKIP if guide else NoPositive.ZERO),
            max_tokens=max_tokens or (GUIDE_MAX_TOKENS if guide else MAX_TOKENS),
            **others,
        )

    @classmethod
    def of_request(cls, request: Mind2WebRunIn) -> PlayOptions:
        """Return the options of a run over HTTP."""
        return cls.of(**request.model_dump(include={each.name for each in fields(cls)}))

    @property
    def is_guide(self) -> bool:
        return self.protocol is Protocol.GUIDE

    def drops(self, unplayed: Unplayed | None) -> bool:
        """Return whether a step without a question for this reason is excluded from all figures."""
        return self.no_positive is NoPositive.SKIP and unplayed in DROPPABLE

    @property
    def parse(self) -> Callable[[str], Parsed]:
        """Parser of replies in the tournament. The metric ``action`` reads them like the guide."""
        return parse_guide if self.metric is Metric.ACTION else parse_llm


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStep:
    """Step with everything that is known before a model is asked.

    ``order`` are the candidates of the tournament, ``kept`` those of the guide. ``unplayed`` says why no question is
    needed. ``fault`` (reason, text) says why the step cannot be judged.
    ``best_rank`` is the rank of the best positive, or None. ``rank_origin`` is None if there is a fault.
    """

    step: Step
    positives: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    kept: tuple[Candidate, ...] = ()
    best_rank: int | None = None
    rank_origin: RankOrigin | None = None
    unplayed: Unplayed | None = None
    fault: tuple[str, str] | None = None


class MindActPlan:
    """Plan that asks a model about every step with a question, or scores the answers in ``predictions``."""

    def __init__(
        self,
        split: Split,
        total: int,
        *,
        play_options: PlayOptions,
        ranks: ScoreTable | None,
        template: Template,
        predictions: Mapping[str, RecordedPrediction] | None = None,
        max_examples: int | None = None,
    ) -> None:
        self._max_examples = max_examples
        self._split = split
        self._total = total
        self._play_options = play_options
        self._ranks = ranks
        self._template = template
        self._predictions = predictions

    @property
    def total(self) -> int:
        return self._total

    def steps(self) -> Iterator[PreparedStep]:
        return prepare_steps(self._split, self._play_options, self._ranks, max_examples=self._max_examples)

    def step_id(self, step: PreparedStep) -> str:
        return step.step.sample_id

    async def judge(self, step: PreparedStep, suite_model: SuiteModel) -> Record:
        """Judge one step. A fault of the data makes it ``not_judged``; errors of the model are raised."""
        fixed_record = self.score(step)
        if fixed_record is not None:
            return fixed_record
        try:
            played, usage = await ask_all(self.questions(step), partial(self._ask, step.step, suite_model))
        except PageUnusable as error:
            return self.unusable(step, error)
        return self.record(step, played, usage)

    def questions(self, step: PreparedStep) -> Questions[PlayedStep]:
        """Return the questions of a step. Raises PageUnusable when it is advanced."""
        options = self._play_options
        if options.is_guide:
            return guide_questions(step.step, step.kept, template=self._template, max_html_chars=options.max_html_chars)
        return tournament_questions(step.step, step.order, template=self._template, parse=options.parse)

    def record(self, step: PreparedStep, played: PlayedStep, usage: Usage) -> Record:
        return scored_record(step, played.prediction, self._play_options, played, usage)

    def unusable(self, step: PreparedStep, error: PageUnusable) -> Record:
        return not_judged_record(step, PAGE_UNUSABLE, f"{step.step.place}: {error}")

    async def _ask(self, step: Step, suite_model: SuiteModel, messages: tuple[Message, ...]) -> tuple[str, Usage]:
        options = self._play_options
        request = LLMRequest(
            model=suite_model.model,
            messages=messages,
            prompt=self._template.ref,
            params=request_params(suite_model.model, max_tokens=options.max_tokens, temperature=options.temperature),
            metadata={"sample_id": step.sample_id, "task_id": step.task_id, "step": str(step.number)},
        )
        return await reply_or_empty(suite_model.client, request)

    def score(self, step: PreparedStep) -> Record | None:
        """Return the record of a step that needs no model, or None if a model must be asked."""
        if step.fault is not None:
            return not_judged_record(step, *step.fault)
        if step.unplayed in DROPPABLE or (step.unplayed is not None and self._predictions is None):
            return scored_record(step, EMPTY_PREDICTION, self._play_options)
        if self._predictions is None:
            return None
        recorded = self._predictions.get(step.step.sample_id)
        if recorded is None:
            return not_judged_record(step, NO_PREDICTION, "the file contains no prediction for this step")
        prediction = (
            recorded.prediction(len(step.order), self._play_options.parse)
            if isinstance(recorded, RecordedRounds)
            else recorded
        )
        return scored_record(step, prediction, self._play_options)

    def not_judged(self, step: PreparedStep, error: LLMError) -> Record:
        return not_judged_record(step, str(error.reason or "llm_unavailable"), str(error), error.usage)


def prepare_steps(
    split: Split, play_options: PlayOptions, ranks: ScoreTable | None, *, max_examples: int | None = None
) -> Iterator[PreparedStep]:
    """Yield every step with its candidates, cut at ``top_k`` and for the tournament shuffled. Blocks.

    ``max_examples`` limits the number of steps that are evaluated; dropped ones do not count.

    Raises:
        DataUnreadable: a file is damaged, or contains a step twice.
    """
    by_stream = play_options.shuffle is Shuffle.STREAM
    stream = Random(play_options.seed) if by_stream else None  # noqa: S311 - not security-relevant
    seen: dict[str, str] = {}
    evaluated = 0
    for step in split.steps():
        if step.sample_id in seen:
            raise DataUnreadable(step.place, f"repeats step {step.sample_id} of {seen[step.sample_id]}")
        seen[step.sample_id] = step.place
        prepared = prepare_step(step, play_options, ranks, stream)
        yield prepared
        evaluated += not play_options.drops(prepared.unplayed)
        if evaluated == max_examples:
            return


def prepare_step(
    step: Step, play_options: PlayOptions, ranks: ScoreTable | None, stream: Random | None = None
) -> PreparedStep:
    """Return one step with its candidates. Blocks.

    Without ``stream``, the order of the tournament depends only on the seed and the step.
    """
    if play_options.is_guide:
        return _prepare_guide_step(*with_known_ranks(step, ranks), play_options.top_k)
    try:
        return _prepare_step(*ranked(step, ranks), play_options, stream)
    except RankMissing as error:
        return PreparedStep(step=step, fault=(NO_RANK, str(error)))


def _prepare_guide_step(step: Step, rank_origin: RankOrigin, top_k: int) -> PreparedStep:
    kept = keep_candidates(step, top_k)
    kept_ids = {candidate.id for candidate in kept}
    positives = tuple(positive.id for positive in step.positives if positive.id in kept_ids)
    unplayed = _without_positive(step) if not positives else None
    if unplayed is None and kept_ids.issubset(positives):
        unplayed = Unplayed.NO_NEGATIVE
    return PreparedStep(
        step=step,
        positives=positives,
        kept=tuple(kept),
        best_rank=_best_rank(step),
        rank_origin=rank_origin,
        unplayed=unplayed,
    )


def _without_positive(step: Step) -> Unplayed:
    return Unplayed.OUTSIDE_TOP_K if step.positives else Unplayed.NO_POSITIVE


def _best_rank(step: Step) -> int | None:
    return min((positive.rank for positive in step.positives if positive.rank is not None), default=None)


def _prepare_step(
    step: Step, rank_origin: RankOrigin, play_options: PlayOptions, stream: Random | None
) -> PreparedStep:
    positives, negatives = (
        ids_in_top_k(step.positives, play_options.top_k),
        ids_in_top_k(step.negatives, play_options.top_k),
    )
    unplayed, order = None, list[str]()
    if positives:
        own_seed = f"{play_options.seed}:{step.sample_id}".encode("utf-8", "surrogatepass")
        step_random = Random(own_seed)  # noqa: S311 - not security-relevant
        order = shuffled(positives, negatives, stream or step_random)
        unplayed = Unplayed.SINGLE if len(order) == 1 else None
    else:
        unplayed = _without_positive(step)
    return PreparedStep(
        step=step,
        positives=tuple(positives),
        order=tuple(order),
        best_rank=_best_rank(step),
        rank_origin=rank_origin,
        unplayed=unplayed,
    )


def scored_record(
    step: PreparedStep,
    prediction: Prediction,
    play_options: PlayOptions,
    played: PlayedStep | None = None,
    usage: Usage | None = None,
) -> Record:
    """Return the record of a judged step. A step without a positive is scored by the policy ``no_positive``."""
    gold = gold_op_string(step.step.op, step.step.value)
    element, tournament_f1 = score_prediction(prediction, step.positives, gold)
    op, _, value = prediction.op_string.partition(" ")
    action = int(op == step.step.op)
    op_f1 = operation_f1(step.step.op, step.step.value, op, value) if play_options.is_guide else tournament_f1
    by_action = play_options.metric is Metric.ACTION
    skipped = play_options.drops(step.unplayed)
    success = bool(element) and (bool(action) if by_action else op_f1 == 1.0)
    return {
        **_step_fields(step),
        "status": (StepStatus.SKIPPED if skipped else StepStatus.SCORED).value,
        "reason": None if step.unplayed is None else str(step.unplayed),
        "detail": "",
        "judged": True,
        "element_acc": None if skipped else element,
        "action_f1": None if skipped else float(action) if by_action else op_f1,
        "step_acc": None if skipped else int(success),
        "element": element,
        "op_f1": op_f1,
        "action": action,
        "prediction": list(prediction),
        "empty_outputs": 0 if played is None else played.empty,
        "usage": asdict(usage or Usage()),
        "trace": _trace(step, gold, played),
    }


def not_judged_record(step: PreparedStep, reason: str, detail: str, usage: Usage | None = None) -> Record:
    gold = gold_op_string(step.step.op, step.step.value)
    no_figures = dict.fromkeys(("element_acc", "action_f1", "step_acc", "element", "op_f1", "action", "prediction"))
    return {
        **_step_fields(step),
        "status": StepStatus.NOT_JUDGED.value,
        "reason": reason,
        "detail": detail,
        "judged": False,
        **no_figures,
        "empty_outputs": 0,
        "usage": asdict(usage or Usage()),
        "trace": _trace(step, gold, None),
    }


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
    return [] if step.best_rank is None else [step.best_rank]


def _trace(step: PreparedStep, gold: str, played: PlayedStep | None) -> dict[str, Any]:
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
            "op_string": gold,
        },
        "boxes": boxes,
    }
