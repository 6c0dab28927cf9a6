"""Task file under construction, with the differences from its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pydantic import ValidationError

from app.features.interop.rubrics.sources import Source
from judges.yaml_tasks.compiler import MAX_LEAVES, compile_task
from judges.yaml_tasks.document import InvalidTask
from judges.yaml_tasks.model import FORMAT, Graded, Group, Leaf, Level, Node, Root, TaskFile, write_task

UNKNOWN_QUESTION: Final = "Replace this text with the question that the agent was given."
Nodes: TypeAlias = dict[str, Node]


@dataclass(slots=True, kw_only=True)
class Difference:
    """Part of a source that a task file does not express in the same way.

    ``left_out``: it is not in the task; otherwise it is there with another meaning. ``count`` places have the same
    difference; ``where`` is the first.
    """

    where: str
    what: str
    why: str
    left_out: bool
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTask:
    """Result of an import: a task file that compiles, or None if nothing could be imported."""

    id: str
    text: str | None
    leaves: int
    differences: Sequence[Difference]


@dataclass(slots=True)
class Draft:
    """Task with the nodes converted so far. ``description`` is the question; empty if the source has none."""

    name: str
    description: str
    source: Source
    nodes: Nodes = field(default_factory=dict)
    all_or_nothing: bool = False
    differences: dict[tuple[str, str, bool], Difference] = field(default_factory=dict)
    _added: int = 0

    def report(self, source: Source, what: str, why: str, *, left_out: bool = False) -> None:
        """Add a difference. The same difference at several places is counted."""
        what = " ".join(what.split())
        what = what if len(what) <= 80 else f"{what[:77]}..."
        key = (what, why, left_out)
        if key in self.differences:
            self.differences[key].count += 1
        else:
            self.differences[key] = Difference(where=source.where, what=what, why=why, left_out=left_out)

    def report_unread(self, source: Source, ignored: Container[str] = ()) -> None:
        """Report the keys of ``source`` that no conversion has read."""
        for name, value in source.unread():
            if name not in ignored:
                self.report(value, name, "a task file has no place for it", left_out=True)

    def weight(self, source: Source) -> float:
        """Return a weight, or 0 after reporting a weight of 0.

        Raises:
            Malformed: it is negative, or not a number.
        """
        weight = source.number("weight", 1.0)
        if weight < 0:
            raise source.get("weight").error(f"'weight' must not be negative, found {weight:g}")
        if weight == 0:
            self.report(source, "weight: 0", "it has no effect on the score", left_out=True)
        return weight

    def claim(
        self, into: Nodes, source: Source, criterion: str, *, id: str = "", weight: float = 1.0, negated: bool = False
    ) -> bool:
        """Add a leaf that passes if the answer meets, or does not meet, a criterion. Return whether it was added."""
        start = "The answer does not meet this criterion" if negated else "The answer meets this criterion"
        return self.statement(into, source, f"{start}: {criterion.strip()}", id=id or criterion, weight=weight)

    def statement(self, into: Nodes, source: Source, text: str, *, id: str, weight: float) -> bool:
        """Add a leaf with this text as its claim."""
        return self.add(into, source, id, lambda: Leaf(claim=_escaped(text), weight=weight))

    def scale(
        self,
        into: Nodes,
        source: Source,
        criterion: str,
        *,
        low: float,
        high: float,
        steps: int,
        id: str = "",
        weight: float = 1.0,
    ) -> bool:
        """Add a node for a score from ``low`` to ``high``: one claim per step, each worth the same."""
        claims = [
            _escaped(at_least(criterion, low + (high - low) * step / steps, low, high)) for step in range(1, steps + 1)
        ]

        def build() -> Node:
            if steps == 1:
                return Leaf(claim=claims[0], weight=weight)
            levels = {
                f"step_{step}": Level(score=step / steps, claim=claim) for step, claim in enumerate(claims, start=1)
            }
            return Graded(graded=levels, weight=weight)

        why = f"one claim for each of {steps} equal steps, so the score is rounded down to a step"
        self.report(source, f"score from {low:g} to {high:g}", why)
        return self.add(into, source, id or criterion, build)

    def check(self, into: Nodes, source: Source, condition: str | None, *, id: str, weight: float = 1.0) -> bool:
        """Add a leaf that code decides. ``condition`` is None if the language of checks cannot express it."""
        if condition is None:
            why = "a text with both kinds of quotes cannot be written in a check; write a claim"
            self.report(source, id, why, left_out=True)
            return False
        why = "compares words, ignoring case and spaces, in the first 10,000 characters of the answer"
        self.report(source, "comparison of texts", why)
        description = _escaped(id[:1_000])
        return self.add(into, source, id, lambda: Leaf(check=condition, description=description, weight=weight))

    def group(self, into: Nodes, source: Source, children: Nodes, description: str, *, weight: float) -> bool:
        """Add a group. One without children is left out."""
        if not children:
            self.report(source, description, "none of its parts could be imported", left_out=True)
            return False
        if len(description) > 1_000:
            self.report(source, description, "the description of the group is cut after 1,000 characters")
        text = _escaped(description.strip()[:1_000]) or None
        return self.add(into, source, description, lambda: Group(description=text, parallel=children, weight=weight))

    def add(self, into: Nodes, source: Source, name: str, build: Callable[[], Node]) -> bool:
        """Add a node under a new id that is derived from ``name``; report it if it breaks a rule of the format."""
        if self._added >= 2 * MAX_LEAVES:
            why = f"a task has at most {MAX_LEAVES} leaves; split it"
            self.report(source, "further nodes", why, left_out=True)
            return False
        self._added += 1
        try:
            node = build()
        except ValidationError as error:
            self.report(source, name, _reasons(error), left_out=True)
            return False
        into[unique(slug(name, "part"), {each.lower() for each in into})] = node
        return True

    def finish(self, taken: set[str], question: str) -> ImportedTask:
        """Write and compile the task. ``taken`` has the ids in use, in lower case, and gets the id of this task.

        ``question`` is the description of a task whose source has none.
        """
        task_id = unique(slug(self.name, "task"), taken)
        taken.add(task_id.lower())
        description = self.description.strip() or question
        if not description:
            self.report(self.source, "question", "the file contains none; edit `description`, or use --question")
        text, leaves = None, 0
        try:
            if self.nodes:
                rubric = Root(parallel=self.nodes, all_or_nothing=self.all_or_nothing)
                task = TaskFile(format=FORMAT, description=description or UNKNOWN_QUESTION, rubric=rubric)
                written = write_task(task)
                leaves = sum(1 for _ in compile_task(written, f"{task_id}.yaml").sample_rubric().leaves())
                text = written
            else:
                self.report(self.source, "task", "none of its criteria could be imported", left_out=True)
        except ValidationError as error:
            self.report(self.source, "task", _reasons(error), left_out=True)
        except InvalidTask as error:
            self.report(self.source, "task", str(error), left_out=True)
        return ImportedTask(id=task_id, text=text, leaves=leaves, differences=list(self.differences.values()))


def at_least(criterion: str, value: float, low: float, high: float) -> str:
    """Return the claim that a score on a scale reaches a value."""
    return f"On a scale from {low:g} to {high:g}, the answer scores at least {value:g} on this criterion: {criterion}"


def text_check(words: Sequence[str], *, equal: bool = False, any_of: bool = False, negated: bool = False) -> str | None:
    """Return the check that the answer contains (or equals) texts; None if a text cannot be quoted."""
    quotes = [next((each for each in "'\"" if each not in word), "") for word in words]
    if not all(quotes) or not words:
        return None
    literals = [f"{quote}{word}{quote}" for quote, word in zip(quotes, words, strict=True)]
    parts = [f"answer == {each}" if equal else f"contains(answer, {each})" for each in literals]
    condition = (" or " if any_of else " and ").join(parts)
    return f"given(answer) and not ({condition})" if negated else condition


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _reasons(error: ValidationError) -> str:
    reasons = (f"{each['loc'][-1] if each['loc'] else 'node'}: {each['msg']}" for each in error.errors())
    return f"it breaks a rule of the format; shorten or correct it ({'; '.join(dict.fromkeys(reasons))})"


def slug(text: str, default: str) -> str:
    """Return a text as an id of at most 40 characters."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text[:200])[:40].strip("_") or default


def unique(id: str, taken: Container[str]) -> str:
    """Return ``id``, with a number if it is taken. ``taken`` is in lower case: some file systems ignore case."""
    number, found = 1, id
    while found.lower() in taken:
        number += 1
        found = f"{id}_{number}"
    return found
