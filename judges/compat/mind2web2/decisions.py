"""Verdicts behind the public fields of a tree.

The public fields have no third state: a fault is stored as ``failed`` with score 0. ``Decisions`` stores the verdict of
each node outside the node. It derives an outcome for every leaf, whether the script set it by ``verify``, by a custom
node or by assigning to fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Final, Self, cast

from mind2web2.verification_tree import NodeStatus, VerificationNode
from rubrics.scoring import compatible_score
from rubrics.tree import Status
from rubrics.verdict import Claim, ModelRequest, Outcome, Reason, Usage, Verdict

PENDING: Final = "the task script did not wait for the end of a request"
_USED: Final = "the task script used the result of a claim that was not judged:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision.

    ``written`` is what it stored in the public fields. ``node`` keeps the node alive, because entries are keyed by
    ``id()``. ``unknown``: without a fault, the leaf could have had another outcome.
    """

    node: VerificationNode
    verdict: Verdict
    claim: Claim | None
    written: tuple[float, NodeStatus]
    unknown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafState:
    """Current state of a leaf. ``low`` and ``high`` are the bounds of its score."""

    verdict: Verdict
    claim: Claim | None
    low: float
    high: float


@dataclass(slots=True)
class Decisions:
    """Decisions of one run of a task script, in all of its trees."""

    roots: list[VerificationNode] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    requests: list[ModelRequest] = field(default_factory=list)
    """All requests behind verdicts, including verdicts that are no longer in a node."""
    extraction_error: str | None = None
    """Message of the first failed extraction, if any. Decisions made after it say nothing about the answer."""
    extraction_failed: bool = False
    """Whether an extraction failed by itself, instead of being cancelled."""
    extraction_reasons: list[Reason] = field(default_factory=list)
    """Reasons of the failed extractions, each once."""
    used: Verdict | None = None
    """Verdict of a claim that was not judged and whose result the script has used. Nodes that the script sets itself
    afterwards are not judged either."""
    stop_reason: str | None = None
    """Reason that the script was stopped before it returned, if it was. Open leaves are then not judged."""
    prompts: set[str] = field(default_factory=set)
    on_decision: Callable[[], None] | None = None
    """Called after each decision."""
    _entries: dict[int, Decision] = field(default_factory=dict)
    _pending: Counter[int] = field(default_factory=Counter)
    """Number of requests that have not ended, by ``id()`` of their node or of None."""
    _decided_before: dict[int, tuple[VerificationNode, tuple[float, NodeStatus]]] = field(default_factory=dict)

    def record(
        self, node: VerificationNode, verdict: Verdict, claim: Claim | None = None, *, unknown: bool | None = None
    ) -> None:
        """Record a decision and store it in the node's public fields.

        For a skipped node, ``unknown`` tells whether it was skipped only because of an unknown leaf.
        """
        score, status = compatible_score(verdict)
        node.decide(score, status.value)
        self.record_existing(node, verdict, claim, unknown=unknown)

    def record_existing(
        self, node: VerificationNode, verdict: Verdict, claim: Claim | None = None, *, unknown: bool | None = None
    ) -> None:
        """Record a decision that is already in the public fields."""
        if self.extraction_error is not None or (self.used is not None and claim is None):
            verdict = self._after_fault(verdict)
        self.add_verdict(verdict)
        self._entries[id(node)] = Decision(
            node=node,
            verdict=verdict,
            claim=claim,
            written=(node.score, node.status),
            unknown=verdict.outcome is Outcome.NOT_JUDGED if unknown is None else unknown,
        )
        if self.on_decision is not None:
            self.on_decision()

    def add_verdict(self, verdict: Verdict) -> None:
        """Count what a verdict cost."""
        self.add_usage(verdict.spent, verdict.prompt, (*verdict.requests, *verdict.unneeded))

    def add_usage(self, usage: Usage, prompt: str | None, requests: Iterable[ModelRequest] = ()) -> None:
        """Add the usage and the prompt of model requests."""
        self.usage += usage
        self.requests += requests
        if prompt is not None:
            self.prompts.add(prompt)

    def record_cancelled(self, subject: str) -> None:
        """Record that the script has cancelled a request, for example after a timeout. Like a failed extraction."""
        has_failed = self.extraction_failed
        self.record_failed_extraction(f"{subject} was cancelled", Reason.TIMEOUT)
        self.extraction_failed = has_failed

    def record_failed_extraction(self, explanation: str, reason: Reason = Reason.EXTRACTION_FAILED) -> None:
        """Record a failed extraction. Later decisions are not judged; earlier ones are unchanged."""
        self.extraction_failed = True
        if self.extraction_error is None:
            self._remember_decided()
        self.extraction_error = self.extraction_error or explanation
        if reason not in self.extraction_reasons:
            self.extraction_reasons.append(reason)

    def returned(self, verdict: Verdict, *, unknown: bool) -> bool:
        """Return what ``verify`` returns for a verdict that a node has."""
        if unknown:
            return cast(bool, UnknownVerdict(self.record_use))
        return verdict.outcome is Outcome.PASSED

    def record_use(self) -> None:
        """Record that the script has used the result of a claim that a fault left unknown."""
        if self.used is None and (unjudged := self.unjudged()):
            self._remember_decided()
            self.used = unjudged[0]

    def _remember_decided(self) -> None:
        self._decided_before = {
            id(node): (node, node.decision)
            for root in self.roots
            for node in root.walk()
            if node.decision[1] != "initialized"
        }

    @property
    def is_complete(self) -> bool:
        """Whether the script built its tree without a failed extraction and without being stopped."""
        return self.extraction_error is None and self.stop_reason is None

    def unjudged(self, except_in: Collection[VerificationNode] = ()) -> list[Verdict]:
        """Return the verdicts of nodes that were not judged, except those of the nodes in ``except_in``.

        The script may have used such a verdict to decide something else.
        """
        known = set(map(id, except_in))
        current = (self._current(entry.node).verdict for key, entry in self._entries.items() if key not in known)
        unjudged = [verdict for verdict in current if verdict.outcome is Outcome.NOT_JUDGED]
        return [*unjudged, not_judged(Reason.TIMEOUT, PENDING)] if self._pending.total() else unjudged

    @contextmanager
    def pending(self, node: VerificationNode | None) -> Iterator[None]:
        """Count the block as a request for a node, or for None, that the script may not wait for."""
        self._pending[id(node)] += 1
        try:
            yield
        finally:
            self._pending[id(node)] -= 1

    def is_unknown(self, node: VerificationNode) -> bool:
        """Return whether a leaf's status is due to a fault. Scoring may have zeroed it because of an unknown step."""
        was_zeroed = node.decision != (node.score, node.status)
        may_be = [node, *(entry.node for entry in self._entries.values())] if was_zeroed else [node]
        return any(self._current(each).unknown for each in may_be)

    def view(self, leaf: VerificationNode, missed_step: VerificationNode | None = None) -> LeafState:
        """Return a leaf's outcome and bounds. ``missed_step`` is the earlier step that made scoring set it to 0."""
        entry = self._current(leaf)
        if self._pending[id(leaf)] and entry.verdict.outcome is Outcome.UNDECIDED:
            entry = replace(entry, verdict=not_judged(Reason.TIMEOUT, PENDING), unknown=True)
        verdict, score = entry.verdict, leaf.decision[0]
        low, high = (0.0, 1.0) if entry.unknown else (score, score)
        was_zeroed = missed_step is not None and leaf.decision != (leaf.score, leaf.status)
        if was_zeroed and missed_step is not None and verdict.outcome in (Outcome.PASSED, Outcome.FAILED):
            verdict = gated_verdict(missed_step)
        return LeafState(verdict=verdict, claim=entry.claim, low=low, high=high)

    def _current(self, node: VerificationNode) -> Decision:
        entry = self._entries.get(id(node))
        if entry is not None and entry.written == node.decision:
            return entry
        return self._entry_from_fields(node)

    def _entry_from_fields(self, node: VerificationNode) -> Decision:
        """Return the entry of a node that the script has set directly, or never settled."""
        score, status = node.decision
        verdict = _as_written(score, status)
        before = self._decided_before.get(id(node))
        has_fault = self.extraction_error is not None or self.used is not None
        is_after_fault = has_fault and (before is None or before[1] != (score, status))
        if is_after_fault:
            verdict = self._after_fault(verdict)
        if self.stop_reason is not None and verdict.outcome is Outcome.UNDECIDED:
            verdict = not_judged(Reason.TIMEOUT, self.stop_reason)
        # A leaf may be open because the script worked with default values.
        unknown = verdict.outcome is Outcome.NOT_JUDGED or (is_after_fault and verdict.outcome is Outcome.UNDECIDED)
        return Decision(node=node, verdict=verdict, claim=None, written=(score, status), unknown=unknown)

    def _after_fault(self, verdict: Verdict) -> Verdict:
        """Return a verdict that was reached after a failed extraction, or from an unknown result, as not judged."""
        if verdict.outcome not in (Outcome.PASSED, Outcome.FAILED):
            return verdict
        reason, why = next(iter(self.extraction_reasons), None), self.extraction_error
        if why is None and self.used is not None:
            reason, why = self.used.reason, f"{_USED} {self.used.reasoning}"
        reasoning = f"{why} {verdict.reasoning}".strip()
        return replace(verdict, outcome=Outcome.NOT_JUDGED, reason=reason, reasoning=reasoning, grounded=None)


class UnknownVerdict(int):
    """What ``verify`` returns for a claim that a fault left unknown: false, because a bool has no third state.

    It calls ``on_use`` when a script asks for its truth or value. Printing it asks for neither.
    """

    _on_use: Callable[[], None]
    # Scripts search a list of results and exceptions with ``isinstance(result, bool)``.
    __class__ = property(lambda _: bool)

    def __new__(cls, on_use: Callable[[], None]) -> Self:
        """Return a value that is equal to False."""
        unknown = super().__new__(cls, 0)
        unknown._on_use = on_use
        return unknown

    def __repr__(self) -> str:
        return repr(False)

    def __reduce__(self) -> tuple[type[bool], tuple[bool]]:
        """Copy and pickle it as False."""
        self._on_use()
        return bool, (False,)


def _noted(name: str) -> Callable[..., Any]:
    """Return the method of ``int`` that first tells that the value is used."""
    original = getattr(int, name)

    @wraps(original)
    def method(self: UnknownVerdict, *others: Any) -> Any:
        self._on_use()
        return original(self, *others)

    return method


_READING: Final = """
    __bool__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __int__ __float__ __index__ __invert__
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__
    __and__ __rand__ __or__ __ror__ __xor__ __rxor__
"""
for _name in _READING.split():
    setattr(UnknownVerdict, _name, _noted(_name))


def gated_verdict(blocker: VerificationNode) -> Verdict:
    """Return the verdict of a leaf that was skipped because of ``blocker``."""
    return Verdict(outcome=Outcome.SKIPPED, reason=Reason.GATED, blocked_by=blocker.id)


def checked(result: bool) -> Verdict:
    """Return the verdict of a leaf that code decided."""
    if result:
        return Verdict(outcome=Outcome.PASSED, grounded=True)
    return Verdict(outcome=Outcome.FAILED, reason=Reason.CHECK_FALSE)


def not_judged(reason: Reason, explanation: str) -> Verdict:
    """Return the verdict of a leaf that could not be judged."""
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=reason, reasoning=explanation)


def missed_steps(root: VerificationNode) -> dict[int, VerificationNode]:
    """Map each child after the first missed step of a sequence, by ``id(node)``, to that step. Direct children only."""
    missed: dict[int, VerificationNode] = {}
    for parent in root.walk():
        if parent.strategy == "sequential":
            missed |= _after_first_miss(parent.children)
    return missed


def _after_first_miss(steps: Sequence[VerificationNode]) -> dict[int, VerificationNode]:
    missed = next((place for place, step in enumerate(steps) if step.score < 1.0), len(steps))
    return {id(step): steps[missed] for step in steps[missed + 1 :]}


def _as_written(score: float, status: str) -> Verdict:
    if status == Status.SKIPPED:
        return Verdict(outcome=Outcome.SKIPPED, reason=Reason.GATED)
    if status == Status.INITIALIZED:
        return Verdict(outcome=Outcome.UNDECIDED)
    return checked(score == 1.0)
