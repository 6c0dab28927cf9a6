"""What is known of each leaf beyond the public fields: the verdict behind a score, and what nobody found out.

The public fields have no third state: a fault leaves ``failed`` and 0 there. The ledger keeps the difference, per
node and outside the node, and works out our outcome for every leaf of a tree that a judge script built as it
pleased: by ``verify``, by custom nodes, or by assigning to fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from mind2web2.verification_tree import NodeStatus, VerificationNode
from rubrics.node import Status
from rubrics.scoring import compatible
from rubrics.verdict import Claim, ModelRequest, Outcome, Reason, Usage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One decision. ``written`` is what it put into the public fields, ``node`` keeps the identity alive.

    ``unknown``: the leaf could have come out otherwise, had nothing gone wrong.
    """

    node: VerificationNode
    verdict: Verdict
    claim: Claim | None
    written: tuple[float, NodeStatus]
    unknown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafView:
    """A leaf as it stands now: ``low`` and ``high`` are what it may count."""

    verdict: Verdict
    claim: Claim | None
    low: float
    high: float


@dataclass(slots=True)
class Ledger:
    """The decisions of one run of a judge script."""

    root: VerificationNode | None = None
    usage: Usage = field(default_factory=Usage)
    requests: list[ModelRequest] = field(default_factory=list)
    """Every request behind a verdict, also behind those that no node has any more."""
    unread: str | None = None
    """Why an extraction failed, once one has: what the script decides from then on says nothing about the answer."""
    ended: str | None = None
    """Why the script was ended before it had returned, if it was: what is open then is not judged."""
    prompts: set[str] = field(default_factory=set)
    on_decision: Callable[[], None] | None = None
    """Called after each decision."""
    _entries: dict[int, Entry] = field(default_factory=dict)
    _decided_before: dict[int, tuple[VerificationNode, tuple[float, NodeStatus]]] = field(default_factory=dict)

    def enter(
        self, node: VerificationNode, verdict: Verdict, claim: Claim | None = None, *, unknown: bool | None = None
    ) -> None:
        """Write a decision into the node's public fields and keep what is behind it.

        ``unknown`` is for a skipped node: whether it was skipped only because of what is unknown itself.
        """
        score, status = compatible(verdict)
        node.decide(score, status.value)
        self.keep(node, verdict, claim, unknown=unknown)

    def keep(
        self, node: VerificationNode, verdict: Verdict, claim: Claim | None = None, *, unknown: bool | None = None
    ) -> None:
        """Keep what is behind a decision that stands in the public fields already."""
        if self.unread is not None and verdict.outcome in (Outcome.PASSED, Outcome.FAILED):
            verdict = _poisoned(verdict, self.unread)
        self.note_verdict(verdict)
        self._entries[id(node)] = Entry(
            node=node,
            verdict=verdict,
            claim=claim,
            written=(node.score, node.status),
            unknown=verdict.outcome is Outcome.NOT_JUDGED if unknown is None else unknown,
        )
        if self.on_decision is not None:
            self.on_decision()

    def note_verdict(self, verdict: Verdict) -> None:
        """Count what a verdict cost."""
        self.note(verdict.spent, verdict.prompt, (*verdict.requests, *verdict.unneeded))

    def note(self, usage: Usage, prompt: str | None, requests: Iterable[ModelRequest] = ()) -> None:
        """Count what model requests cost, and by which prompt they were made."""
        self.usage += usage
        self.requests += requests
        if prompt is not None:
            self.prompts.add(prompt)

    def extraction_failed(self, why: str) -> None:
        """From here on the values a script works with are defaults; what is decided already stays as it is."""
        if self.unread is None and self.root is not None:
            self._decided_before = {
                id(node): (node, node.decided) for node in self.root.walk() if node.decided[1] != "initialized"
            }
        self.unread = self.unread or why

    @property
    def is_whole(self) -> bool:
        """Whether the tree is the one the script makes when nothing goes wrong."""
        return self.unread is None and self.ended is None

    def is_unknown(self, node: VerificationNode) -> bool:
        """Whether a leaf's status says nothing about the answer."""
        return self._current(node).unknown

    def view(self, leaf: VerificationNode, missed_step: VerificationNode | None = None) -> LeafView:
        """A leaf's outcome and range. ``missed_step`` is the earlier step behind which scoring has zeroed it."""
        entry = self._current(leaf)
        verdict, score = entry.verdict, leaf.decided[0]
        low, high = (0.0, 1.0) if entry.unknown else (score, score)
        was_zeroed = missed_step is not None and leaf.decided != (leaf.score, leaf.status)
        if was_zeroed and missed_step is not None and verdict.outcome in (Outcome.PASSED, Outcome.FAILED):
            verdict = gated(missed_step)
        return LeafView(verdict=verdict, claim=entry.claim, low=low, high=high)

    def _current(self, node: VerificationNode) -> Entry:
        entry = self._entries.get(id(node))
        if entry is not None and entry.written == node.decided:
            return entry
        return self._by_hand(node)

    def _by_hand(self, node: VerificationNode) -> Entry:
        """The entry of a node that the script has set itself, or never settled."""
        score, status = node.decided
        verdict = _as_written(score, status)
        before = self._decided_before.get(id(node))
        is_poisoned = self.unread is not None and (before is None or before[1] != (score, status))
        if is_poisoned and self.unread is not None and verdict.outcome in (Outcome.PASSED, Outcome.FAILED):
            verdict = _poisoned(verdict, self.unread)
        if self.ended is not None and verdict.outcome is Outcome.UNDECIDED:
            verdict = not_judged(Reason.TIMEOUT, self.ended)
        # A leaf left open with defaults in hand may have been left open because of them.
        unknown = verdict.outcome is Outcome.NOT_JUDGED or (is_poisoned and verdict.outcome is Outcome.UNDECIDED)
        return Entry(node=node, verdict=verdict, claim=None, written=(score, status), unknown=unknown)


def gated(blocker: VerificationNode) -> Verdict:
    """The verdict of a leaf that was not looked at because of ``blocker``."""
    return Verdict(outcome=Outcome.SKIPPED, reason=Reason.GATED, blocked_by=blocker.id)


def checked(result: bool) -> Verdict:
    """The verdict of a leaf that code decided."""
    if result:
        return Verdict(outcome=Outcome.PASSED, grounded=True)
    return Verdict(outcome=Outcome.FAILED, reason=Reason.CHECK_FALSE)


def not_judged(reason: Reason, why: str) -> Verdict:
    """The verdict of a leaf about which nothing was found out."""
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=reason, reasoning=why)


def missed_steps(root: VerificationNode) -> dict[int, VerificationNode]:
    """For every node behind the first missed step of a sequence, that step; by ``id(node)``, direct children only."""
    found: dict[int, VerificationNode] = {}
    for parent in root.walk():
        if parent.strategy == "sequential":
            found |= _behind_first_miss(parent.children)
    return found


def _behind_first_miss(steps: Sequence[VerificationNode]) -> dict[int, VerificationNode]:
    missed = next((place for place, step in enumerate(steps) if step.score < 1.0), len(steps))
    return {id(step): steps[missed] for step in steps[missed + 1 :]}


def _as_written(score: float, status: str) -> Verdict:
    if status == Status.SKIPPED:
        return Verdict(outcome=Outcome.SKIPPED, reason=Reason.GATED)
    if status == Status.INITIALIZED:
        return Verdict(outcome=Outcome.UNDECIDED)
    return checked(score == 1.0)


def _poisoned(verdict: Verdict, why: str) -> Verdict:
    return replace(
        verdict,
        outcome=Outcome.NOT_JUDGED,
        reason=Reason.EXTRACTION_FAILED,
        reasoning=f"{why} {verdict.reasoning}".strip(),
        grounded=None,
    )
