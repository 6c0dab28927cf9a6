"""Task file in a field test: its declarations of leaves and fields, its exemptions, and the model client of its runs.

An exemption is a comment with a reason, on a line of the declaration or on the line above it:
``# untested: the ministry's own page is the reference``.

The model client replays recorded extractions, with edits, and confirms every claim. It allows hundreds of runs of a
judge in seconds. Two runs differ only by the edit, so a difference between their leaves shows how the judge uses the
edited value.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from judges.analysis.task_tests.leaves import ObservedLeaf
from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.json_schema import JSONSchema, ReplyType, as_reply, json_schema_of, options
from judges.llm.observed import RequestObserver
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from judges.loader import is_script
from judges.source_code import YAML_SUFFIX
from judges.yaml_tasks.compiler import compile_task
from rubrics.verdict import Usage

_EXEMPTION = re.compile(r"#\s*untested\b:?\s*(?P<reason>.*)", re.IGNORECASE)
_DECLARING = ("verify", "check", "add_leaf", "add_custom_node", "verify_by_url", "verify_by_urls", "simple_verify")
_GROUPING = ("parallel", "sequential", "add_parallel", "add_sequential")
_MAX_CONSTANT_CHARS = 200
_REPEATED = re.compile(r"_\d+$")
"""Suffix that the toolkit appends to the id of a node if it is already in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange:
    """Range of lines of the task file, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    place: SourceRange
    patterns: tuple[re.Pattern[str], ...]
    declares: bool
    groups: tuple[re.Pattern[str], ...] = ()
    """Possible ids of the group on which the method is called."""


def judge_file(source: bytes, suffix: str) -> JudgeFile:
    """Parse the source of a task file, Python or YAML."""
    return TaskFileSource(source) if suffix == YAML_SUFFIX else JudgeFile(source)


class JudgeFile:
    """Parsed source of a Python task file."""

    def __init__(self, source: bytes) -> None:
        tree = ast.parse(source)
        self._calls = list(_calls(tree))
        self._fields = dict(_fields(tree))
        self._exempt = dict(_exemptions(source))
        self.constants: tuple[Any, ...] = tuple(dict.fromkeys(_constants(tree)))
        """Strings and numbers that its checks may compare values with."""
        self.is_script = is_script(tree)
        """Whether it is a public script."""

    def leaf(self, leaf: ObservedLeaf) -> SourceRange | None:
        """Return the call that declares a leaf, found by id and texts; None if it is ambiguous."""
        parent, _, own = leaf.key.rpartition("/")
        if self.is_script:
            own = _REPEATED.sub("", own)
        group = parent.rpartition("/")[2]
        texts = [text for text in (leaf.claim, leaf.desc, own, leaf.key) if text]
        scored = [
            (
                4 * any(pattern.fullmatch(own) for pattern in call.patterns)
                + 2 * _matches(call, texts)
                + any(pattern.fullmatch(group) for pattern in call.groups),
                call,
            )
            for call in self._calls
            if call.declares
        ]
        best = max((score for score, _ in scored), default=0)
        places = [call.place for score, call in scored if score == best]
        return places[0] if best and len(places) == 1 else None

    def field(self, declared: tuple[str, str]) -> SourceRange | None:
        """Return the location of a field's declaration."""
        return self._fields.get(declared)

    def exemption(self, place: SourceRange | None) -> str | None:
        """Return the reason for the exemption at a location; "" if it has no reason, None if there is no exemption."""
        if place is None:
            return None
        for line in range(place.first - 1, place.last + 1):
            reason, alone = self._exempt.get(line, (None, False))
            if reason is not None and (alone or line >= place.first):
                return reason
        return None


class TaskFileSource(JudgeFile):
    """Parsed source of a YAML task file. Its comments start with ``#``, too."""

    def __init__(self, source: bytes) -> None:
        self._compiled = compile_task(source)
        self._field_lines = self._compiled.field_lines()
        self._exempt = dict(_yaml_exemptions(self._compiled.document.text))
        self.constants = self._compiled.constants
        self.is_script = False

    def leaf(self, leaf: ObservedLeaf) -> SourceRange | None:
        return _range(self._compiled.lines(leaf.key))

    def field(self, declared: tuple[str, str]) -> SourceRange | None:
        return _range(self._field_lines.get(declared))


def _range(lines: tuple[int, int] | None) -> SourceRange | None:
    return None if lines is None else SourceRange(first=lines[0], last=lines[1])


def _yaml_exemptions(text: str) -> Iterator[tuple[int, tuple[str, bool]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        found = re.search(r"(?:^|(?<=\s))#.*", line)
        match = found and _EXEMPTION.match(found[0])
        if found and match:
            yield number, (match["reason"].strip(), not line[: found.start()].strip())


def _matches(call: _Call, texts: list[str]) -> int:
    return sum(any(pattern.fullmatch(text) for pattern in call.patterns) for text in texts)


def _calls(tree: ast.Module) -> Iterator[_Call]:
    groups = _groups(tree)
    for function, node in _by_function(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        on = getattr(node.func.value, "id", "") if isinstance(node.func, ast.Attribute) else ""
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        patterns = tuple(pattern for each in arguments if (pattern := _pattern(each)) is not None)
        place = SourceRange(first=node.lineno, last=node.end_lineno or node.lineno)
        yield _Call(
            place=place, patterns=patterns, declares=name in _DECLARING, groups=tuple(groups.get((function, on), ()))
        )


def _by_function(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the name of its top-level function."""
    for top in tree.body:
        function = top.name if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef) else ""
        for node in ast.walk(top):
            yield function, node


def _groups(tree: ast.Module) -> dict[tuple[str, str], list[re.Pattern[str]]]:
    """Return the possible group ids of each variable of a function: assigned to it, or passed as an argument."""
    functions = {top.name: top for top in tree.body if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef)}
    patterns: dict[tuple[str, str], list[re.Pattern[str]]] = {}
    for function, node in _by_function(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            named_values = [((function, to.id), value) for to, value in pairs if isinstance(to, ast.Name)]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in functions:
            called = functions[node.func.id]  # type: ignore[attr-defined]
            named_values = [
                ((called.name, to.arg), value) for to, value in zip(called.args.args, node.args, strict=False)
            ]
        else:
            continue
        for variable, value in named_values:
            if isinstance(value, ast.Call) and getattr(value.func, "attr", "") in _GROUPING:
                ids = [*value.args[:1], *(keyword.value for keyword in value.keywords if keyword.arg == "id")]
                patterns.setdefault(variable, []).extend(pattern for each in ids if (pattern := _pattern(each)))
    return patterns


def _pattern(node: ast.expr) -> re.Pattern[str] | None:
    """Return a pattern for the values of a string expression; None if it contains no constant text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        return re.compile(re.escape(node.value))
    if isinstance(node, ast.JoinedStr):
        parts = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in node.values]
        return re.compile("".join(parts), re.DOTALL) if any(part != ".*" for part in parts) else None
    return None


def _fields(tree: ast.Module) -> Iterator[tuple[tuple[str, str], SourceRange]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    place = SourceRange(first=line.lineno, last=line.end_lineno or line.lineno)
                    yield (node.name, line.target.id), place


def _exemptions(source: bytes) -> Iterator[tuple[int, tuple[str, bool]]]:
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        match = _EXEMPTION.match(token.string) if token.type == tokenize.COMMENT else None
        if match:
            yield token.start[0], (match["reason"].strip(), not token.line[: token.start[1]].strip())


def _constants(tree: ast.Module) -> Iterator[Any]:
    """Yield strings and numbers, without arguments of calls (ids, descriptions, prompts) and docstrings."""
    passed = {id(each) for node in ast.walk(tree) if isinstance(node, ast.Call) for each in _texts_passed(node)}
    passed |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    passed |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if (
            id(node) not in passed
            and isinstance(node, ast.Constant)
            and isinstance(node.value, str | int | float)
            and not isinstance(node.value, bool)
            and len(str(node.value)) <= _MAX_CONSTANT_CHARS
        ):
            yield node.value


def _texts_passed(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call; none for string methods such as ``value.startswith("18")``."""
    if isinstance(call.func, ast.Attribute) and hasattr(str, call.func.attr):
        return []
    return [*call.args, *(keyword.value for keyword in call.keywords)]


MODEL = "replay"
_NOT_IN_KEY = ("answer",)
"""Parts of a request that are not part of the key, because edits change them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Recorded extraction. ``value`` is the reply as JSON by field name, ``schema`` the class of the reply."""

    key: str
    schema: type[BaseModel]
    value: Any


def request_key(request: LLMRequest) -> str:
    """Return the key of an extraction: a hash of the schema's name and all parts except the text of the answer."""
    parts = {name: text for name, text in request.parts.items() if name not in _NOT_IN_KEY}
    return hashlib.sha256(json.dumps([request.schema_name, parts], sort_keys=True).encode()).hexdigest()


class ExtractionRecorder(RequestObserver):
    """Request observer that records the text of the replies to extractions, by ``request_key``."""

    def __init__(self, replies: dict[str, str]) -> None:
        self._replies = replies

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        if request.purpose == "extract":
            self._replies[request_key(request)] = reply.text


class Recordings:
    """Extractions of the unedited run, in order. ``replies``: recorded replies of a model, as JSON text by key."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        self._replies = replies
        self.extracted: dict[str, Extracted] = {}

    async def read(self, request: LLMRequest, client: LLMClient) -> tuple[Any, bool]:
        """Return the values of an extraction, and whether it was new. ``client`` extracts what was not recorded."""
        key = request_key(request)
        known = self.extracted.get(key)
        if known is not None:
            return known.value, False
        return await self._ask(request, client, key), True

    def keep(self, request: LLMRequest, value: Any) -> None:
        """Record an extraction of the unedited run."""
        key = request_key(request)
        if request.reply_class is not None:
            self.extracted[key] = Extracted(key=key, schema=request.reply_class, value=value)

    async def _ask(self, request: LLMRequest, client: LLMClient, key: str) -> Any:
        text = self._replies.get(key)
        if text is None:
            parsed = (await client.complete(request)).parsed
        else:
            raw = RawReply(text=text, finish=FinishReason.STOP, model=MODEL)
            parsed = read_reply(raw, request.schema, purpose="extract")
        if parsed is None:
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, "the extraction has no values")
        return parsed.model_dump(mode="json")


class ConfirmingClient:
    """``LLMClient`` that confirms every claim and sends nothing. Subclasses supply the values of extractions."""

    has_refused = False
    """Whether the judge sent a request that is neither an extraction nor a claim."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        reply_class = request.reply_class
        if reply_class is None or request.purpose == "free":
            self.has_refused = True
            raise LLMOutputUnusable(UnusableKind.REFUSED, "without a model, only claims and extractions are supported")
        if request.purpose == "verify":
            values: Any = {"result": True, "reasoning": "Confirmed without asking a model."}
        else:
            values = await self.values(request)
        try:
            text, parsed = as_reply(values, reply_class)
        except ValidationError as error:
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"no values fit {reply_class.__name__}") from error
        return LLMReply(text=text, parsed=parsed, model=MODEL, usage=Usage(calls=1))

    async def values(self, request: LLMRequest) -> Any:
        """Return the values of an extraction."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Do nothing."""


class ReplayClient(ConfirmingClient):
    """Client of one run. ``edited``: edited values by key; None for the unedited run, which is recorded."""

    def __init__(self, recordings: Recordings, edited: Mapping[str, Any] | None) -> None:
        self._client: LLMClient = self
        self._recordings = recordings
        self._edited = edited
        self.new_extractions = 0
        """Number of extractions that the unedited run did not request: the edited value is part of their prompt."""

    def using(self, client: LLMClient) -> ReplayClient:
        """Return this client. ``client`` stays open, and extracts what was not recorded."""
        self._client = client
        return self

    async def values(self, request: LLMRequest) -> Any:
        value, is_new = await self._recordings.read(request, self._client)
        if self._edited is None:
            self._recordings.keep(request, value)
            return value
        self.new_extractions += is_new
        return self._edited.get(request_key(request), value)


_ENTRIES = 3
_MAX_DEPTH = 6
PAGE = "https://made-up.invalid/page"


def generate_values(schema: ReplyType) -> Any:
    """Return JSON values that fill every field. Texts name their field, lists have three entries that differ."""
    described = json_schema_of(schema)
    return _value(described, described, "value", "", 0)


def _value(described: JSONSchema, root: JSONSchema, name: str, place: str, depth: int) -> Any:
    """Return a value for one field. ``place`` numbers the list entries around it, such as " 2" or " 2.1"."""
    described = next(iter(options(described, root)), {"type": "null"})
    if "const" in described or "enum" in described:
        return described.get("const", (described.get("enum") or [None])[0])
    match described.get("type"):
        case "object" if depth < _MAX_DEPTH:
            fields = described.get("properties", {})
            return {each: _value(inner, root, each, place, depth + 1) for each, inner in fields.items()}
        case "array" if depth + 1 < _MAX_DEPTH:  # + 1 because entries may be objects
            entry, before = described.get("items", {}), f"{place}." if place else " "
            return [_value(entry, root, name, f"{before}{n}", depth + 1) for n in range(1, _ENTRIES + 1)]
        case "integer" | "number":
            return _number(described, place)
        case "boolean":
            return True
        case "string" if any(word in name.casefold() for word in ("url", "link", "source", "cit")):
            return f"{PAGE}/{name}{place}".replace(" ", "-")
        case "string":
            return f"the {name.replace('_', ' ')}{place}"
    return [] if described.get("type") == "array" else {} if described.get("type") == "object" else None


def _number(described: JSONSchema, place: str) -> Any:
    """Return the smallest number allowed, plus the number of the list entry if the maximum permits it."""
    least = described.get("minimum", 1)
    value = least + int(place.rpartition(".")[2] or 0)
    return value if value <= described.get("maximum", value) else least


class GeneratedValuesClient(ConfirmingClient):
    """Client that fills every extraction with generated values.

    ``texts`` are the texts generated so far. The answer must contain them, because the extractor drops other values.
    """

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}

    async def values(self, request: LLMRequest) -> Any:
        generated = None if request.schema is None else generate_values(request.schema)
        self.texts |= dict.fromkeys(_texts(generated))
        return generated


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif value is not None:
        yield str(value)
