"""Look-ahead for scripts that wait for one verdict after another.

A scouting run executes the same script concurrently with the real run. In the scouting run, ``verify`` starts its claim
and returns True immediately, so the script continues to its next claims. The real run then finds its verdicts pending
or done. Only replies are shared (``shared_replies``). The real run settles every leaf in its own tree, so the tree is
the same as without look-ahead. Requests behind a gate that fails later are wasted. A claim is therefore started only if
at most one gate before it is open, and behind an open gate only while the expected waste is a small share of all
requests. Claims that the real run skips are cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from mind2web2.verification_tree import VerificationNode, as_status
from rubrics.gating import Prerequisite, first_blocker
from rubrics.tree import leaves_below

MAX_OPEN_GATES: Final = 1
WASTE_SHARE: Final = 0.05
"""Maximum expected share of wasted requests."""
MISS_RATE: Final = 0.2
"""Assumed failure rate of a gate without a known verdict."""
CALLS_PER_CLAIM: Final = 2
"""Number of votes that are requested together."""

Judge = Callable[[], Awaitable[bool]]
"""Settles one claim and stores the verdict in its node."""


class RequestCounter(Protocol):
    """Counter of requests sent for either run."""

    @property
    def request_count(self) -> int: ...


class Scout:
    """Claims that a scouting run has started. ``aclose`` cancels the pending ones."""

    def __init__(self, replies: RequestCounter) -> None:
        self._replies = replies
        self._at_risk: dict[asyncio.Task[None], set[asyncio.Task[None]]] = {}
        """Claims started behind an open gate, with the claims that the gate waits for."""
        self._started: set[int] = set()
        self._wasted = 0
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._by_name: dict[str, VerificationNode] = {}

    async def start(
        self, node: VerificationNode, needed: Sequence[Prerequisite[VerificationNode]], judge: Judge
    ) -> bool:
        """Start a claim, or postpone it until at most one gate before it is open. Return False if a gate has failed."""
        if first_blocker(needed, as_status, lambda leaf: False) is not None:
            node.decide(0.0, "skipped")
            return False
        self._cancel(node)
        # Wait only for claims that were started earlier, because critical siblings gate each other.
        gates = [gate for each in needed if (gate := self._pending(each.node, node))]
        self._by_name[node.id] = node  # also keeps the node, and so its identity, alive
        node.decide(1.0, "passed")
        self._tasks[id(node)] = asyncio.create_task(self._judge_when_allowed(node, needed, gates, judge))
        await asyncio.sleep(0)  # lets the claim start before the script continues
        return True

    def cancel(self, node_id: str) -> None:
        """Cancel the claim of a node that the real run skips."""
        node = self._by_name.get(node_id)
        if node is None:
            return
        if id(node) in self._started:
            self._started.discard(id(node))
            self._wasted += CALLS_PER_CLAIM
        if self._cancel(node):
            node.decide(0.0, "skipped")

    async def aclose(self) -> None:
        tasks = [task for task in self._tasks.values() if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _judge_when_allowed(
        self,
        node: VerificationNode,
        needed: Sequence[Prerequisite[VerificationNode]],
        gates: Sequence[set[asyncio.Task[None]]],
        judge: Judge,
    ) -> None:
        while first_blocker(needed, as_status, lambda leaf: False) is None:
            gates = [still_open for gate in gates if (still_open := {task for task in gate if not task.done()})]
            if not gates or (len(gates) <= MAX_OPEN_GATES and self._may_risk(gates[0])):
                self._started.add(id(node))
                await judge()
                return
            await asyncio.wait(set().union(*gates), return_when=asyncio.FIRST_COMPLETED)
        node.decide(0.0, "skipped")

    def _may_risk(self, gate: set[asyncio.Task[None]]) -> bool:
        """Return whether the requests of one more claim may be risked; if so, count them as at risk."""
        self._at_risk = {
            claim: waits for claim, waits in self._at_risk.items() if any(not task.done() for task in waits)
        }
        expected_waste = MISS_RATE * CALLS_PER_CLAIM * (len(self._at_risk) + 1)
        if self._wasted + expected_waste > WASTE_SHARE * self._replies.request_count:
            return False
        claim = asyncio.current_task()
        if claim is not None:
            self._at_risk[claim] = gate
        return True

    def _pending(self, gate: VerificationNode, waiting: VerificationNode) -> set[asyncio.Task[None]]:
        """Return the pending claims below a gate, except ``waiting`` itself."""
        tasks = (self._tasks.get(id(leaf)) for leaf in leaves_below(gate) if leaf is not waiting)
        return {task for task in tasks if task is not None and not task.done()}

    def _cancel(self, node: VerificationNode) -> bool:
        task = self._tasks.get(id(node))
        return task is not None and task.cancel()
