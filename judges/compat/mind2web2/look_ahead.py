"""Look-ahead for scripts that wait for one verdict after another.

Beside the run that counts goes a scout: the same script, in which ``verify`` starts its claim and returns True at
once, so that the script runs on to its next claims. The real run then finds its verdicts under way or done. Only
replies are shared (``shared_replies``); the real run settles every leaf by its own tree, so the tree is the one it
would have grown alone. What is wasted is what was started behind a gate that then fails. So a claim is started only
while at most one gate before it is open, and behind an open gate only while the calls that are likely to be wasted
stay a small share of all calls. What the real run skips is called off.
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
"""The share of all calls that may be wasted, as far as that can be foreseen."""
MISS_RATE: Final = 0.2
"""How often a gate is taken to fail while nothing is known of it."""
CALLS_A_CLAIM: Final = 2
"""The votes that are asked together."""

Judge = Callable[[], Awaitable[bool]]
"""Settles one claim and writes the verdict into its node."""


class Asked(Protocol):
    """Counts the calls made for either run."""

    @property
    def asked(self) -> int: ...


class Scout:
    """The claims that a scouting run has started. ``aclose`` calls off what is left of them."""

    def __init__(self, replies: Asked) -> None:
        self._replies = replies
        self._at_risk: dict[asyncio.Task[None], set[asyncio.Task[None]]] = {}
        """Claims started behind an open gate, with the claims that gate waits for."""
        self._started: set[int] = set()
        self._wasted = 0
        self._early: dict[int, asyncio.Task[None]] = {}
        self._by_name: dict[str, VerificationNode] = {}

    async def start(
        self, node: VerificationNode, needed: Sequence[Prerequisite[VerificationNode]], judge: Judge
    ) -> bool:
        """Start a claim, or put it off until few enough gates before it are open; True unless one is known shut."""
        if first_blocker(needed, as_status) is not None:
            node.decide(0.0, "skipped")
            return False
        self._cancel(node)
        # Only claims that were started before this one are waited for: critical siblings gate each other.
        gates = [gate for each in needed if (gate := self._under_way(each.node, node))]
        self._by_name[node.id] = node  # also keeps the node, and so its identity, alive
        node.decide(1.0, "passed")
        self._early[id(node)] = asyncio.create_task(self._when_due(node, needed, gates, judge))
        await asyncio.sleep(0)  # the claim gets its turn before the script runs on
        return True

    def call_off(self, node_id: str) -> None:
        """The real run skips this node: whatever was started for it is not needed."""
        node = self._by_name.get(node_id)
        if node is None:
            return
        if id(node) in self._started:
            self._started.discard(id(node))
            self._wasted += CALLS_A_CLAIM
        if self._cancel(node):
            node.decide(0.0, "skipped")

    async def aclose(self) -> None:
        tasks = [task for task in self._early.values() if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _when_due(
        self,
        node: VerificationNode,
        needed: Sequence[Prerequisite[VerificationNode]],
        gates: Sequence[set[asyncio.Task[None]]],
        judge: Judge,
    ) -> None:
        while first_blocker(needed, as_status) is None:
            gates = [still_open for gate in gates if (still_open := {task for task in gate if not task.done()})]
            if not gates or (len(gates) <= MAX_OPEN_GATES and self._may_risk(gates[0])):
                self._started.add(id(node))
                await judge()
                return
            await asyncio.wait(set().union(*gates), return_when=asyncio.FIRST_COMPLETED)
        node.decide(0.0, "skipped")

    def _may_risk(self, gate: set[asyncio.Task[None]]) -> bool:
        """Whether the calls of one more claim may be put at risk; if so, they are from now on."""
        self._at_risk = {
            claim: waits for claim, waits in self._at_risk.items() if any(not task.done() for task in waits)
        }
        foreseen = MISS_RATE * CALLS_A_CLAIM * (len(self._at_risk) + 1)
        if self._wasted + foreseen > WASTE_SHARE * self._replies.asked:
            return False
        claim = asyncio.current_task()
        if claim is not None:
            self._at_risk[claim] = gate
        return True

    def _under_way(self, gate: VerificationNode, waiting: VerificationNode) -> set[asyncio.Task[None]]:
        """The claims below a gate whose verdict is not known yet, but for the one that waits itself."""
        early = (self._early.get(id(leaf)) for leaf in leaves_below(gate) if leaf is not waiting)
        return {task for task in early if task is not None and not task.done()}

    def _cancel(self, node: VerificationNode) -> bool:
        task = self._early.get(id(node))
        return task is not None and task.cancel()
