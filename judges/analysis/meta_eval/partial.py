"""Partial support of claims by a judge, compared with people: three-way verdicts, and unsupported words. Pure.

The words are those of the label set, which also defines what a word is: the tokens of the claim, in order. A word is
marked by the judge if it overlaps a passage that the judge marked. A supported claim has no unsupported word, and all
words of a claim that is not supported are unsupported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from judges.analysis.labels import HumanDecision, Label
from judges.analysis.meta_eval.items import Item
from judges.analysis.statistics.agreement import NOTHING_TO_COUNT, Estimate, kappa, share_estimate
from judges.analysis.statistics.bootstrap import RESAMPLES, SEED, draws
from judges.analysis.statistics.interval import LEVEL
from rubrics.verdict import ClaimSpan, Support

if TYPE_CHECKING:
    import numpy as np

    Counts = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

SUPPORTS: Final = tuple(Support)
"""Order of the rows and columns of the table."""
_OF_DECISION: Final = {
    HumanDecision.PASSED: Support.SUPPORTED,
    HumanDecision.PARTIAL: Support.PARTLY_SUPPORTED,
    HumanDecision.FAILED: Support.NOT_SUPPORTED,
}
MAX_CLUSTERS: Final = 2_000
"""Maximum number of clusters of the bootstrap. More claims are divided evenly over them, so memory is bounded."""


class WordRule(StrEnum):
    """Named rule that combines the words that several people marked. It is part of every report."""

    MAJORITY = "words=majority"
    """A word is unsupported if more than half of the people who marked words of the claim marked it."""
    ANY = "words=any"
    ALL = "words=all"

    @classmethod
    def of(cls, words: str) -> WordRule:
        """Return the rule for ``majority``, ``any`` or ``all``."""
        return cls(f"words={words}")


class WordProblem(StrEnum):
    """Reason why the words of a claim are not counted."""

    NOT_IN_CLAIM = "words_not_in_claim"
    """The words are not the claim, one after the other."""
    DIFFER = "words_differ"
    """Labels of the claim divide it into different words."""
    CONTRADICTING = "words_contradict_label"
    """A supported claim has marked words, or another one has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledWords:
    """Words of a claim as spans of characters, and whether each is unsupported."""

    spans: tuple[tuple[int, int], ...]
    unsupported: tuple[bool, ...]

    def marked(self, support: Support, passages: Sequence[ClaimSpan]) -> tuple[bool, ...]:
        """Return whether a judge marks each word, by the support that it gives and the passages that it marks."""
        if support is not Support.PARTLY_SUPPORTED:
            return (support is Support.NOT_SUPPORTED,) * len(self.spans)
        return tuple(any(start < one.end and one.start < end for one in passages) for start, end in self.spans)


def word_spans(claim: str, words: Sequence[str]) -> tuple[tuple[int, int], ...] | None:
    """Return the spans of the words of a claim; None if the claim is not these words, one after the other.

    Only white space may stand between words.

    >>> word_spans("A Grammy-nominated film.", ["A", "Grammy", "-", "nominated", "film", "."])
    ((0, 1), (2, 8), (8, 9), (9, 18), (19, 23), (23, 24))
    """
    spans, at = [], 0
    for word in words:
        start = at + len(claim[at:]) - len(claim[at:].lstrip())
        stripped = word.strip()
        if not claim.startswith(stripped, start):
            return None
        at = start + len(stripped)
        spans.append((start, at))
    return None if claim[at:].strip() else tuple(spans)


def labelled_words(item: Item, rule: WordRule) -> LabelledWords | WordProblem | None:
    """Return the words of an item by ``rule``, or why they are not counted. None: no label has words."""
    labels = [label for label in item.labels if label.words and label.human in _OF_DECISION]
    if not labels:
        return None
    words = labels[0].words
    if any(label.words != words for label in labels):
        return WordProblem.DIFFER
    if any(_contradicts(label) for label in labels):
        return WordProblem.CONTRADICTING
    spans = word_spans(item.label.claim or "", words)
    if spans is None:
        return WordProblem.NOT_IN_CLAIM
    counts = Counter(index for label in labels for index in set(label.unsupported_words))
    needed = {WordRule.ANY: 1, WordRule.ALL: len(labels)}.get(rule, len(labels) // 2 + 1)
    return LabelledWords(spans=spans, unsupported=tuple(counts[n] >= needed for n in range(len(words))))


def _contradicts(label: Label) -> bool:
    return (label.human is HumanDecision.PASSED) is bool(label.unsupported_words)


def human_support(item: Item) -> Support | None:
    """Return the support of the claim by the majority of the people; None if there is no single majority."""
    counts = Counter(_OF_DECISION[label.human] for label in item.labels if label.human in _OF_DECISION)
    ranked = counts.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFigures:
    """Unsupported words that a judge marks, compared with those that people marked, over ``claims``.

    The intervals are percentiles of a bootstrap over whole claims, because the words of a claim are correlated.
    """

    claims: int
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportAgreement:
    """Three-way verdicts and marked words of one judge, compared with people.

    Attributes:
        rule: Rule for words that several people marked.
        table: Claims by support: the judge's by row, the people's by column, in the order of ``SUPPORTS``.
        raw, kappa: Agreement of the three-way verdicts.
        disputed: Claims without a single majority of the people among the three.
        open: Claims on which the judge gave no three-way verdict.
        words: Figures over all claims with words that the judge judged.
        words_if_partly: Figures over those of them that the judge called partly supported.
        problems: Claims whose words are not counted, by reason.
    """

    rule: WordRule
    table: tuple[tuple[int, ...], ...]
    raw: Estimate
    kappa: Estimate
    disputed: int
    open: int
    words: WordFigures
    words_if_partly: WordFigures
    problems: Counter[WordProblem]

    def as_json(self) -> dict[str, Any]:
        """Return the figures for reports."""
        return {
            "rule": self.rule.value,
            "order": [support.value for support in SUPPORTS],
            "table": [list(row) for row in self.table],
            "raw": asdict(self.raw),
            "kappa": asdict(self.kappa),
            "disputed": self.disputed,
            "open": self.open,
            "words": asdict(self.words),
            "words_if_partly": asdict(self.words_if_partly),
            "problems": {problem.value: self.problems[problem] for problem in WordProblem},
        }


class SupportTally:
    """Running comparison of the three-way verdicts of one judge with people. Memory does not grow with the claims."""

    def __init__(self, rule: WordRule) -> None:
        self._rule = rule
        self._table: Counter[tuple[Support, Support]] = Counter()
        self._problems: Counter[WordProblem] = Counter()
        self._words, self._if_partly = _WordTally(), _WordTally()
        self._disputed = self._open = 0

    def add(self, item: Item, support: Support | None, passages: Sequence[ClaimSpan] | None) -> None:
        """Add the verdict of the judge on an item. ``passages``: None if the judge was not asked to mark words."""
        if support is None:
            self._open += 1
            return
        people = human_support(item)
        if people is None:
            self._disputed += 1
        else:
            self._table[support, people] += 1
        words = None if passages is None else labelled_words(item, self._rule)
        if isinstance(words, WordProblem):
            self._problems[words] += 1
        elif words is not None and passages is not None:
            marked = words.marked(support, passages)
            self._words.add(marked, words.unsupported)
            if support is Support.PARTLY_SUPPORTED:
                self._if_partly.add(marked, words.unsupported)

    def result(self) -> SupportAgreement:
        table = tuple(tuple(self._table[judge, people] for people in SUPPORTS) for judge in SUPPORTS)
        agreed = sum(self._table[support, support] for support in SUPPORTS)
        return SupportAgreement(
            rule=self._rule,
            table=table,
            raw=share_estimate(agreed, self._table.total(), none=NOTHING_TO_COUNT),
            kappa=kappa(table),
            disputed=self._disputed,
            open=self._open,
            words=self._words.figures(),
            words_if_partly=self._if_partly.figures(),
            problems=self._problems,
        )


class _WordTally:
    """Counts of words by claim: true positive, false positive, false negative. Many claims share clusters."""

    def __init__(self) -> None:
        self._clusters: list[list[int]] = []
        self._claims = self._true_negative = 0

    def add(self, marked: Sequence[bool], unsupported: Sequence[bool]) -> None:
        pairs = Counter(zip(marked, unsupported, strict=True))
        counts = [pairs[True, True], pairs[True, False], pairs[False, True]]
        if self._claims < MAX_CLUSTERS:
            self._clusters.append(counts)
        else:
            cluster = self._clusters[self._claims % MAX_CLUSTERS]
            cluster[:] = [old + new for old, new in zip(cluster, counts, strict=True)]
        self._claims += 1
        self._true_negative += pairs[False, False]

    def figures(self) -> WordFigures:
        true_positive, false_positive, false_negative = (sum(column) for column in self._columns())
        return WordFigures(
            claims=self._claims,
            true_positive=true_positive,
            false_positive=false_positive,
            false_negative=false_negative,
            true_negative=self._true_negative,
            precision=self._ratio((1, 0, 0), (1, 1, 0), "the judge marks no word"),
            recall=self._ratio((1, 0, 0), (1, 0, 1), "people marked no word"),
            f1=self._ratio((2, 0, 0), (2, 1, 1), "nobody marks a word"),
        )

    def _columns(self) -> list[list[int]]:
        return [[cluster[n] for cluster in self._clusters] for n in range(3)]

    def _ratio(self, above: Sequence[int], below: Sequence[int], none: str) -> Estimate:
        """Return the ratio of two weighted sums of the counts, with its bootstrap interval over claims."""
        sums = [sum(column) for column in self._columns()]
        numerator, denominator = (sum(w * n for w, n in zip(weights, sums, strict=True)) for weights in (above, below))
        method = f"bootstrap over {self._claims} claims, {RESAMPLES} resamples, seed {SEED}"
        if len(self._clusters) < self._claims:
            method = f"bootstrap over {len(self._clusters)} groups of claims, {RESAMPLES} resamples, seed {SEED}"
        if not denominator:
            return Estimate(value=None, low=None, high=None, n=0, method=method, reason=none)
        value = numerator / denominator
        interval = _percentiles(self._clusters, above, below) if len(self._clusters) > 1 else None
        if interval is None:
            return Estimate(value=value, low=None, high=None, n=self._claims, method=method, reason=NO_INTERVAL)
        return Estimate(value=value, low=interval[0], high=interval[1], n=self._claims, method=method)


NO_INTERVAL: Final = "there are fewer than two claims, or all resamples have the same value and bound nothing"


def _percentiles(
    clusters: Sequence[Sequence[int]], above: Sequence[int], below: Sequence[int]
) -> tuple[float, float] | None:
    """Return the percentile interval of a ratio. Resamples without a denominator are left out."""
    import numpy as np

    counts: Counts = np.asarray(clusters, dtype=float)
    pairs = counts @ np.asarray([above, below], dtype=float).T
    samples = np.concatenate([drawn @ pairs for drawn in draws(len(clusters))])
    kept = samples[samples[:, 1] > 0]
    values = kept[:, 0] / kept[:, 1]
    low, high = (float(end) for end in np.quantile(values, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)))
    return None if high - low <= 0 else (low, high)


def support_of(passed: bool, *, partial: bool) -> Support:
    """Return the support of a recorded verdict."""
    if partial:
        return Support.PARTLY_SUPPORTED
    return Support.SUPPORTED if passed else Support.NOT_SUPPORTED
