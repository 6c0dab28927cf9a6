"""Compiler from task files to native judges.

``compile_task`` checks the whole file before anything is judged: names, types, gates, prerequisites and the number of
leaves. The compiled task extracts the fields once and declares the rubric with ``judges.context``, so that scores,
results and tests of tasks are those of native judges.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Final, TypeAlias, TypeVar, cast

from pydantic import BaseModel, Field, create_model

from answers.submission import Answer
from judges.context import ExtractionService, Group, JudgeContext, Leaf
from judges.cpu_bound import MANY_LEAVES
from judges.errors import JudgeBug
from judges.registry import JudgeCoroutine, judge
from judges.yaml_tasks import model
from judges.yaml_tasks.document import Document, InvalidTask, Path, Problem, did_you_mean
from judges.yaml_tasks.expressions import (
    Expression,
    ExpressionError,
    ListOf,
    Record,
    Scalar,
    Scope,
    Type,
    Values,
    Variable,
    empty_value,
    literals,
    parse_condition,
    parse_expression,
    parse_template,
)
from judges.yaml_tasks.model import ExtractedField, TaskFile, read_task
from rubrics.gating import wait_cycle
from rubrics.rubric import ROOT_ID, InvalidNode, Rubric, RubricError, check_penalty, required_penalty
from rubrics.tree import RubricNode, Strategy

_LONG_WORK: Final = 1_000_000
"""Characters of expressions times characters of values: ``find(gauges, 'name', best)`` takes 20 ns for each."""
MAX_LEAVES: Final = 2_000
"""Maximum number of leaves of a rubric, with the maximum number of items in each ``for_each``."""
SAMPLE: Final = ""
"""Name of the value that is present if a rubric is declared with sample values."""
STOP: Final = " stop"
"""Name of the value, an event, that is present if a rubric is declared in a thread. If it is set, the thread ends."""

_Required: TypeAlias = "list[tuple[int, str]]"
"""Prerequisites of a node: the number of levels above its group, and the id from there."""
_Plan: TypeAlias = "Callable[[Values, str], _Planned | None]"
"""Returns the node with this id for the values of an answer; None if it does not apply."""
P = TypeVar("P")

_SCALARS: Final[Mapping[str, tuple[Scalar, Any, Any]]] = {
    # The type in expressions, the type in the schema of the extraction, and the default.
    "text": (Scalar.TEXT, str, ""),
    "url": (Scalar.TEXT, str, ""),
    "date": (Scalar.DATE, str, ""),
    "number": (Scalar.NUMBER, float | None, None),
    "integer": (Scalar.NUMBER, int | None, None),
    "boolean": (Scalar.BOOLEAN, bool | None, None),
}


@dataclass(frozen=True, slots=True)
class _Planned:
    """Node for the values of an answer. ``declare`` adds it below a group, without its children."""

    declare: Callable[[Group], Leaf | Group]
    children: Sequence[_Planned] = ()
    required: _Required = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CompiledTask:
    """Checked task file. ``schema`` is the class of the extracted values, None if the file has no fields."""

    task: TaskFile
    document: Document = field(repr=False)
    schema: type[BaseModel] | None
    constants: tuple[str | float, ...]
    """Texts and numbers that its expressions may compare values with."""
    max_leaves: int
    """Number of leaves with the maximum number of items in each ``for_each``."""
    expression_chars: int
    """Characters of all expressions and templates, each as often as it can be evaluated."""
    unread_fields: tuple[str, ...]
    """Single values that are extracted, and that no claim, check or source names."""
    _declarations: Callable[[Values], list[_Planned]] = field(repr=False)
    _places: Mapping[tuple[str, ...], Path] = field(repr=False)

    @property
    def description(self) -> str:
        """The question, with the date of evaluation if the file gives one."""
        date = self.task.evaluation_date
        return self.task.description if date is None else f"{self.task.description}\n\nDate of evaluation: {date}"

    async def judge(self, context: JudgeContext) -> dict[str, Any]:
        """Extract the fields of the answer, declare the rubric, and return the extracted values.

        Raises:
            ExtractionFailed: nothing could be extracted.
        """
        values: dict[str, Any] = {}
        if self.schema is not None:
            values = (await context.extract(self.schema, self.task.extract)).model_dump(mode="json")
        answer = context.answer.text
        if not self._takes_long(values, answer):
            self.declare(context, values, answer)
            return values
        stop = threading.Event()
        try:
            await asyncio.to_thread(self.declare, context, {**values, STOP: stop}, answer)
        finally:
            stop.set()  # if this task is cancelled, for example at its deadline, the thread is not needed any longer
        return values

    def _takes_long(self, values: Values, answer: str) -> bool:
        """Return whether declaring the rubric may take more than 20 ms of CPU time."""
        read = len(json.dumps(values)) + len(answer) // 4  # values in a list are compared one by one
        return self.max_leaves >= MANY_LEAVES or self.expression_chars * read >= _LONG_WORK

    def declare(self, group: Group, values: Values, answer: str) -> None:
        """Declare the rubric below ``group`` for extracted values. The strategy of ``group`` is not changed."""
        self._declare(group, {**values, "answer": answer, "evaluation_date": self.task.evaluation_date or ""})

    def sample_rubric(self) -> Rubric:
        """Return the rubric with ``{field}`` in the place of each value. Every node applies; nothing is judged."""
        rubric = Rubric("sample", self.description, self.task.rubric.strategy)
        _, types = _record("", self.task.fields)
        values = {name: _sample(kind, name) for name, kind in types.fields.items()}
        context = JudgeContext(
            rubric=rubric,
            task=self.description,
            answer=Answer(name="answer_1.md", text=""),
            reading=cast(ExtractionService, None),  # the rubric is declared without a judge
            settling=cast(Any, None),
        )
        self._declare(context, {**values, "answer": "{answer}", "evaluation_date": "{evaluation_date}", SAMPLE: True})
        return rubric

    def lines(self, node_id: str) -> tuple[int, int] | None:
        """Return the first and last line of the node with this id; None if no node of the file has it."""
        path = self._path(node_id)
        return None if path is None else self.document.lines(path)

    def field_lines(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return the first and last line of every field, by the class of ``schema`` that has it and its name."""
        return {declared: self.document.lines(path) for declared, path in _field_paths(self.task.fields)}

    def problem(self, node_id: str, message: str, *keys: str) -> Problem:
        """Return a problem located at the node with this id, or at keys inside it."""
        return self.document.problem((*(self._path(node_id) or ()), *keys), message)

    def _path(self, node_id: str) -> Path | None:
        return next((path for pattern, path in self._places.items() if _is_at(pattern, node_id.split("/"))), None)

    def _declare(self, group: Group, values: Values) -> None:
        """Declare all nodes, and then set their prerequisites. One that does not apply is left out."""
        declared: dict[str, tuple[Leaf | Group, _Required]] = {}
        pending = [(group, each) for each in reversed(self._declarations(values))]
        while pending:
            parent, planned = pending.pop()
            node = planned.declare(parent)
            declared[node.id] = node, planned.required
            if isinstance(node, Group):
                pending += [(node, each) for each in reversed(planned.children)]
        for id, (node, required) in declared.items():
            steps = id.split("/")
            named = ("/".join((*steps[: len(steps) - 1 - levels], name)) for levels, name in required)
            node.node.requires = tuple(each for each in named if each in declared)


def compile_task(source: str | bytes | Document, name: str = "task.yaml") -> CompiledTask:
    """Parse and check a task file, or a document that was read. ``name`` is the file name in error messages.

    Raises:
        InvalidTask: the file breaks a rule of the format. It has all problems with line and column.
    """
    task, document = read_task(source, name)
    schema, types = _record("Values", task.fields)
    compiler = _Compiler(document)
    scope = {
        **{each: Variable(kind) for each, kind in types.fields.items()},
        "answer": Variable(Scalar.TEXT),
        "evaluation_date": Variable(Scalar.DATE, extracted=False),
    }
    declarations = compiler.root(task.rubric, scope)
    if compiler.problems:
        raise InvalidTask(name, compiler.problems)
    constants = tuple(dict.fromkeys(compiler.constants))
    compiled = CompiledTask(
        task=task,
        document=document,
        schema=schema if task.fields else None,
        constants=constants,
        max_leaves=compiler.leaves,
        expression_chars=compiler.expression_chars,
        unread_fields=tuple(path for path in _single_values(types) if path.split(".")[-1] not in compiler.names_read),
        _declarations=declarations,
        _places=compiler.places,
    )
    _check_tree(compiled, name)
    return compiled


def _single_values(kind: Type, path: str = "") -> Iterator[str]:
    """Yield the paths of the single values, and of the lists of them, in a record."""
    if isinstance(kind, ListOf) and isinstance(kind.item, Record):
        kind = kind.item
    if not isinstance(kind, Record):
        yield path
        return
    for name, each in kind.fields.items():
        yield from _single_values(each, f"{path}.{name}" if path else name)


def yaml_judge(source: bytes | Document, path: str) -> JudgeCoroutine:
    """Return the judge of a task file, as if it were decorated with ``@judge``. The file name is the task id.

    Raises:
        InvalidTask: as ``compile_task``.
    """
    compiled = compile_task(source, path)
    task = compiled.task

    async def yaml_task(context: JudgeContext) -> None:
        await compiled.judge(context)

    yaml_task.__name__ = PurePath(path).stem  # the name of the judge in results
    declared = judge(
        task=yaml_task.__name__,
        description=compiled.description,
        version=task.version,
        strategy=task.rubric.strategy,
        forbidden_sources=[each.model_dump() for each in task.forbidden_sources],
        supplied_evidence=task.supplied_evidence,
    )
    return declared(yaml_task)


def _check_tree(compiled: CompiledTask, name: str) -> None:
    """Declare the sample rubric, and report what the rubric itself rejects: duplicate ids, cycles."""
    try:
        rubric = compiled.sample_rubric()
    except RubricError as error:
        node_id = error.node_id if isinstance(error, InvalidNode) else ""
        raise InvalidTask(name, [compiled.problem(node_id, str(error))]) from error
    cycle = wait_cycle(rubric)
    if cycle:
        first = next((node.id for node in rubric.walk() if node.id in cycle and node.requires), cycle[0])
        start = cycle.index(first)
        members = (*cycle[start:], *cycle[:start])
        lines = [f"{id} (line {span[0]})" if (span := compiled.lines(id)) else id for id in members]
        ring = ", which waits for ".join([*lines[1:], first])
        message = f"cycle: {lines[0]} waits for {ring}; remove one of them from `requires`"
        raise InvalidTask(name, [compiled.problem(first, message, "requires")])


def _is_at(pattern: tuple[str, ...], steps: Sequence[str]) -> bool:
    return len(pattern) == len(steps) and all(one in ("*", other) for one, other in zip(pattern, steps, strict=True))


# Fields


def _record(name: str, fields: Mapping[str, ExtractedField]) -> tuple[type[BaseModel], Record]:
    """Return the class of a record and its type in expressions. ``name`` is the name of the class."""
    types: dict[str, Type] = {}
    members: dict[str, Any] = {}
    for key, each in fields.items():
        types[key], annotation, default = _field(_class_name(name, key), each)
        members[key] = (annotation, Field(default=default, description=_described(each)))
    return create_model(name or "Values", **members), Record(types)


def _class_name(outer: str, key: str) -> str:
    return (outer if outer != "Values" else "") + "".join(part.capitalize() for part in key.split("_"))


def _field_paths(
    fields: Mapping[str, ExtractedField], name: str = "Values", path: Path = ("fields",)
) -> Iterator[tuple[tuple[str, str], Path]]:
    """Yield the class and name of every field, with its place in the file."""
    for key, each in fields.items():
        yield (name, key), (*path, key)
        inner = each.fields if each.list_of is None else each.list_of
        if isinstance(inner, Mapping):
            nested = "fields" if each.list_of is None else "list_of"
            yield from _field_paths(inner, _class_name(name, key), (*path, key, nested))


def _field(title: str, each: ExtractedField) -> tuple[Type, Any, Any]:
    if each.fields is not None:
        inner, kind = _record(title, each.fields)
        return kind, inner, inner()
    if isinstance(each.list_of, str):
        scalar, annotation, _ = _SCALARS[each.list_of]
        return ListOf(scalar), list[annotation], []  # type: ignore[valid-type]
    if each.list_of is not None:
        inner, kind = _record(title, each.list_of)
        return ListOf(kind), list[inner], []  # type: ignore[valid-type]
    return _SCALARS[each.type or "text"]


def _described(each: ExtractedField) -> str | None:
    if each.type == "date":
        return f"{each.description or 'date'} (as YYYY-MM-DD if the day is known)"
    return each.description


def _sample(kind: Type, name: str) -> Any:
    """Return a value of a type with ``{name}`` for every text, and one item in every list."""
    if isinstance(kind, Record):
        return {key: _sample(each, f"{name}.{key}") for key, each in kind.fields.items()}
    return [_sample(kind.item, name)] if isinstance(kind, ListOf) else f"{{{name}}}"


# Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Place of a node during compilation.

    ``path`` is the place in the file, ``steps`` the id with ``*`` for every item, ``scope`` the names that expressions
    may use, ``gated`` whether the parent makes it critical, and ``items`` how many nodes it can become. ``above`` are
    the nodes from the root down to the parent, without their contents.
    """

    path: Path
    steps: tuple[str, ...]
    scope: Scope
    gated: bool = False
    items: int = 1
    above: tuple[RubricNode, ...]


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class _Compiler:
    """Compiles nodes to plans, and collects the problems of the whole file."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.leaves = 0
        self.expression_chars = 0
        self._requires: list[tuple[_Place, list[str], _Required]] = []
        self._invalid_names: set[str] = set()
        self._penalties: list[tuple[str, ...]] = []
        self.problems: list[Problem] = []
        self.constants: list[str | float] = []
        self.names_read: set[str] = set()
        """All words of expressions and templates."""
        self.places: dict[tuple[str, ...], Path] = {}

    def root(self, root: model.Root, scope: Scope) -> Callable[[Values], list[_Planned]]:
        above = RubricNode(id=ROOT_ID, desc="", strategy=root.strategy)
        place = _Place(path=("rubric",), steps=(), scope=scope, gated=root.all_or_nothing, above=(above,))
        bind, inner = self._let(root.let, place)
        plans = self._children(root, inner)
        for node, names, required in self._requires:
            required += [self._required(node, number, name) for number, name in enumerate(names)]

        def declarations(values: Values) -> list[_Planned]:
            bound = bind(values)
            return [each for id, plan in plans if (each := plan(bound, id)) is not None]

        return declarations

    def _children(self, group: model.Root | model.Group, place: _Place) -> list[tuple[str, _Plan]]:
        children = group.children
        if len(children) > 1 and not place.gated and all(child.critical for child in children.values()):
            message = (
                f"every child of this {group.key} group is critical, so one failure gives 0 and no weight counts; make "
                "some non-critical, or write `all_or_nothing: true` and leave `critical` out"
            )
            self._problem((*place.path, group.key), message)
        return [(id, self._node(child, self._below(place, (group.key, id), id))) for id, child in children.items()]

    def _below(self, place: _Place, keys: Path, id: str, **changes: Any) -> _Place:
        return replace(place, path=(*place.path, *keys), steps=(*place.steps, id), **changes)

    def _node(self, node: model.Node, place: _Place) -> _Plan:
        if place.gated and node.critical is False:
            message = "its group is critical or `all_or_nothing`, so every child is critical; remove `critical: false`"
            self._problem((*place.path, "critical"), message)
        critical = place.gated or bool(node.critical)
        applies = self._optional(node.applies_if, place, "applies_if", parse_condition)
        requires = [] if isinstance(node, model.Leaf) and node.check is not None else node.requires
        required: _Required = []
        self._requires.append((place, requires, required))
        self.places[place.steps] = place.path
        place = self._above_children(node, place, critical=critical)
        plan: _Plan
        match node:
            case model.Leaf():
                plan = self._leaf(node, place, critical=critical, weight=node.weight)
            case model.Graded():
                plan = self._graded(node, place, critical=critical)
            case model.ForEach():
                plan = self._for_each(node, place, critical=critical)
            case model.Group():
                plan = self._group(node, place, critical=critical)

        def plan_if_applicable(values: Values, id: str) -> _Planned | None:
            if STOP in values and values[STOP].is_set():
                raise JudgeBug("the rubric is no longer needed")
            if applies is not None and SAMPLE not in values and not applies.evaluate(values):
                return None
            planned = plan(values, id)
            return None if planned is None else replace(planned, required=required)

        return plan_if_applicable

    def _above_children(self, node: model.Node, place: _Place, *, critical: bool) -> _Place:
        """Check that a penalty is not combined with a gate. Return the place with the node above its children."""
        declared = RubricNode(id="/".join(place.steps), desc="", critical=critical, weight=node.weight)
        if isinstance(node, model.Group | model.ForEach):
            declared.strategy = node.strategy if isinstance(node, model.Group) else Strategy(node.order)
        try:
            check_penalty(declared, place.above)
        except InvalidNode as error:
            if all(str(error) != problem.message for problem in self.problems):  # one for all children of a penalty
                self._problem(place.path, str(error))
        if node.weight < 0:
            self._penalties.append(place.steps)
        return replace(place, above=(*place.above, declared))

    def _leaf(
        self,
        leaf: model.Leaf | model.Level,
        place: _Place,
        *,
        critical: bool,
        weight: float,
    ) -> _Plan:
        self._count_leaves(place)
        description = self._optional(leaf.description, place, "description", parse_template)
        if leaf.check is not None:
            check = self._parsed(leaf.check, place, "check", parse_condition)
            if check is not None and not check.extracted:
                message = "the check reads no field, so it has the same result for every answer; compare a field"
                self._problem((*place.path, "check"), message)

            def plan_check(values: Values, id: str) -> _Planned:
                passed = check is not None and check.evaluate(values)
                text = None if description is None else description.render(values)
                written = None if check is None else check.written(values)
                return _Planned(
                    lambda group: group.check(id, passed, text, critical=critical, weight=weight, expression=written)
                )

            return plan_check
        claim = self._parsed(leaf.claim or "", place, "claim", parse_template)
        sources = self._sources(leaf, place)
        if claim is not None and sources is not None and not claim.extracted:
            message = (
                "the claim names no field, so a wrong answer can pass it; put the extracted value into the claim, or "
                "remove `sources` to judge it on the answer"
            )
            self._problem((*place.path, "claim"), message)

        def plan_claim(values: Values, id: str) -> _Planned:
            text = "" if claim is None else claim.render(values)
            urls = None if sources is None else [url for each in sources for url in _texts(each.evaluate(values))]
            lacks_value = claim is not None and claim.lacks_value(values)

            def declare(group: Group) -> Leaf:
                declared = group.verify(id, text, urls, critical=critical, weight=weight, instruction=leaf.instruction)
                node = declared.node
                node.claim = None if node.claim is None else replace(node.claim, lacks_value=lacks_value)
                return declared

            return _Planned(declare)

        return plan_claim

    def _sources(self, leaf: model.Leaf | model.Level, place: _Place) -> list[Expression] | None:
        if leaf.sources is None:
            return None
        listed = [((), leaf.sources)] if isinstance(leaf.sources, str) else list(enumerate(leaf.sources))
        found: list[Expression] = []
        for index, text in listed:
            if re.match(r"https?://", text):
                found.append(Expression(type=Scalar.TEXT, evaluate=lambda _, url=text: url))  # type: ignore[misc]
                continue
            keys: Path = ("sources",) if isinstance(index, tuple) else ("sources", index)
            if text.startswith("www."):
                self._problem((*place.path, *keys), f"an address starts with http; write https://{text}", 0)
                continue
            expression = self._parsed(text, place, keys, parse_expression)
            if expression is None:
                continue
            kind = expression.type.item if isinstance(expression.type, ListOf) else expression.type
            if kind is not Scalar.TEXT:
                self._problem((*place.path, *keys), "sources must be a url field, a list of them, or an address", 0)
            found.append(expression)
        return found

    def _group(self, node: model.Group, place: _Place, *, critical: bool) -> _Plan:
        bind, inner = self._let(node.let, place, gated=critical or node.all_or_nothing)
        plans = self._children(node, inner)
        described = self._described(node, inner)

        def plan(values: Values, id: str) -> _Planned | None:
            bound = bind(values)
            children = [each for child, plan in plans if (each := plan(bound, child)) is not None]
            return _grouped(node, id, described(bound, id), children, node.key, critical=critical)

        return plan

    def _for_each(self, node: model.ForEach, place: _Place, *, critical: bool) -> _Plan:
        gated = critical or node.all_or_nothing
        if node.each.critical and not gated:
            message = "every item is critical, so one failure gives 0; remove `critical`, or use `all_or_nothing: true`"
            self._problem((*place.path, "each", "critical"), message)
        bind, inner = self._let(node.let, place, gated=gated)
        items, kind, most = self._items(node, inner)
        if node.item in inner.scope or node.item == "position":
            self._problem((*place.path, "as"), f"the name {node.item!r} is already used; choose another one")
        extracted = isinstance(node.for_each, str)
        scope = {
            **inner.scope,
            node.item: Variable(kind, extracted=extracted),
            "position": Variable(Scalar.NUMBER, extracted=False),
        }
        below = self._below(inner, ("each",), "*", scope=scope, items=inner.items * most)
        each = self._node(node.each, below)
        described = self._described(node, inner)

        def plan(values: Values, id: str) -> _Planned | None:
            bound = bind(values)
            found = [("1", _sample(kind, node.item))] if SAMPLE in values and extracted else items(bound)
            plans = (
                each({**bound, node.item: item, "position": position}, child)
                for position, (child, item) in enumerate(found, start=1)
            )
            children = [plan for plan in plans if plan is not None]
            return _grouped(node, id, described(bound, id), children, node.order, critical=critical)

        return plan

    def _items(self, node: model.ForEach, place: _Place) -> tuple[Callable[[Values], list[tuple[str, Any]]], Type, int]:
        """Return the items with their ids, the type of an item, and the maximum number of items."""
        if isinstance(node.for_each, str):
            expression = self._parsed(node.for_each, place, "for_each", parse_expression)
            kind: Type = Record({})
            if expression is not None:
                kind = expression.type
                if isinstance(kind, ListOf):
                    kind = kind.item
                else:
                    self._problem((*place.path, "for_each"), "for_each needs a list; see `list_of`", 0)

            def items(values: Values) -> list[tuple[str, Any]]:
                found = [] if expression is None else list(expression.evaluate(values))[: node.max]
                found += [empty_value(kind)] * (node.min - len(found))
                return [(str(number), item) for number, item in enumerate(found, start=1)]

            return items, kind, node.max
        rows = node.for_each
        for key, default in (("min", 1), ("max", model.DEFAULT_ITEMS)):
            if getattr(node, key) != default:
                self._problem((*place.path, key), f"{key} is only for extracted lists; remove it")
        ids = [str(row.get("id", number)) for number, row in enumerate(rows, start=1)]
        for number, row in enumerate(rows):
            path = (*place.path, "for_each", number)
            if not model.NODE_ID.fullmatch(ids[number]) or ids[number] in ids[:number]:
                self._problem((*path, "id"), f"the id {ids[number]!r} is invalid or already used; use another one")
            if {key: type(value) is str for key, value in row.items()} != {
                key: type(value) is str for key, value in rows[0].items()
            }:
                self._problem(path, f"every record needs the keys of the first one: {', '.join(rows[0])}")
        self.constants += [value for row in rows for value in row.values()]
        fixed = list(zip(ids, rows, strict=True))
        types = {key: Scalar.TEXT if isinstance(value, str) else Scalar.NUMBER for key, value in rows[0].items()}
        return lambda _: fixed, Record(types), len(rows)

    def _graded(self, node: model.Graded, place: _Place, *, critical: bool) -> _Plan:
        scores = [level.score for level in node.graded.values()]
        if scores != sorted(set(scores)) or scores[-1] != 1:
            self._problem((*place.path, "graded"), "the scores of the levels must ascend, and the last one must be 1")
        steps = [round(score - before, 9) for before, score in zip([0.0, *scores], scores, strict=False)]
        weights = [1.0] * len(steps) if len(set(steps)) == 1 else steps
        plans: list[tuple[str, _Plan]] = []
        for (id, level), weight in zip(node.graded.items(), weights, strict=True):
            below = self._below(place, ("graded", id), id)
            self.places[below.steps] = below.path
            plans.append((id, self._leaf(level, below, critical=critical, weight=weight)))
        described = self._described(node, place)

        def plan(values: Values, id: str) -> _Planned | None:
            children = [each for child, plan in plans if (each := plan(values, child)) is not None]
            return _grouped(node, id, described(values, id), children, "sequential", critical=critical)

        return plan

    def _let(
        self, let: Mapping[str, str], place: _Place, *, gated: bool | None = None
    ) -> tuple[Callable[[Values], Values], _Place]:
        """Return a function that adds the values of ``let``, and the place with their names."""
        scope = dict(place.scope)
        bound: list[tuple[str, Expression]] = []
        for name, text in let.items():
            path = (*place.path, "let", name)
            self.expression_chars += len(text) * place.items
            self.names_read.update(_NAME.findall(text))
            if name in scope:
                self._problem(path, f"the name {name!r} is already used; choose another one")
                continue
            try:
                expression = parse_expression(text, scope)
                self.constants += literals(text)
            except ExpressionError as error:
                self._problem(path, f"{error}{_later(name, text, let, scope)}", error.offset)
                self._invalid_names.add(name)
                expression = None
            if self._invalid_names.intersection(re.findall(r"\w+", text)):
                self._invalid_names.add(name)
            scope[name] = (
                Variable(Record({}), extracted=True)
                if expression is None
                else Variable(expression.type, extracted=expression.extracted)
            )
            bound += [] if expression is None else [(name, expression)]

        def bind(values: Values) -> Values:
            known = dict(values)
            for name, expression in bound:
                is_sample = SAMPLE in values
                known[name] = _sample(expression.type, name) if is_sample else expression.evaluate(known)
            return known

        return bind, replace(place, scope=scope, gated=place.gated if gated is None else gated)

    def _described(
        self, node: model.Group | model.ForEach | model.Graded, place: _Place
    ) -> Callable[[Values, str], str]:
        template = self._optional(node.description, place, "description", parse_template)
        return lambda values, id: id.replace("_", " ") if template is None else template.render(values)

    def _required(self, place: _Place, number: int, name: str) -> tuple[int, str]:
        """Return which node a name in ``requires`` means: the nearest sibling of the node or of one around it."""
        steps, named = place.steps, name.split("/")
        outer = [(levels, [*steps[: len(steps) - 1 - levels], *named]) for levels in range(len(steps))]
        reachable = (
            each
            for each in outer
            if tuple(each[1]) in self.places or any(_is_at(known, each[1]) for known in self.places)
        )
        levels, found = next(reachable, (0, None))
        message = None
        if found is None:
            siblings = [known[-1] for known in self.places if known[:-1] == steps[:-1] and known != steps]
            message = f"no node {name!r}{did_you_mean(name, siblings)}; name a sibling, or an id from the top"
        elif found == list(steps):
            message = f"{name!r} is this node, so it would wait for itself; remove it"
        elif found == list(steps[: len(found)]):
            message = f"{name!r} contains this node, so they would wait for each other; remove it"
        elif found[: len(steps)] == list(steps):
            message = f"{name!r} is inside this node, so they would wait for each other; remove it"
        elif self._in_penalty(steps) or self._in_penalty(found):
            message = required_penalty("/".join(steps), name)
        if message is not None:
            self._problem((*place.path, "requires", number), message)
        return levels, name

    def _in_penalty(self, steps: Sequence[str]) -> bool:
        return any(_is_at(penalty, steps[: len(penalty)]) for penalty in self._penalties)

    def _count_leaves(self, place: _Place) -> None:
        before = self.leaves
        self.leaves += place.items
        if before <= MAX_LEAVES < self.leaves:
            message = f"the rubric can have more than {MAX_LEAVES} leaves; lower `max` of for_each, or split the task"
            self._problem(place.path, message)

    def _parsed(self, text: str, place: _Place, key: str | Path, parse: Callable[[str, Scope], P]) -> P | None:
        """Return the parsed text; None after a problem."""
        scope = place.scope
        self.expression_chars += len(text) * place.items
        self.names_read.update(_NAME.findall(text))
        if parse is parse_template:  # a whole answer is too long for a claim
            scope = {name: each for name, each in scope.items() if name != "answer"}
        try:
            parsed = parse(text, scope)
            if isinstance(parsed, Expression):
                self.constants += literals(text)
            return parsed
        except ExpressionError as error:
            keys: Path = (key,) if isinstance(key, str) else key
            if not self._invalid_names.intersection(re.findall(r"\w+", text)):  # their problem is already reported
                self._problem((*place.path, *keys), str(error), error.offset)
            return None

    def _optional(self, text: str | None, place: _Place, key: str, parse: Callable[[str, Scope], P]) -> P | None:
        return None if text is None else self._parsed(text, place, key, parse)

    def _problem(self, path: Path, message: str, offset: int | None = None) -> None:
        self.problems.append(self._document.problem(path, message, offset=offset))


def _grouped(
    node: model.Group | model.ForEach | model.Graded,
    id: str,
    description: str,
    children: list[_Planned],
    strategy: str,
    *,
    critical: bool,
) -> _Planned | None:
    """Return a group; None if none of its children applies."""

    def declare(group: Group) -> Group:
        add = group.sequential if strategy == "sequential" else group.parallel
        return add(id, description, critical=critical, weight=node.weight)

    return _Planned(declare, children) if children else None


def _later(name: str, text: str, let: Mapping[str, str], known: Scope) -> str:
    """Return the hint for an invalid expression of ``let`` that uses names which ``let`` defines below it."""
    later = [each for each in let if each not in known and re.search(rf"\b{each}\b", text)]
    if not later:
        return ""
    reached = list(later)
    for each in reached:
        if each == name:
            return f"; cycle: {later[0]!r} is defined by {name!r}; remove one of them"
        reached += [more for more in let if more not in reached and re.search(rf"\b{more}\b", let[each])]
    return f"; {later[0]!r} is defined below; move it above {name!r}"


def _texts(value: Any) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
