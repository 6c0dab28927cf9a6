"""Format of task files, version 1, as pydantic models. ``compiler`` checks the texts of expressions and templates.

The outline of a rubric is read from the text of a task file, which may be invalid.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from judges.forbidden_sources import ForbiddenSource
from judges.yaml_tasks.document import Document, InvalidTask, Path, Problem, did_you_mean, read_document
from rubrics.tree import Strategy

FORMAT: Final = 1
"""Version of the format. A file names it as ``format: 1``."""
SCHEMA_ID: Final = f"urn:assay:task-file:{FORMAT}"
DEFAULT_PROMPT: Final = (
    "Read out of the answer the values of all fields, as the answer states them, and the pages that it cites for each."
)
MAX_ITEMS: Final = 100
DEFAULT_ITEMS: Final = 20


def _not_reserved(name: str) -> str:
    if hasattr(BaseModel, name) or name in RESERVED or name.startswith(("model_validate", "model_dump")):
        raise PydanticCustomError("reserved", "'{name}' is reserved; use another name", {"name": name})
    return name


def _date(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise PydanticCustomError("date", "not a date; write it as 2025-08-16") from None


def _not_zero(weight: float) -> float:
    if weight == 0:
        raise PydanticCustomError("weight", "a weight of 0 has no effect; use another number, or remove the node")
    return weight


RESERVED: Final = frozenset({"and", "or", "not", "in", "true", "false", "answer", "position", "evaluation_date"})
Name: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=60), AfterValidator(_not_reserved)
]
NODE_ID: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
NodeId: TypeAlias = Annotated[str, StringConstraints(pattern=NODE_ID.pattern, max_length=60)]
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]
Line: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"\S")]
Code: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1_000, pattern=r"\S")]
ScalarName: TypeAlias = Literal["text", "number", "integer", "boolean", "date", "url"]


class _Part(BaseModel):
    """Part of a file: unknown keys are errors, and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def _from_description(value: Any) -> Any:
    """Return the long form of a field that is written as its description."""
    if value is None:
        return {}
    return {"description": value} if isinstance(value, str) else value


def _kind_of_list(value: Any) -> str | None:
    return "<type>" if isinstance(value, str) else "<fields>"


class ExtractedField(_Part):
    """Value to extract from the answer: a single value, a record with ``fields``, or a list."""

    type: ScalarName | None = Field(default=None, description="Type of a single value (default: text).")
    description: Line | None = Field(default=None, description="What the value is, for the model that extracts it.")
    fields: Fields | None = Field(default=None, min_length=1, description="Fields of a record.")
    list_of: (
        Annotated[
            Annotated[ScalarName, Tag("<type>")] | Annotated[Fields, Field(min_length=1), Tag("<fields>")],
            Discriminator(_kind_of_list),
        ]
        | None
    ) = Field(default=None, description="Type of the items of a list, or the fields of its records.")

    @model_validator(mode="after")
    def _one_shape(self) -> ExtractedField:
        if sum(each is not None for each in (self.type, self.fields, self.list_of)) > 1:
            raise PydanticCustomError("shape", "use only one of type, fields and list_of")
        return self

    @model_serializer(mode="wrap")
    def _short_form(self, handler: SerializerFunctionWrapHandler) -> Any:
        """Return the description alone if the field has nothing else."""
        written = handler(self)
        return written.get("description") if written.keys() <= {"description"} else written


FieldValue: TypeAlias = Annotated[
    ExtractedField, BeforeValidator(_from_description, json_schema_input_type=Line | ExtractedField | None)
]
Fields: TypeAlias = dict[Name, FieldValue]


class _Node(_Part):
    """Keys of every node of the rubric."""

    critical: bool | None = Field(
        default=None,
        description="A gate: unless it passes, its group counts 0. Children of a critical group are critical.",
    )
    weight: Annotated[float, AfterValidator(_not_zero), Field(json_schema_extra={"not": {"const": 0}})] = Field(
        default=1.0,
        description="Weight in the mean of the non-critical siblings (default: 1). Negative: a penalty, which is "
        "subtracted if it is met.",
    )
    applies_if: Code | None = Field(
        default=None, description="Expression. If it is false, the node does not apply and is left out."
    )


class _Verifiable(_Part):
    """A claim for the model, or a check by code."""

    claim: Line | None = Field(default=None, description="Template of the claim: '{person.name} was born in {town}'.")
    sources: Code | list[Code] | None = Field(
        default=None,
        description="Field with the cited pages (or a URL), one of which must support the claim. "
        "Without it, the claim is judged on the answer alone.",
    )
    instruction: Line | None = Field(default=None, description="Additional instruction for the model.")
    check: Code | None = Field(
        default=None, description="Expression that decides the leaf: given(name), year == '1931'."
    )
    description: Line | None = Field(default=None, description="What a check tests (template). A claim needs none.")

    @model_validator(mode="after")
    def _claim_or_check(self) -> Any:
        if (self.claim is None) == (self.check is None):
            raise PydanticCustomError("leaf", "use either claim or check")
        if self.claim is not None and self.description is not None:
            raise PydanticCustomError("leaf", "a claim has no description; its text is shown instead")
        if self.check is not None and (self.sources is not None or self.instruction is not None):
            raise PydanticCustomError("leaf", "sources and instruction belong to a claim; a check has neither")
        return self


class Leaf(_Verifiable, _Node):
    """Leaf of the rubric: a claim or a check."""

    kind: ClassVar = "<leaf>"
    requires: list[Code] = Field(default=[], description="Ids of other nodes that must not have failed (only claims).")

    @model_validator(mode="after")
    def _keys_of_kind(self) -> Leaf:
        if self.check is not None and self.requires:
            raise PydanticCustomError(
                "leaf", "requires is only for claims and groups; put the check into its own group"
            )
        return self


class Level(_Verifiable):
    """Level of a graded node: the score that it and all levels before it are worth."""

    score: float = Field(gt=0, le=1, description="Score if this level and all levels before it pass.")


class _Inner(_Node):
    description: Line | None = Field(default=None, description="What the children have in common (template).")
    requires: list[Code] = Field(default=[], description="Ids of other nodes that must not have failed.")


class Graded(_Inner):
    """Partial credit: levels in ascending order. The score is that of the last level that passes without a gap."""

    kind: ClassVar = "<graded>"
    graded: dict[NodeId, Level] = Field(min_length=2, description="Levels by id, from the lowest score to 1.")


class _Branch(_Part):
    all_or_nothing: bool = Field(
        default=False, description="Make every child critical: the group counts 1 if all of them pass, else 0."
    )
    let: dict[Name, Code] = Field(
        default={}, description="Names for expressions, for the children: find(list, 'f', x)."
    )


class _Children(_Branch):
    parallel: Children | None = Field(default=None, min_length=1, description="Children that are independent.")
    sequential: Children | None = Field(
        default=None, min_length=1, description="Steps: after the first one that does not pass, the rest score 0."
    )

    @model_validator(mode="after")
    def _one_order(self) -> Any:
        if (self.parallel is None) == (self.sequential is None):
            raise PydanticCustomError("order", "use either parallel or sequential, with the children by id")
        return self

    @property
    def key(self) -> str:
        """The key that contains the children."""
        return "sequential" if self.parallel is None else "parallel"

    @property
    def children(self) -> Mapping[str, Node]:
        return (self.sequential if self.parallel is None else self.parallel) or {}

    @property
    def strategy(self) -> Strategy:
        return Strategy(self.key)


class Group(_Children, _Inner):
    """Group of nodes."""

    kind: ClassVar = "<group>"


class ForEach(_Branch, _Inner):
    """Group with one child per item of a list: an extracted list, or values that the file lists."""

    model_config = ConfigDict(populate_by_name=True)
    kind: ClassVar = "<for_each>"
    for_each: Code | list[dict[Name, str | int | float]] = Field(
        description="An extracted list, or records such as {id: k4, name: Kestrel 4}. Their `id` is the node id."
    )
    item: Name = Field(default="item", alias="as", description="Name of the current item (default: item).")
    min: int = Field(
        default=1, ge=0, le=MAX_ITEMS, description="If the answer has fewer items, empty ones are added (default: 1)."
    )
    max: int = Field(
        default=DEFAULT_ITEMS, ge=1, le=MAX_ITEMS, description=f"Further items are ignored (default: {DEFAULT_ITEMS})."
    )
    order: Literal["parallel", "sequential"] = Field(default="parallel", description="How the items are combined.")
    each: Node = Field(description="Node for one item. `position` is the number of the item, from 1.")

    @model_validator(mode="after")
    def _bounds(self) -> ForEach:
        if self.min > self.max:
            raise PydanticCustomError("bounds", "min is above max; lower min or raise max")
        if self.for_each == []:
            raise PydanticCustomError("bounds", "for_each is an empty list; name at least one record")
        return self


_NODE_KEYS: Final = {
    "claim": "<leaf>",
    "check": "<leaf>",
    "parallel": "<group>",
    "sequential": "<group>",
    "for_each": "<for_each>",
    "graded": "<graded>",
}


def _kind_of_node(value: Any) -> str | None:
    if isinstance(value, _Part):
        return str(getattr(value, "kind", ""))
    kinds = {kind for key, kind in _NODE_KEYS.items() if key in value} if isinstance(value, Mapping) else set()
    return kinds.pop() if len(kinds) == 1 else None


Node: TypeAlias = Annotated[
    Annotated[Leaf, Tag("<leaf>")]
    | Annotated[Group, Tag("<group>")]
    | Annotated[ForEach, Tag("<for_each>")]
    | Annotated[Graded, Tag("<graded>")],
    Discriminator(_kind_of_node),
]
Children: TypeAlias = dict[NodeId, Node]


class Root(_Children):
    """Top of the rubric."""


class TaskFile(_Part):
    """Content of a task file. The name of the file is the id of the task."""

    format: Literal[1] = Field(description="Version of the format.")
    version: Line = Field(default="1", description="Version of the task, for your own use (default: '1').")
    description: Text = Field(description="The question that the agent was given.")
    evaluation_date: Annotated[str, AfterValidator(_date)] | None = Field(
        default=None, description="Date for which answers are judged, as 2025-08-16. It is part of every model request."
    )
    extract: Text = Field(default=DEFAULT_PROMPT, description="Instruction for the extraction of the fields.")
    fields: Fields = Field(default={}, description="Values to extract from the answer.")
    forbidden_sources: list[ForbiddenSource] = Field(
        default=[], max_length=1_000, description="Sources that do not count: hosts, pages below a URL, and DOIs."
    )
    supplied_evidence: Literal["captured", "fallback", "supplied"] | None = Field(
        default=None,
        description="The most that answers may rest on pages that the agent supplied: not at all (captured), where a "
        "capture is not evidence (fallback), or always (supplied). Default: as the submission says.",
    )
    rubric: Root = Field(description="What must hold, as a tree.")


for _model in (ExtractedField, Leaf, Graded, Group, ForEach, Root, TaskFile):
    _model.model_rebuild()

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "<leaf>": Leaf,
    "<group>": Group,
    "<for_each>": ForEach,
    "<graded>": Graded,
}
_NESTED: Final[Mapping[str, type[BaseModel]]] = {
    "graded": Level,
    "fields": ExtractedField,
    "list_of": ExtractedField,
    "forbidden_sources": ForbiddenSource,
    "rubric": Root,
}


def read_task(source: str | bytes | Document, name: str) -> tuple[TaskFile, Document]:
    """Parse a task file, or a document that was read.

    Its expressions and templates are not checked; see ``compiler.compile_task``.

    Raises:
        InvalidTask: it is not YAML or does not have the form of a task. ``name`` is the file name in the message.
    """
    document = source if isinstance(source, Document) else read_document(source, name)
    if not isinstance(document.value, dict):
        message = f"the file is {_shown(document.value)}; a task is a mapping that starts with `format: {FORMAT}`"
        raise InvalidTask(name, [document.problem((), message)])
    try:
        return TaskFile.model_validate(document.value), document
    except ValidationError as error:
        problems: dict[tuple[str | int, ...], Problem] = {}
        for each in error.errors(include_url=False):
            path, model = _located(document.value, each["loc"])
            if each["type"] == "union_tag_not_found":
                path = (*path, *_misspelt_key(each["input"]))
            problems.setdefault(path, document.problem(path, _message(each, path, model)))
        raise InvalidTask(name, list(problems.values())) from None


def is_task_file(source: bytes) -> bool:
    """Return whether the content of a file has the form of a task in YAML."""
    try:
        read_task(source, "")
    except InvalidTask:
        return False
    return True


def task_schema() -> dict[str, Any]:
    """Return the JSON Schema of the format."""
    schema = TypeAdapter(TaskFile).json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **schema,
        "title": "assay task",
    }


def _located(value: Any, loc: tuple[Any, ...]) -> tuple[tuple[str | int, ...], type[BaseModel]]:
    """Return the path in the file of an error of pydantic, and the model in which it occurred."""
    path: list[str | int] = []
    model: type[BaseModel] = TaskFile
    for part in loc:
        if part in _MODELS:
            model = _MODELS[str(part)]
        elif part in _NESTED and isinstance(value, dict) and part in value:
            model = _NESTED[str(part)]
        if (isinstance(value, dict) and part in value) or (isinstance(value, list) and isinstance(part, int)):
            path.append(part)
            value = value[part]
        elif part == loc[-1] and isinstance(value, dict) and not re.match(r"[<\[]", str(part)):
            path.append(part)  # a missing key
    return tuple(path), model


def _message(error: Any, path: tuple[str | int, ...], model: type[BaseModel]) -> str:
    """Return what is wrong and what would be right."""
    key = str(path[-1]) if path else "file"
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        return _unknown_key(key, _keys(model), f"allowed are {', '.join(_keys(model))}")
    if kind == "missing":
        return f"the key {key!r} is missing; add it"
    if kind == "union_tag_not_found":
        return _node_message(key, value)
    if error["loc"] and error["loc"][-1] == "[key]":
        return _name_message(key, error)
    if kind == "literal_error":
        if path == ("format",):
            return f"format {value!r} is not supported; write `format: {FORMAT}`"
        allowed = error["ctx"]["expected"]
        return f"{key} is {_shown(value)}{did_you_mean(str(value), re.findall(r'[a-z]+', allowed))}; use {allowed}"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return f"{key} must be text; put {value!r} in quotes"
    expected = _EXPECTED.get(kind)
    if expected is not None:
        return f"{key} is {_shown(value)}; {expected.format(**error.get('ctx', {}))}"
    return f"{key}: {_line(error['msg'])}"


_EXPECTED: Final[Mapping[str, str]] = {
    "bool_type": "write true or false",
    "dict_type": "write a mapping, with one `name: value` per line",
    "model_type": "write a mapping, with one `name: value` per line",
    "list_type": "write a list, such as [a, b]",
    "string_type": "write text, in quotes if it starts with a brace or bracket",
    "string_too_short": "write text",
    "string_pattern_mismatch": "write text",
    "string_too_long": "use at most {max_length} characters",
    "float_type": "use a number",
    "finite_number": "use a finite number",
    "int_type": "use a whole number",
    "int_from_float": "use a whole number",
    "greater_than": "use a number above {gt:g}",
    "greater_than_equal": "use a number of at least {ge}",
    "less_than_equal": "use a number of at most {le:g}",
    "too_short": "write at least {min_length} entries",
}
"""What would be right, by the type of an error of pydantic."""


def _shown(value: Any) -> str:
    """Return an invalid value for a message."""
    if isinstance(value, dict | list):
        return f"{'an empty' if not value else 'a'} {'mapping' if isinstance(value, dict) else 'list'}"
    if value is None or value == "":
        return "empty"
    if isinstance(value, str):
        return repr(value) if len(value) < 40 else f"a text of {len(value)} characters"
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _unknown_key(key: str, known: Iterable[str], allowed: str) -> str:
    return f"unknown key {key!r}{did_you_mean(key, known)}; {allowed}"


def _name_message(key: str, error: Any) -> str:
    if error["type"] == "reserved":
        return _line(error["msg"])
    is_id = error.get("ctx", {}).get("pattern") == NODE_ID.pattern
    if error["type"] == "string_pattern_mismatch":
        letters = (
            "letters (a to z), digits and . _ -" if is_id else "letters (a to z), digits and _, starting with a letter"
        )
        return f"{key!r} is not a valid name; use {letters}"
    return f"{_shown(key)} is not a valid name; use 1 to 60 characters"


def _misspelt_key(node: Any) -> tuple[str, ...]:
    """Return the key of an invalid node that no kind of node has; nothing if there is none."""
    known = {key for kind in _MODELS.values() for key in _keys(kind)}
    unknown = [key for key in node if key not in known] if isinstance(node, dict) else []
    content = any(key in _NODE_KEYS for key in node) if unknown else False
    return () if content else tuple(sorted(unknown, key=lambda key: not did_you_mean(key, _NODE_KEYS))[:1])


def _node_message(key: str, value: Any) -> str:
    names = "claim, check, parallel, sequential, for_each or graded"
    if misspelt := _misspelt_key(value):
        return _unknown_key(misspelt[0], _NODE_KEYS, f"a node has exactly one of {names}")
    found = [name for name in _NODE_KEYS if isinstance(value, dict) and name in value]
    if not isinstance(value, dict):
        return f"{key!r} is not a node; write {{claim: ...}} or another mapping with one of {names}"
    return f"{key!r} has {' and '.join(found) or 'no content'}; a node has exactly one of {names}"


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _line(message: str) -> str:
    text = message.splitlines()[0]
    return text[:1].lower() + text[1:]


Value: TypeAlias = str | float | bool

_KINDS: Final = ("claim", "check", "parallel", "sequential", "for_each", "graded")
_GROUPS: Final = ("parallel", "sequential", "graded")
_TEXTS: Final = ("claim", "check", "description", "instruction")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNode:
    """Node of the rubric in a file. ``values`` has the default of a key that the file leaves out.

    ``gated``: the group makes the node critical.
    """

    path: str
    id: str
    kind: str
    depth: int
    line: int
    values: Mapping[str, Value]
    sources: str
    gated: bool
    children: int


def task_nodes(document: Document) -> list[TaskNode]:
    """Return the nodes of the rubric, each before its children. Other values are ignored."""
    rubric = document.value.get("rubric") if isinstance(document.value, dict) else None
    if not isinstance(rubric, dict):
        return []
    return list(_children(document, ("rubric",), rubric, depth=0, gated=rubric.get("all_or_nothing") is True))


def _children(
    document: Document, path: Path, group: Mapping[str, Any], *, depth: int, gated: bool
) -> Iterator[TaskNode]:
    for key in _GROUPS:
        nodes = group.get(key)
        for id, node in nodes.items() if isinstance(nodes, dict) else ():
            yield from _node(document, (*path, key, id), str(id), node, depth=depth, gated=gated, level=key == "graded")
    if isinstance(each := group.get("each"), dict):
        yield from _node(document, (*path, "each"), "each", each, depth=depth, gated=gated, level=False)


def _node(
    document: Document, path: Path, id: str, node: Any, *, depth: int, gated: bool, level: bool
) -> Iterator[TaskNode]:
    kind = next((key for key in _KINDS if isinstance(node, dict) and key in node), None)
    if kind is None or "/" in id:
        return
    values: dict[str, Value] = {key: _plain(node[key]) for key in _TEXTS if key in node}
    if level:
        values["score"] = _plain(node.get("score"))
    else:
        values |= {"weight": _plain(node.get("weight", 1)), "critical": _plain(node.get("critical", False))}
    if kind == "for_each" and not isinstance(node["for_each"], list):
        values |= {"min": _plain(node.get("min", 1)), "max": _plain(node.get("max", DEFAULT_ITEMS))}
    all_critical = gated or node.get("critical") is True or node.get("all_or_nothing") is True
    below = list(_children(document, path, node, depth=depth + 1, gated=all_critical))
    sources = node.get("sources", node["for_each"] if kind == "for_each" else "")
    yield TaskNode(
        path="/".join(map(str, path)),
        id=id,
        kind=kind,
        depth=depth,
        line=document.lines(path)[0],
        values=values,
        sources=sources if isinstance(sources, str) else json.dumps(sources, ensure_ascii=False),
        gated=gated,
        children=sum(each.depth == depth + 1 for each in below),
    )
    yield from below


def _plain(value: Any) -> Value:
    return value if isinstance(value, str | float | int) else ""
