"""Agreement of judges with people on labelled items. Pure.

A judge is measured on items that have both its verdict and a human one. All other items are counted separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from judges.analysis.labels import RecordedVerdict
from judges.analysis.meta_eval.items import DECIDED, Item, JudgedItem, PartialRule, judged_as
from judges.analysis.statistics.agreement import Agreement, agreement, confusion_of
from judges.grounding.folding import FoldedText, fold
from judges.grounding.quotes import find_quote
from rubrics.verdict import Reason, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedItem:
    """Verdict of a judge and of people on one item."""

    item: Item
    judge: bool
    reasoning: str = ""

    @property
    def human(self) -> bool:
        return bool(self.item.human)

    @property
    def agrees(self) -> bool:
        return self.judge == self.human


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedItem:
    """Item without a verdict of the judge, and the reason."""

    item: Item
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Mean over the ``n`` items for which a value is known. ``value`` is None if ``n`` is 0."""

    value: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Agreement of one judge with people. ``asked``: it was asked now; otherwise its verdicts come from the labels.

    Attributes:
        run: Name of the run of recorded verdicts, empty if there is one run.
        votes: Votes per item; None if the labels do not record it.
        items: Items that were put to the judge: with a verdict, without one, and left out.
        by_task: Pairs of task id and agreement.
        unjudged: Items without a verdict. ``unjudged_by_reason`` counts all of them, also if the list is limited.
        without_model: Items that needed no model, for example because their page is gone.
        partial: Items left out because the judge called the claim partly supported.
        contradicting: Items left out because several recorded verdicts of the judge differ.
        quotes: Supporting verdicts for which the judge was asked for a quote. Code found ``quotes_found`` of them.
        usd: Price of an item, of items without cached replies. Equally ``input_tokens``, ``output_tokens`` and
            ``seconds``, which for a judge that was asked includes waiting for other requests.
    """

    model: str
    asked: bool
    votes: int | None
    prompts: tuple[str, ...]
    agreement: Agreement
    by_task: tuple[tuple[str, Agreement], ...]
    disagreements: tuple[ComparedItem, ...]
    unjudged: tuple[UnjudgedItem, ...]
    without_model: int
    usage: Usage
    run: str = ""
    items: int = 0
    unjudged_by_reason: Counter[str] = field(default_factory=Counter)
    partial: int = 0
    contradicting: int = 0
    quotes: int = 0
    quotes_found: int = 0
    usd: Mean = Mean(value=None, n=0)
    input_tokens: Mean = Mean(value=None, n=0)
    output_tokens: Mean = Mean(value=None, n=0)
    seconds: Mean = Mean(value=None, n=0)

    @property
    def unreadable(self) -> int:
        """Return the number of items whose reply could not be read."""
        return self.unjudged_by_reason[Reason.LLM_OUTPUT_UNUSABLE]

    @property
    def not_judged(self) -> int:
        """Return the number of items without a verdict for another reason than an unreadable reply."""
        return self.unjudged_by_reason.total() - self.unreadable


class _Sum:
    """Sum of known values."""

    def __init__(self) -> None:
        self.total, self.n = 0.0, 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.n += 1

    def mean(self) -> Mean:
        return Mean(value=self.total / self.n if self.n else None, n=self.n)


class JudgeTally:
    """Running agreement of one judge with people.

    ``listed`` is the maximum number of disagreements and of unjudged items that are kept; None: all.
    """

    def __init__(
        self,
        model: str,
        *,
        run: str = "",
        asked: bool = False,
        votes: int | None = None,
        listed: int | None = None,
    ) -> None:
        self._model, self._run, self._asked, self._votes, self._listed = model, run, asked, votes, listed
        self._counts: dict[str, Counter[tuple[bool, bool]]] = {}
        self._prompts: set[str] = set()
        self._disagreements: list[ComparedItem] = []
        self._unjudged: list[UnjudgedItem] = []
        self._reasons: Counter[str] = Counter()
        self._items = self._without_model = self._partial = self._contradicting = 0
        self._quotes = self._quotes_found = 0
        self._usage = Usage()
        self._usd, self._input, self._output, self._seconds = _Sum(), _Sum(), _Sum(), _Sum()

    def add_asked(self, one: JudgedItem) -> None:
        """Add an item that the judge was asked about now."""
        verdict = one.verdict
        self._items += 1
        self._usage += verdict.spent
        if verdict.spent.calls and not verdict.spent.cached_calls:
            self._usd.add(verdict.spent.usd)
            self._input.add(verdict.spent.input_tokens)
            self._output.add(verdict.spent.output_tokens)
            self._seconds.add(one.seconds)
        if one.judge is not None:
            self._compare(one.item, one.judge, verdict.prompt, verdict.reasoning)
            if verdict.grounded is not None:
                self._quotes += 1
                self._quotes_found += bool(verdict.quotes)
        elif verdict.outcome in DECIDED:
            self._without_model += 1
        else:
            self._leave_open(one.item, str(verdict.reason or verdict.outcome), verdict.reasoning)

    def add_recorded(self, item: Item, verdict: RecordedVerdict, rule: PartialRule) -> None:
        self._items += 1
        self._usd.add(verdict.usd)
        self._input.add(verdict.input_tokens)
        self._output.add(verdict.output_tokens)
        self._seconds.add(verdict.seconds)
        passed = judged_as(verdict, rule)
        if passed is not None:
            self._compare(item, passed, verdict.prompt, verdict.reasoning)
        elif verdict.outcome in DECIDED:
            self._partial += 1
        else:
            self._leave_open(item, verdict.reason or verdict.outcome.value, verdict.reasoning)
        if verdict.quote is not None and (passed or verdict.partial):
            self._quotes += 1
            self._quotes_found += _is_quoted(item, verdict.quote)

    def add_contradicting(self) -> None:
        """Add an item that is left out because several recorded verdicts of the judge differ."""
        self._items += 1
        self._contradicting += 1

    def result(self) -> JudgeAgreement:
        every: Counter[tuple[bool, bool]] = sum(self._counts.values(), Counter())
        return JudgeAgreement(
            model=self._model,
            run=self._run,
            asked=self._asked,
            votes=self._votes,
            prompts=tuple(sorted(self._prompts)),
            agreement=agreement(confusion_of(every)),
            by_task=tuple((task, agreement(confusion_of(self._counts[task]))) for task in sorted(self._counts)),
            disagreements=tuple(self._disagreements),
            unjudged=tuple(self._unjudged),
            unjudged_by_reason=self._reasons,
            without_model=self._without_model,
            usage=self._usage,
            items=self._items,
            partial=self._partial,
            contradicting=self._contradicting,
            quotes=self._quotes,
            quotes_found=self._quotes_found,
            usd=self._usd.mean(),
            input_tokens=self._input.mean(),
            output_tokens=self._output.mean(),
            seconds=self._seconds.mean(),
        )

    def _compare(self, item: Item, passed: bool, prompt: str | None, reasoning: str) -> None:
        compared = ComparedItem(item=item, judge=passed, reasoning=reasoning)
        self._counts.setdefault(item.label.task_id or "", Counter())[passed, compared.human] += 1
        if prompt is not None:
            self._prompts.add(prompt)
        if not compared.agrees and (self._listed is None or len(self._disagreements) < self._listed):
            self._disagreements.append(compared)

    def _leave_open(self, item: Item, reason: str, detail: str) -> None:
        self._reasons[reason] += 1
        if self._listed is None or len(self._unjudged) < self._listed:
            self._unjudged.append(UnjudgedItem(item=item, reason=reason, detail=detail))


def agreement_of_asked(model: str, asked: Iterable[JudgedItem], *, votes: int) -> JudgeAgreement:
    """Return the agreement of a judge that was asked now."""
    tally = JudgeTally(model, asked=True, votes=votes)
    for one in asked:
        tally.add_asked(one)
    return tally.result()


class RecordedTallies:
    """Running agreement of every judge with recorded verdicts. ``listed`` as for ``JudgeTally``."""

    def __init__(self, rule: PartialRule = PartialRule.FAILED, *, listed: int | None = None) -> None:
        self._rule, self._listed = rule, listed
        self._by_judge: dict[tuple[str, str], JudgeTally] = {}

    def add(self, item: Item) -> None:
        """Add the recorded verdicts of an item that is not left out."""
        for verdict in item.recorded:
            self._tally(verdict.judge).add_recorded(item, verdict, self._rule)
        for judge in item.contradicting:
            self._tally(judge).add_contradicting()

    def results(self) -> tuple[JudgeAgreement, ...]:
        """Return the agreement of each judge, sorted by model. A run is named only if a model has several."""
        runs = Counter(model for model, _ in self._by_judge)
        results = [self._by_judge[judge].result() for judge in sorted(self._by_judge)]
        return tuple(one if runs[one.model] > 1 else replace(one, run="") for one in results)

    def _tally(self, judge: tuple[str, str]) -> JudgeTally:
        model, run = judge
        return self._by_judge.setdefault(judge, JudgeTally(model, run=run, listed=self._listed))


def agreement_of_recorded(items: Iterable[Item], rule: PartialRule = PartialRule.FAILED) -> tuple[JudgeAgreement, ...]:
    """Return the agreement of each judge with verdicts in the labels. Sends no requests."""
    tallies = RecordedTallies(rule)
    for item in items:
        if item.left_out is None:
            tallies.add(item)
    return tallies.results()


def _is_quoted(item: Item, quote: str) -> bool:
    """Return whether code finds a quote in a page of the item."""
    return bool(quote.strip()) and any(
        bool(find_quote(_folded(page.text), quote)) for page in item.label.pages if page.text is not None
    )


@lru_cache(maxsize=4)
def _folded(text: str) -> FoldedText:
    """Return the folded text of a page. Several judges of one claim quote the same page."""
    return fold(text)
