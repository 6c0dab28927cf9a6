"""Agreement of judges with people on labelled items. Pure.

A judge is measured on items that have both its verdict and a human one. All other items are counted separately.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

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


@dataclass(slots=True, kw_only=True)
class Mean:
    """Mean over the ``n`` items for which a value is known."""

    total: float = 0.0
    n: int = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.n += 1

    @property
    def value(self) -> float | None:
        return self.total / self.n if self.n else None


COSTS: Final = ("usd", "input_tokens", "output_tokens", "seconds")


@dataclass(slots=True, kw_only=True)
class JudgeTally:
    """Running agreement of one judge with people. ``asked``: it is asked now; otherwise its verdicts are recorded.

    Attributes:
        run: Name of the run of recorded verdicts, empty if there is one run.
        votes: Votes per item; None if the labels do not record it.
        listed: Maximum number of disagreements and of unjudged items that are kept; None: all.
        items: Number of items that were put to the judge: with a verdict, without one, and left out.
        by_task: Verdicts of the judge and of people by task.
        unjudged: Items without a verdict. ``unjudged_by_reason`` counts all of them, also if the list is limited.
        without_model: Number of items that needed no model, for example because their page is gone.
        partial: Number of items left out because the judge called the claim partly supported.
        contradicting: Number of items left out because several recorded verdicts of the judge differ.
        quotes: Supporting verdicts for which the judge was asked for a quote. Code found ``quotes_found`` of them.
        costs: Price, tokens and seconds of an item, of items without cached replies. The seconds of a judge that is
            asked include waiting for other requests.
    """

    model: str
    run: str = ""
    asked: bool = False
    votes: int | None = None
    listed: int | None = None
    items: int = 0
    by_task: dict[str, Counter[tuple[bool, bool]]] = field(default_factory=dict)
    prompts: set[str] = field(default_factory=set)
    disagreements: list[ComparedItem] = field(default_factory=list)
    unjudged: list[UnjudgedItem] = field(default_factory=list)
    unjudged_by_reason: Counter[str] = field(default_factory=Counter)
    without_model: int = 0
    partial: int = 0
    contradicting: int = 0
    quotes: int = 0
    quotes_found: int = 0
    usage: Usage = field(default_factory=Usage)
    costs: dict[str, Mean] = field(default_factory=lambda: {name: Mean() for name in COSTS})

    @property
    def agreement(self) -> Agreement:
        every: Counter[tuple[bool, bool]] = sum(self.by_task.values(), Counter())
        return agreement(confusion_of(every))

    @property
    def unreadable(self) -> int:
        """Return the number of items whose reply could not be read."""
        return self.unjudged_by_reason[Reason.LLM_OUTPUT_UNUSABLE]

    @property
    def not_judged(self) -> int:
        """Return the number of items without a verdict for another reason than an unreadable reply."""
        return self.unjudged_by_reason.total() - self.unreadable

    def add_asked(self, one: JudgedItem) -> None:
        """Add an item that the judge was asked about now."""
        verdict, spent = one.verdict, one.verdict.spent
        self.items += 1
        self.usage += spent
        if spent.calls and not spent.cached_calls:
            self._add_costs(spent, seconds=one.seconds)
        if one.judge is not None:
            self._compare(one.item, one.judge, verdict.prompt, verdict.reasoning)
            if verdict.grounded is not None:
                self.quotes += 1
                self.quotes_found += bool(verdict.quotes)
        elif verdict.outcome in DECIDED:
            self.without_model += 1
        else:
            self._leave_open(one.item, str(verdict.reason or verdict.outcome), verdict.reasoning)

    def add_recorded(self, item: Item, verdict: RecordedVerdict, rule: PartialRule) -> None:
        self.items += 1
        self._add_costs(verdict, seconds=verdict.seconds)
        passed = judged_as(verdict, rule)
        if passed is not None:
            self._compare(item, passed, verdict.prompt, verdict.reasoning)
        elif verdict.outcome in DECIDED:
            self.partial += 1
        else:
            self._leave_open(item, verdict.reason or verdict.outcome.value, verdict.reasoning)
        if verdict.quote is not None and (passed or verdict.partial):
            self.quotes += 1
            self.quotes_found += _is_quoted(item, verdict.quote)

    def add_contradicting(self) -> None:
        """Add an item that is left out because several recorded verdicts of the judge differ."""
        self.items += 1
        self.contradicting += 1

    def _add_costs(self, spent: Usage | RecordedVerdict, *, seconds: float | None) -> None:
        for name, value in zip(COSTS, (spent.usd, spent.input_tokens, spent.output_tokens, seconds), strict=True):
            self.costs[name].add(value)

    def _compare(self, item: Item, passed: bool, prompt: str | None, reasoning: str) -> None:
        compared = ComparedItem(item=item, judge=passed, reasoning=reasoning)
        self.by_task.setdefault(item.label.task_id or "", Counter())[passed, compared.human] += 1
        if prompt is not None:
            self.prompts.add(prompt)
        if not compared.agrees and (self.listed is None or len(self.disagreements) < self.listed):
            self.disagreements.append(compared)

    def _leave_open(self, item: Item, reason: str, detail: str) -> None:
        self.unjudged_by_reason[reason] += 1
        if self.listed is None or len(self.unjudged) < self.listed:
            self.unjudged.append(UnjudgedItem(item=item, reason=reason, detail=detail))


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

    def results(self) -> list[JudgeTally]:
        """Return the agreement of each judge, sorted by model. A run is named only if a model has several."""
        runs = Counter(model for model, _ in self._by_judge)
        for (model, _), tally in self._by_judge.items():
            tally.run = tally.run if runs[model] > 1 else ""
        return [self._by_judge[judge] for judge in sorted(self._by_judge)]

    def _tally(self, judge: tuple[str, str]) -> JudgeTally:
        model, run = judge
        return self._by_judge.setdefault(judge, JudgeTally(model=model, run=run, listed=self._listed))


def _is_quoted(item: Item, quote: str) -> bool:
    """Return whether code finds a quote in a page of the item."""
    return bool(quote.strip()) and any(
        bool(find_quote(_folded(page.text), quote)) for page in item.label.pages if page.text is not None
    )


@lru_cache(maxsize=4)
def _folded(text: str) -> FoldedText:
    """Return the folded text of a page. Several judges of one claim quote the same page."""
    return fold(text)
