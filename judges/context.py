"""API for native task files: the answer, extraction, and the rubric being declared.

``check`` and ``verify`` only declare leaves. Nothing is judged until the coroutine returns or calls ``settle``. Judge
files therefore need no concurrency, ordering or logging, and the rubric can be printed, linted and priced before any
model request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from answers.citations import unique_urls
from answers.submission import Answer
from cache.urls import is_fetchable
from judges.errors import ExtractionFailed
from rubrics.rubric import ROOT_ID, InvalidNode, Rubric
from rubrics.tree import RubricNode, Strategy
from rubrics.verdict import Claim, Outcome, Reason, Verdict

S = TypeVar("S", bound=BaseModel)


class ExtractionService(Protocol):
    """Extracts values from the answer or, if ``source`` is given, from that page."""

    async def read(
        self, schema: type[S], prompt: str, *, source: str | None, instruction: str | None, name: str
    ) -> S: ...


@dataclass(frozen=True, slots=True)
class Leaf:
    """Declared leaf. Pass it to ``requires`` or ``settle``; ``verdict`` is None until it is settled."""

    node: RubricNode

    @property
    def id(self) -> str:
        return self.node.id

    @property
    def verdict(self) -> Verdict | None:
        return self.node.verdict


class _Tree:
    """State shared by all groups of one rubric."""

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric
        self.extraction_error: str | None = None
        """Error message of the failed or cancelled extraction, if any. Leaves declared after it are not judged."""


class Group:
    """Inner node under construction. Child ids are relative: ``given`` below ``lineage/g1`` is ``lineage/g1/given``.

    A node with a negative ``weight`` is a penalty: its score is subtracted, and that of its group is clipped to 0..1.
    """

    def __init__(self, tree: _Tree, node: RubricNode) -> None:
        self._tree = tree
        self.node = node

    @property
    def id(self) -> str:
        return self.node.id

    def parallel(
        self, id: str, desc: str, *, critical: bool = False, weight: float = 1.0, requires: Prerequisites = ()
    ) -> Group:
        """Add a group whose children are independent of each other.

        Raises:
            rubrics.rubric.InvalidNode: the id is taken or empty, a weight is 0 or not finite, a child of a critical
                group is not critical, or a penalty is combined with a gate. Also applies to ``sequential``, ``check``
                and ``verify``.
        """
        return self._group(id, desc, Strategy.PARALLEL, critical=critical, weight=weight, requires=requires)

    def sequential(
        self, id: str, desc: str, *, critical: bool = False, weight: float = 1.0, requires: Prerequisites = ()
    ) -> Group:
        """Add a group whose children are ordered steps: after the first step that does not pass, the rest score 0."""
        return self._group(id, desc, Strategy.SEQUENTIAL, critical=critical, weight=weight, requires=requires)

    def check(
        self,
        id: str,
        value: object,
        desc: str | None = None,
        *,
        critical: bool = False,
        weight: float = 1.0,
        expression: str | None = None,
    ) -> Leaf:
        """Add a leaf that code decides: it passes if ``value`` is truthy.

        ``expression`` tells readers of the result what was compared, with the values: ``1962 == 1961``.
        """
        node = RubricNode(
            id=self._child_id(id),
            desc=desc or id.replace("_", " "),
            critical=critical,
            weight=weight,
            check=bool(value),
            expression=expression or "",
        )
        return self._leaf(node)

    def verify(
        self,
        id: str,
        claim: str,
        sources: str | Iterable[str | None] | None = None,
        *,
        critical: bool = False,
        weight: float = 1.0,
        instruction: str | None = None,
        requires: Prerequisites = (),
    ) -> Leaf:
        """Add a leaf that the model decides.

        With ``sources=None``, the claim is judged on the answer and the task alone. Otherwise one of the pages must
        support it; an empty list fails the claim without a model request. ``requires`` names further nodes that must
        not have failed.
        """
        urls = _sources(sources)
        node = RubricNode(
            id=self._child_id(id),
            desc=claim,
            critical=critical,
            weight=weight,
            claim=Claim(text=claim, sources=urls, instruction=instruction or None),
            requires=_ids(requires),
        )
        return self._leaf(node)

    def _group(
        self, id: str, desc: str, strategy: Strategy, *, critical: bool, weight: float, requires: Prerequisites
    ) -> Group:
        node = RubricNode(
            id=self._child_id(id),
            desc=desc,
            critical=critical,
            weight=weight,
            strategy=strategy,
            requires=_ids(requires),
        )
        return Group(self._tree, self._tree.rubric.add(self.node, node))

    def _leaf(self, node: RubricNode) -> Leaf:
        self._tree.rubric.add(self.node, node)
        if self._tree.extraction_error is not None:
            node.verdict = extraction_failed_verdict(self._tree.extraction_error)
        return Leaf(node)

    def _child_id(self, id: str) -> str:
        if not id or "/" in id:
            raise InvalidNode(f"node id {id!r} below {self.node.id!r}: it must not be empty or contain a slash")
        return id if self.node.id == ROOT_ID else f"{self.node.id}/{id}"


Prerequisites: TypeAlias = "Leaf | Group | str | Iterable[Leaf | Group | str]"
"""Nodes that must not have failed: return values of ``check``, ``verify``, ``parallel`` or ``sequential``, or full ids.
"""


class JudgeContext(Group):
    """Only argument of a native judge: the root group, with the answer and the task description."""

    def __init__(
        self,
        *,
        rubric: Rubric,
        task: str,
        answer: Answer,
        reading: ExtractionService,
        settling: Callable[[RubricNode], Awaitable[bool]],
    ) -> None:
        """``settling`` settles all leaves below a node and returns whether the score of the node is full."""
        super().__init__(_Tree(rubric), rubric.root)
        self.task = task
        self.answer = answer
        self._reading = reading
        self._settling = settling

    async def extract(
        self,
        schema: type[S],
        prompt: str,
        *,
        source: str | None = None,
        instruction: str | None = None,
        name: str = "extraction",
    ) -> S:
        """Extract ``schema`` from the answer, or from the page at ``source``. ``name`` is the label in the result.

        Raises:
            ExtractionFailed: nothing could be extracted. The result is incomplete. If the judge does not catch it, the
                judge ends. If it does, no leaf declared afterwards is judged.
        """
        try:
            return await self._reading.read(schema, prompt, source=source, instruction=instruction, name=name)
        except (ExtractionFailed, asyncio.CancelledError) as error:
            self._tree.extraction_error = str(error) or "The judge cancelled an extraction."
            raise

    async def settle(self, node: Leaf | Group) -> bool:
        """Settle everything below ``node`` now and return whether it has a full score.

        If a fault leaves that open, return False. The result is incomplete, and its score is open from 0 to 1.

        Use it for claims that depend on an earlier verdict. Only gates declared so far apply.
        """
        return await self._settling(node.node)


def extraction_failed_verdict(reasoning: str) -> Verdict:
    """Return the verdict of a leaf whose values could not be extracted."""
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.EXTRACTION_FAILED, reasoning=reasoning)


def _sources(sources: str | Iterable[str | None] | None) -> tuple[str, ...] | None:
    """Return the URLs among the given sources. None stays None; a string is one source.

    Text without a URL ("see above", "N/A") is dropped.
    """
    if sources is None:
        return None
    listed = [sources] if isinstance(sources, str) else sources
    urls: list[str] = []
    for text in listed:
        source = (text or "").strip()
        urls += [source] if is_fetchable(source) else unique_urls(source)
    return tuple(dict.fromkeys(urls))


def _ids(needed: Prerequisites) -> tuple[str, ...]:
    """Return the ids of the given nodes. A single string is one id, not a sequence of letters."""
    listed = [needed] if isinstance(needed, Leaf | Group | str) else needed
    return tuple(each if isinstance(each, str) else each.id for each in listed)
