"""What a native judge file sees: the answer, a way to read values out of it, and the rubric it declares.

``check`` and ``verify`` declare; nothing is judged until the coroutine has returned or asks for it by
``settle``. So authors write no gather, no ordering and no logging, and the tree can be printed,
linted and priced before a token is spent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from answers.citations import unique_urls
from answers.submission import Answer
from cache.urls import is_fetchable
from judges.errors import ExtractionFailed
from rubrics.errors import InvalidNode
from rubrics.node import RubricNode, Strategy
from rubrics.rubric import ROOT_ID, Rubric
from rubrics.verdict import Claim, Outcome, Reason, Verdict

S = TypeVar("S", bound=BaseModel)


class Settling(Protocol):
    """Settles every leaf below a node, and whatever those wait for."""

    async def settle(self, node: RubricNode) -> bool:
        """Whether the node came out with a full score."""
        ...


class Reading(Protocol):
    """Reads values out of the answer or, with ``source``, out of that page."""

    async def read(
        self, schema: type[S], prompt: str, *, source: str | None, instruction: str | None, name: str
    ) -> S: ...


@dataclass(frozen=True, slots=True)
class Leaf:
    """A declared leaf: name it in ``requires``, hand it to ``settle``, or look at its verdict once settled."""

    node: RubricNode

    @property
    def id(self) -> str:
        return self.node.id

    @property
    def verdict(self) -> Verdict | None:
        return self.node.verdict


class _Tree:
    """What all groups of one rubric share."""

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric
        self.unread: str | None = None
        """Why values could not be read, once an extraction has failed: what is declared from then on is unknown."""


class Group:
    """An inner node being filled. Ids are written relative to it: ``given`` below ``lineage/g1`` is
    ``lineage/g1/given``.
    """

    def __init__(self, tree: _Tree, node: RubricNode) -> None:
        self._tree = tree
        self.node = node

    @property
    def id(self) -> str:
        return self.node.id

    def parallel(
        self, id: str, desc: str, *, critical: bool = False, weight: float = 1.0, requires: Needed = ()
    ) -> Group:
        """Add a group whose children stand side by side.

        Raises:
            rubrics.errors.InvalidNode: the id is taken or empty, a weight is not above zero, or a child of a
                critical group is not critical. The same goes for the three methods below.
        """
        return self._group(id, desc, Strategy.PARALLEL, critical=critical, weight=weight, requires=requires)

    def sequential(
        self, id: str, desc: str, *, critical: bool = False, weight: float = 1.0, requires: Needed = ()
    ) -> Group:
        """Add a group whose children are steps: after the first that does not pass, the others count 0."""
        return self._group(id, desc, Strategy.SEQUENTIAL, critical=critical, weight=weight, requires=requires)

    def check(
        self, id: str, value: object, desc: str | None = None, *, critical: bool = False, weight: float = 1.0
    ) -> Leaf:
        """Add a leaf that code decides: it passes when ``value`` is truthy."""
        node = RubricNode(
            id=self._child_id(id),
            desc=desc or id.replace("_", " "),
            critical=critical,
            weight=weight,
            check=bool(value),
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
        requires: Needed = (),
    ) -> Leaf:
        """Add a leaf that a judge decides.

        ``sources=None``: judged from the answer and the task alone. Otherwise the claim must be supported by
        one of these pages; when none is given, the claim fails without a model being asked.
        ``requires`` names further nodes that must not have failed.
        """
        node = RubricNode(
            id=self._child_id(id),
            desc=claim,
            critical=critical,
            weight=weight,
            claim=Claim(text=claim, sources=_sources(sources), instruction=instruction or None),
            requires=_ids(requires),
        )
        return self._leaf(node)

    def _group(
        self, id: str, desc: str, strategy: Strategy, *, critical: bool, weight: float, requires: Needed
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
        if self._tree.unread is not None:
            node.verdict = unread_verdict(self._tree.unread)
        return Leaf(node)

    def _child_id(self, id: str) -> str:
        if not id or "/" in id:
            raise InvalidNode(f"node id {id!r} below {self.node.id!r}: it must not be empty or contain a slash")
        return id if self.node.id == ROOT_ID else f"{self.node.id}/{id}"


Needed: TypeAlias = "Leaf | Group | str | Iterable[Leaf | Group | str]"
"""Nodes that must not have failed: what ``check``, ``verify``, ``parallel``, ``sequential`` returned, or full ids."""


class JudgeContext(Group):
    """The sole input of a native judge: it is the root group, and knows the answer and the task.

    ``task`` is the task's description as the judge file gives it.
    """

    def __init__(self, *, rubric: Rubric, task: str, answer: Answer, reading: Reading, settling: Settling) -> None:
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
        """Read ``schema`` out of the answer, or out of the page at ``source``; ``name`` labels it in the result.

        Raises:
            ExtractionFailed: nothing could be read. Left alone it ends the judge, and the result is incomplete;
                caught, every leaf declared afterwards is not judged, for its values say nothing about the answer.
        """
        try:
            return await self._reading.read(schema, prompt, source=source, instruction=instruction, name=name)
        except ExtractionFailed as error:
            self._tree.unread = str(error)
            raise

    async def settle(self, node: Leaf | Group) -> bool:
        """Settle everything below ``node`` now, and tell whether it came out with a full score.

        For claims that can only be written once an earlier verdict is known. Gates count as declared so far.
        """
        return await self._settling.settle(node.node)


def unread_verdict(why: str) -> Verdict:
    """The verdict of a leaf whose values could not be read."""
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.EXTRACTION_FAILED, reasoning=why)


def _sources(given: str | Iterable[str | None] | None) -> tuple[str, ...] | None:
    """The addresses among what an answer gave as sources; None stays None, a lone text is one source.

    What holds no address ("see above", "N/A") is no source.
    """
    if given is None:
        return None
    listed = [given] if isinstance(given, str) else given
    found: list[str] = []
    for text in listed:
        source = (text or "").strip()
        found += [source] if is_fetchable(source) else unique_urls(source)
    return tuple(dict.fromkeys(found))


def _ids(needed: Needed) -> tuple[str, ...]:
    """A lone node or id is meant as one; a string is never taken apart into letters."""
    listed = [needed] if isinstance(needed, Leaf | Group | str) else needed
    return tuple(each if isinstance(each, str) else each.id for each in listed)
