"""Measurement of judges on label sets: models that are asked now, and the verdicts recorded in the labels."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from app.console.runtime import open_command_runtime
from app.engine.estimate import PageSize, estimate_claims
from app.engine.runtime import Runtime
from app.settings import Settings
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.label_import import grouped_rows, row_key
from judges.analysis.labels import each_label, label_lines, parse_labels
from judges.analysis.meta_eval.bench import SetTally
from judges.analysis.meta_eval.items import Item, JudgedItem, PartialRule, ask_all, item_key, items_of
from judges.analysis.meta_eval.judge_agreement import JudgeTally, RecordedTallies
from judges.errors import JudgeError
from judges.llm.observed import ObservedLLM, RejectionMonitor
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_judge
from judges.verifier import Verifier, judge_named
from judges.voting import majority_of

_CHUNK: Final = 500
"""Items that are judged before their verdicts are counted and dropped."""
ShowProgress: TypeAlias = Callable[[str], AbstractContextManager[Callable[[JudgedItem], None]]]
"""Shows the progress on a set and yields the function to call after each item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSet:
    """Label file that was read once. ``sampled`` are the keys of the claims to use, None: all."""

    path: Path
    name: str
    sha256: str
    has_stored_pages: bool
    sampled: frozenset[bytes] | None

    @classmethod
    def scan(cls, path: Path, name: str, sample: int | None = None) -> LabelSet:
        """Read a label file once, and draw the sample: the claims whose keys are smallest, which are digests.

        Raises:
            LabelsUnreadable: the file cannot be read or has invalid lines.
        """
        digest, has_stored_pages = hashlib.sha256(), False
        keys: set[bytes] = set()

        def lines() -> Iterator[bytes]:
            for line in label_lines(path):
                digest.update(line)
                yield line

        for _, label in each_label(lines(), name=str(path)):
            has_stored_pages = has_stored_pages or any(page.page_id and page.text is None for page in label.pages)
            if sample is not None:
                keys.add(row_key(*item_key(label)))
        sampled = None if sample is None else frozenset(heapq.nsmallest(sample, keys))
        return cls(
            path=path,
            name=name,
            sha256=digest.hexdigest(),
            has_stored_pages=has_stored_pages,
            sampled=sampled,
        )

    def items(self, rule: PartialRule) -> Iterator[Item]:
        """Yield the items of the sample, in order of first appearance. Blocks on the disk."""

        def rows() -> Iterator[tuple[bytes, bytes]]:
            for line, label in each_label(label_lines(self.path), name=str(self.path)):
                key = row_key(*item_key(label))
                if self.sampled is None or key in self.sampled:
                    yield key, line

        for lines in grouped_rows(rows()):
            yield from items_of(parse_labels(lines), rule)


class LiveJudge:
    """A model (``provider/model``) or jury that is asked about labelled claims, which are judged like leaves.

    The pages are the recorded ones; none is captured.

    Raises:
        ModelNotConfigured: the model does not exist or its API key is missing.
    """

    def __init__(self, runtime: Runtime, model: str, *, votes: int, listed: int | None) -> None:
        self._client, self._name = runtime.models.client(model)
        named = parse_judge(model)
        self._providers = named.providers
        self._runtime = runtime
        self.tally = JudgeTally(model=str(named), asked=True, votes=votes, listed=listed)

    async def measure(self, items: Sequence[Item], *, votes: int, done: Callable[[JudgedItem], None]) -> None:
        """Judge usable items and count the verdicts. ``done`` is called after each.

        Raises:
            LLMRejected: the provider refuses every request.
        """
        monitor = RejectionMonitor(self._name)
        parameters = RequestParameters(self._runtime.settings.parameters, self._providers)
        llm = ObservedLLM(self._client, (monitor,), prepare=parameters.add_to)
        builder, preparer = self._runtime.block_builder, self._runtime.page_preparer
        judge = judge_named(self._name, lambda member: Verifier(llm, member, block_builder=builder, pages=preparer))
        for one in await ask_all(items, judge, stored=self._stored, votes=votes, done=done):
            self.tally.add_asked(one)
        if monitor.rejection is not None:
            raise monitor.rejection

    async def _stored(self, page_id: str) -> Evidence:
        capture = await self._runtime.index.get(page_id)
        if capture is None:
            raise NoEvidence(page_id, CaptureOutcome.EMPTY, "this capture is not stored", gone=False, capture=None)
        return await self._runtime.pages.evidence(capture)


@dataclass(slots=True, kw_only=True)
class Measurement:
    """One run over label sets.

    ``listed`` limits the disagreements that are kept, see ``JudgeTally``. ``measured`` has the summary of each set, and
    the agreement of each judge on it. ``failures`` says why models could not be asked to the end.
    """

    sets: Sequence[LabelSet]
    models: Sequence[str]
    rule: PartialRule
    votes: int
    listed: int | None = None
    measured: list[tuple[Mapping[str, Any], list[JudgeTally]]] = field(default_factory=list)
    failures: dict[str, JudgeError] = field(default_factory=dict)

    async def ask(self, settings: Settings, shown: ShowProgress) -> None:
        """Measure the models and the recorded judges."""
        # Captured pages are in the database of the service. Labels that contain the page text do not need it.
        async with open_command_runtime(settings, shared=any(one.has_stored_pages for one in self.sets)) as runtime:
            self._live(runtime)  # detects a missing API key before any model request is paid for
            for one in self.sets:
                live = self._live(runtime)
                with shown(one.name) as advance:
                    for items in self._counted(one, live):
                        for judge in live:
                            await self._ask(judge, items, advance)

    async def _ask(self, judge: LiveJudge, items: Sequence[Item], done: Callable[[JudgedItem], None]) -> None:
        model = judge.tally.model
        if model in self.failures:
            return
        try:
            await judge.measure(items, votes=self.votes, done=done)
        except JudgeError as error:
            self.failures[model] = error

    def measure_recorded(self) -> None:
        """Measure the recorded judges only."""
        for one in self.sets:
            for _ in self._counted(one, ()):
                pass

    def estimate(self, settings: Settings) -> list[dict[str, Any]]:
        """Return the estimate of each model on each set. Sends nothing."""
        estimates = []
        for one in self.sets:
            claims, lengths = 0, list[int | None]()
            for item in one.items(self.rule):
                if item.left_out is None:
                    claims += 1
                    lengths += [None if page.text is None else len(page.text.encode()) for page in item.label.pages]
            known = [length for length in lengths if length is not None]
            sizes = [PageSize(sum(known) // len(known), 0)] if known else []
            for model in self.models:
                estimate = estimate_claims(
                    model,
                    (claims, claims),
                    [*sizes, *([None] if len(known) < len(lengths) else [])],
                    settings.prices,
                    votes=(majority_of(self.votes), self.votes),
                    extractions=False,
                    basis=f"{majority_of(self.votes)} to {self.votes} votes on each claim",
                )
                estimates.append({"set": one.name, "model": model, "claims": claims, **estimate.as_json()})
        return estimates

    @property
    def is_incomplete(self) -> bool:
        """Whether a judge that was asked gave no verdict on a claim."""
        return bool(self.failures) or any(
            judge.unjudged_by_reason for _, judges in self.measured for judge in judges if judge.asked
        )

    def _live(self, runtime: Runtime) -> list[LiveJudge]:
        return [LiveJudge(runtime, model, votes=self.votes, listed=self.listed) for model in self.models]

    def _counted(self, one: LabelSet, live: Sequence[LiveJudge]) -> Iterator[list[Item]]:
        """Yield the usable items of a set, count the recorded verdicts, and at the end store the measurement."""
        summary, recorded = SetTally(one.name), RecordedTallies(self.rule, listed=self.listed)
        items = one.items(self.rule)
        while chunk := list(islice(items, _CHUNK)):
            usable = [item for item in chunk if item.left_out is None]
            for item in chunk:
                summary.add(item)
            for item in usable:
                recorded.add(item)
            yield usable
        judges = [*(judge.tally for judge in live), *recorded.results()]
        self.measured.append((summary.as_json(one.sha256), judges))
