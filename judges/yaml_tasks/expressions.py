"""Expressions and claim templates of task files. They read extracted values by name and call a fixed set of functions.

Every text is parsed and type-checked once, when the file is loaded. Evaluation never raises, ends in linear time, and
accesses no attribute: records are dictionaries with the declared fields.

A comparison with a missing value has no result, None: it is neither true nor false. ``and``, ``or`` and ``not`` follow
Kleene's three-valued logic, as NULL does in SQL. A condition without a result counts as false.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from judges.yaml_tasks.document import did_you_mean
from judges.yaml_tasks.values import (
    Interval,
    as_text,
    clock_minutes,
    date_interval,
    first_number,
    is_date,
    is_missing,
    normalized,
    regex_matcher,
    spaced_words,
    word_count,
)

MAX_CHARS: Final = 1_000
MAX_NESTING: Final = 20


class Scalar(StrEnum):
    """Types of single values."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    """The text of a date. Comparisons convert it."""


@dataclass(frozen=True, slots=True)
class Record:
    """Type of an object with named fields."""

    fields: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class ListOf:
    """Type of a list."""

    item: Type


Type: TypeAlias = "Scalar | Record | ListOf"
Values: TypeAlias = Mapping[str, Any]
"""Values by name: text, numbers, booleans, None, and lists and dictionaries of them."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Name that an expression may use. ``extracted``: its value depends on the answer."""

    type: Type
    extracted: bool = True


Scope: TypeAlias = Mapping[str, Variable]


class ExpressionError(ValueError):
    """Error in an expression or template. ``offset`` is the position of the character at which it was found."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Type-checked expression. ``constant`` is the value of a literal, else None.

    ``written`` returns the text of a condition with values in place of its fields.
    """

    type: Type
    evaluate: Callable[[Values], Any]
    extracted: bool = False
    constant: Any = None
    offset: int = 0
    written: Callable[[Values], str] = lambda values: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Text with placeholders. ``extracted``: at least one of them depends on the answer.

    ``lacks_value`` returns whether the answer gives no value for a placeholder.
    """

    render: Callable[[Values], str]
    lacks_value: Callable[[Values], bool]
    extracted: bool = False


def type_name(kind: Type) -> str:
    """Return a type as authors know it: ``text``, ``list of number``, ``record``."""
    if isinstance(kind, ListOf):
        return f"list of {type_name(kind.item)}"
    return "record" if isinstance(kind, Record) else kind.value


def empty_value(kind: Type) -> Any:
    """Return the value of a type if the answer gives none."""
    if isinstance(kind, Record):
        return {name: empty_value(each) for name, each in kind.fields.items()}
    if isinstance(kind, ListOf):
        return []
    return "" if kind in (Scalar.TEXT, Scalar.DATE) else None


def parse_expression(text: str, scope: Scope) -> Expression:
    """Parse and type-check an expression such as ``count(gauges) >= 3 and given(choice.name)``.

    Raises:
        ExpressionError: the syntax, a name or a type is wrong.
    """
    return _Parser(text, scope).whole()


def parse_condition(text: str, scope: Scope) -> Expression:
    """Parse an expression that must be true or false.

    Raises:
        ExpressionError: as ``parse_expression``, or it has another type.
    """
    parser = _Parser(text, scope)
    expression = parser.whole()
    if expression.type is not Scalar.BOOLEAN:
        hint = f"use given({text.strip()}) to test that it is there" if len(text) < 100 else "use given(...)"
        raise ExpressionError(f"this is a {type_name(expression.type)}, not a condition; {hint}", 0)

    def written(values: Values) -> str:
        parts, end = [], 0
        for start, stop, field in parser.fields:
            parts += [text[end:start], _as_literal(field.evaluate(values))]
            end = stop
        return " ".join("".join([*parts, text[end:]]).split())[:_MAX_WRITTEN_CHARS]

    return replace(expression, evaluate=lambda values: bool(expression.evaluate(values)), written=written)


_MAX_WRITTEN_CHARS: Final = 1_000
_MAX_VALUE_CHARS: Final = 200
_MAX_ITEMS: Final = 10


def _as_literal(value: Any) -> str:
    """Return a value as an expression writes it; ``none`` if the answer gives none."""
    if isinstance(value, list):
        items = [_as_literal(each) for each in value[:_MAX_ITEMS]]
        return f"[{', '.join(items + ['...'] * (len(value) > _MAX_ITEMS))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_as_literal(each)}' for name, each in value.items())}}}"
    if is_missing(value):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else f"'{str(value)[:_MAX_VALUE_CHARS]}'"


_BRACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD_PATH = re.compile(r"\s*[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*\s*", re.ASCII)


def parse_template(text: str, scope: Scope) -> Template:
    """Parse a text with placeholders: ``{person.name} advised {person.student}``. ``{{`` and ``}}`` are braces.

    Raises:
        ExpressionError: a placeholder is not the path of a single value or of a list of them.
    """
    parts: list[str | Expression] = []
    end = 0
    for brace in _BRACE.finditer(text):
        parts.append(text[end : brace.start()])
        end = brace.end()
        if brace[0] in ("{{", "}}"):
            parts.append(brace[0][0])
        elif brace[1] is None:
            raise ExpressionError("a single brace; write {{ or }} for a brace in the text", brace.start())
        else:
            parts.append(_placeholder(brace[1], brace.start(), scope))
    parts.append(text[end:])

    def render(values: Values) -> str:
        return "".join(part if isinstance(part, str) else as_text(_given_part(part, values)) for part in parts)

    extracted = [part for part in parts if isinstance(part, Expression) and part.extracted]

    def lacks_value(values: Values) -> bool:
        return any(is_missing(_given_part(part, values)) for part in extracted)

    return Template(render=render, lacks_value=lacks_value, extracted=bool(extracted))


def _given_part(part: Expression, values: Values) -> Any:
    """Return the value of a placeholder, of a list only the given items."""
    value = part.evaluate(values)
    return [each for each in value if not is_missing(each)] if isinstance(value, list) else value


def _placeholder(text: str, offset: int, scope: Scope) -> Expression:
    if not _FIELD_PATH.fullmatch(text):
        message = f"{{{text}}} names no field: a placeholder is a field such as {{person.name}}, without anything else"
        raise ExpressionError(message, offset)
    try:
        found = parse_expression(text, scope)
    except ExpressionError as error:
        raise ExpressionError(str(error), offset + 1 + error.offset) from None
    kind = found.type.item if isinstance(found.type, ListOf) else found.type
    if isinstance(kind, Record):
        raise ExpressionError(f"{{{text}}} is a record; name one of its fields: {', '.join(kind.fields)}", offset + 1)
    return found


_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<text>'[^']*'|"[^"]*")"""
    r"""|(?P<sign>==|!=|<=|>=|[<>()\[\],.-]))""",
    re.ASCII,
)
_WORDS: Final = frozenset({"and", "or", "not", "in", "true", "false"})
_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    offset: int


class _Parser:
    """Recursive descent parser. Each method returns the type-checked expression."""

    def __init__(self, text: str, scope: Scope) -> None:
        if len(text) > MAX_CHARS:
            raise ExpressionError(f"longer than {MAX_CHARS} characters; use several checks", 0)
        self._tokens = list(_tokens(text))
        self._next = 0
        self._nesting = 0
        self._scope = scope
        self.fields: list[tuple[int, int, Expression]] = []
        """Fields in the order of the text, with their begin and end in it."""

    def whole(self) -> Expression:
        expression = self._either()
        if self._peek.kind != "end":
            found, lower = self._peek.text, self._peek.text.lower()
            fix = f"write `{lower}` in lower case" if lower in _WORDS - {found} else "expected an operator or the end"
            raise ExpressionError(f"unexpected {found!r}; {fix}", self._peek.offset)
        return expression

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> _Token | None:
        """Return the next token and go on if it is one of these words or signs."""
        token = self._peek
        if token.kind in ("word", "sign") and token.text in texts:
            self._next += 1
            return token
        return None

    def _expect(self, text: str) -> None:
        if not self._take(text):
            token = self._peek
            found = "the end" if token.kind == "end" else repr(token.text)
            raise ExpressionError(f"expected {text!r}, found {found}", token.offset)

    def _either(self) -> Expression:
        return self._joined("or", self._both, _any)

    def _both(self) -> Expression:
        return self._joined("and", self._negated, _all)

    def _joined(self, word: str, part: Callable[[], Expression], fold: Callable[..., bool | None]) -> Expression:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        for each in parts:
            _require(each, Scalar.BOOLEAN, f"the operands of `{word}`")
        return _result(Scalar.BOOLEAN, parts, fold)

    def _negated(self) -> Expression:
        if not self._take("not"):
            return self._comparison()
        self._enter()
        operand = self._negated()
        self._nesting -= 1
        _require(operand, Scalar.BOOLEAN, "the operand of `not`")
        return _result(Scalar.BOOLEAN, [operand], lambda value: None if value is None else not value)

    def _comparison(self) -> Expression:
        left = self._operand()
        sign = self._take(*_COMPARISONS)
        if sign is None:
            return left
        right = self._operand()
        if (again := self._take(*_COMPARISONS)) is not None:
            raise ExpressionError("compare two values at a time; join comparisons with `and`", again.offset)
        return _compared(sign, left, right)

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise ExpressionError(f"nested more than {MAX_NESTING} levels deep; use several checks", self._peek.offset)

    def _operand(self) -> Expression:
        token = self._peek
        self._next += 1
        if token.kind == "number":
            return _literal(Scalar.NUMBER, float(token.text), token)
        if token.kind == "text":
            return _literal(Scalar.TEXT, token.text[1:-1], token)
        if token.kind == "word" and token.text in ("true", "false"):
            return _literal(Scalar.BOOLEAN, token.text == "true", token)
        if token.kind == "name":
            return self._call(token) if self._take("(") else self._path(token)
        if token.kind == "sign" and token.text == "-" and self._peek.kind == "number":
            number = self._operand()
            return _literal(Scalar.NUMBER, -number.constant, token)
        if token.kind == "sign" and token.text in "([":
            self._enter()
            inner = self._either() if token.text == "(" else self._list(token)
            self._nesting -= 1
            if token.text == "(":
                self._expect(")")
            return inner
        found = "the end" if token.kind == "end" else repr(token.text)
        raise ExpressionError(
            f"expected a field, a number, a text in quotes or a function, found {found}", token.offset
        )

    def _list(self, start: _Token) -> Expression:
        items = self._arguments("]")
        if not items:
            raise ExpressionError("an empty list; name at least one value", start.offset)
        for item in items:
            if item.type is not items[0].type or item.constant is None:
                raise ExpressionError("a list has texts or numbers, all of one type", item.offset)
        constants = [item.constant for item in items]
        return Expression(
            type=ListOf(items[0].type), evaluate=lambda _: constants, constant=constants, offset=start.offset
        )

    def _arguments(self, closing: str) -> list[Expression]:
        arguments: list[Expression] = []
        while not self._take(closing):
            if arguments:
                self._expect(",")
            arguments.append(self._either())
        return arguments

    def _call(self, name: _Token) -> Expression:
        function = _FUNCTIONS.get(name.text)
        if function is None:
            known = ", ".join(sorted(_FUNCTIONS))
            message = f"no function {name.text!r}{did_you_mean(name.text, _FUNCTIONS)}; the functions are {known}"
            raise ExpressionError(message, name.offset)
        self._enter()
        arguments = self._arguments(")")
        self._nesting -= 1
        if not function.least <= len(arguments) <= function.most:
            raise ExpressionError(f"wrong number of values; write {function.usage}", name.offset)
        for argument in arguments:
            if _kind(argument.type) not in function.takes:
                found = type_name(argument.type)
                raise ExpressionError(f"{name.text} does not take a {found}; write {function.usage}", argument.offset)
        return function.build(arguments)

    def _path(self, first: _Token) -> Expression:
        variable = self._scope.get(first.text)
        if variable is None:
            known = ", ".join(self._scope) or "none are defined"
            similar = did_you_mean(first.text, self._scope)
            raise ExpressionError(f"no field {first.text!r}{similar}; the fields here are {known}", first.offset)
        kind, steps = variable.type, [first.text]
        lists = 0
        while self._take("."):
            token = self._peek
            self._next += 1
            if isinstance(kind, ListOf) and isinstance(kind.item, Record):
                kind, lists = kind.item, lists + 1
            if not isinstance(kind, Record):
                raise ExpressionError(f"{'.'.join(steps)} is a {type_name(kind)} and has no fields", token.offset)
            if token.text not in kind.fields or token.kind not in ("name", "word"):
                fields = ", ".join(kind.fields)
                missing = f"no field {token.text!r}{did_you_mean(token.text, kind.fields)}"
                raise ExpressionError(f"{'.'.join(steps)} has {missing}; it has {fields}", token.offset)
            kind, steps = kind.fields[token.text], [*steps, token.text]
        if lists and not isinstance(kind, ListOf):
            kind = ListOf(kind)
        path = tuple(steps)
        last = self._tokens[self._next - 1]
        found = Expression(
            type=kind,
            evaluate=lambda values: _at(values, path),
            extracted=variable.extracted,
            offset=first.offset,
        )
        self.fields.append((first.offset, last.offset + len(last.text), found))
        return found


def literals(text: str) -> list[str | float]:
    """Return the texts and numbers that a valid expression contains."""
    found = {"text": lambda word: word[1:-1], "number": float}
    return [found[token.kind](token.text) for token in _tokens(text) if token.kind in found]


_FIXES: Final = {
    **dict.fromkeys("'\"", "close the quote"),
    **dict.fromkeys("“”„‘’‚«»", "write straight quotes: 'text'"),  # noqa: RUF001
    **dict.fromkeys("+*/%", "expressions do not calculate; compare the values themselves"),
    "=": "compare with ==",
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
}


def _tokens(text: str) -> Iterable[_Token]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            character = text[start]
            fix = _FIXES.get(character, "see the functions and operators of the format")
            raise ExpressionError(f"unexpected {character!r}; {fix}", start)
        kind = str(match.lastgroup)
        word = match[kind]
        yield _Token("word" if kind == "name" and word in _WORDS else kind, word, match.start(kind))
        position = match.end()
    yield _Token("end", "", end)


def _literal(kind: Scalar, value: Any, token: _Token) -> Expression:
    return Expression(type=kind, evaluate=lambda _: value, constant=value, offset=token.offset)


def _at(values: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path. A step into a list collects the field of all its items, without nesting."""
    for step in path:
        if isinstance(values, list):
            found = [each[step] for each in values]
            values = [inner for each in found for inner in (each if isinstance(each, list) else [each])]
        else:
            values = values[step]
    return values


def _result(kind: Type, parts: list[Expression], compute: Callable[..., Any]) -> Expression:
    """Return the expression that computes a value from the values of other expressions."""
    return Expression(
        type=kind,
        evaluate=lambda values: compute(*(part.evaluate(values) for part in parts)),
        extracted=any(part.extracted for part in parts),
        offset=parts[0].offset,
    )


def _require(expression: Expression, kind: Type, subject: str) -> None:
    if expression.type != kind:
        found, wanted = type_name(expression.type), type_name(kind)
        hint = {"boolean": "; use given(...)", "number": "; use number(...)"}.get(wanted, "")
        raise ExpressionError(f"{subject} must be {wanted}, this is {found}{hint}", expression.offset)


def _all(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _any(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


# Comparisons


def _compared(sign: _Token, left: Expression, right: Expression) -> Expression:
    if sign.text == "in":
        if not isinstance(right.type, ListOf) or right.type.item is not left.type:
            raise ExpressionError("`in` needs a list of the same type on its right: name in ['a', 'b']", right.offset)
        key = _KEYS[left.type]

        def is_in(one: Any, many: list[Any]) -> bool | None:
            found = key(one)
            return None if found is None or not many else found in map(key, many)

        return _result(Scalar.BOOLEAN, [left, right], is_in)
    kinds = {left.type, right.type} if isinstance(left.type, Scalar) and isinstance(right.type, Scalar) else set()
    if kinds == {Scalar.DATE, Scalar.TEXT}:
        for each in (left, right):
            if each.type is Scalar.TEXT and (each.constant is None or not is_date(each.constant)):
                raise ExpressionError("compare a date with a date: date(...), or '2025-08-16'", each.offset)
        kinds = {Scalar.DATE}
    if len(kinds) != 1:
        message = f"cannot compare {type_name(left.type)} with {type_name(right.type)}; use number(...) or date(...)"
        raise ExpressionError(message, right.offset)
    kind = kinds.pop()
    for each in (left, right):
        if each.constant is not None and _KEYS[kind](each.constant) is None:
            raise ExpressionError(f"nothing equals {each.constant!r}; use given(...) or not given(...)", each.offset)
    if sign.text not in ("==", "!=") and kind not in (Scalar.NUMBER, Scalar.DATE):
        raise ExpressionError(f"`{sign.text}` compares numbers or dates; use number(...) or date(...)", sign.offset)
    key, compare = _KEYS[kind], _COMPARE_DATES[sign.text] if kind is Scalar.DATE else _COMPARE[sign.text]

    def compute(one: Any, other: Any) -> bool | None:
        first, second = key(one), key(other)
        return None if first is None or second is None else compare(first, second)

    return _result(Scalar.BOOLEAN, [left, right], compute)


def _text_key(value: Any) -> str | None:
    return normalized(value) or None if isinstance(value, str) else None


def _number_key(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _boolean_key(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_KEYS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    Scalar.TEXT: _text_key,
    Scalar.NUMBER: _number_key,
    Scalar.BOOLEAN: _boolean_key,
    Scalar.DATE: date_interval,
}
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARE_DATES: Final[Mapping[str, Callable[[Interval, Interval], bool]]] = {
    # A year or month is an interval of days: "2019" is before "2020-01-01", and neither before nor after "2019-05-03".
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one.last < other.first or one.first > other.last,
    "<": lambda one, other: one.last < other.first,
    "<=": lambda one, other: one.last <= other.last,
    ">": lambda one, other: one.first > other.last,
    ">=": lambda one, other: one.first >= other.first,
}


# Functions


@dataclass(frozen=True, slots=True)
class _Function:
    """Function of expressions. ``takes`` are the kinds of its values, see ``_kind``."""

    usage: str
    takes: tuple[str, ...]
    build: Callable[[list[Expression]], Expression]
    least: int = 1
    most: int = 1


def _given(arguments: list[Expression]) -> Expression:
    return _result(Scalar.BOOLEAN, arguments, lambda *values: not any(map(is_missing, values)))


def _count(arguments: list[Expression]) -> Expression:
    return _result(Scalar.NUMBER, arguments, lambda items: sum(not is_missing(item) for item in items))


def _unique(arguments: list[Expression]) -> Expression:
    item = _item_type(arguments[0])
    if not isinstance(item, Scalar):
        raise ExpressionError("`unique` does not take a list of records; name one of their fields", arguments[0].offset)
    key = _KEYS[item]
    return _result(arguments[0].type, arguments, lambda items: list({key(item): item for item in items}.values()))


def _within(arguments: list[Expression]) -> Expression:
    value, low, high = arguments
    parts = [_compared(_Token("sign", sign, value.offset), value, bound) for sign, bound in ((">=", low), ("<=", high))]
    if low.constant is not None and high.constant is not None and _is_reversed(low.constant, high.constant):
        raise ExpressionError("no value is in this range; write the lowest value first", low.offset)
    return _result(Scalar.BOOLEAN, parts, _all)


def _is_reversed(low: Any, high: Any) -> bool:
    first, last = date_interval(low), date_interval(high)
    return low > high if first is None or last is None else first.first > last.last


def _contains(arguments: list[Expression]) -> Expression:
    for argument in arguments:
        _require(argument, Scalar.TEXT, "the values of `contains`")
    return _result(Scalar.BOOLEAN, arguments, lambda *texts: None if any(map(is_missing, texts)) else has_words(*texts))


def _matches(arguments: list[Expression]) -> Expression:
    value, pattern = arguments
    _require(value, Scalar.TEXT, "the first value of `matches`")
    if not isinstance(pattern.constant, str):
        raise ExpressionError("the second value of `matches` is a pattern in quotes", pattern.offset)
    try:
        matcher = regex_matcher(pattern.constant)
    except ValueError as error:
        raise ExpressionError(str(error), pattern.offset) from None
    return _result(Scalar.BOOLEAN, [value], lambda text: None if is_missing(text) else matcher(text))


def _find(arguments: list[Expression]) -> Expression:
    items, field, text = arguments
    item = _item_type(items)
    if not isinstance(item, Record):
        raise ExpressionError("the first value of `find` is a list of records", items.offset)
    if item.fields.get(field.constant if isinstance(field.constant, str) else "") is not Scalar.TEXT:
        names = ", ".join(name for name, kind in item.fields.items() if kind is Scalar.TEXT)
        raise ExpressionError(f"the second value of `find` is a text field in quotes: {names}", field.offset)
    _require(text, Scalar.TEXT, "the third value of `find`")
    name = field.constant

    def compute(records: list[dict[str, Any]], _: str, wanted: str) -> dict[str, Any]:
        found = next((each for each in records if has_words(each[name], wanted)), None)
        return empty_value(item) if found is None else found

    return _result(item, [items, field, text], compute)


def _item(arguments: list[Expression]) -> Expression:
    items, number = arguments
    kind = _item_type(items)
    _require(number, Scalar.NUMBER, "the second value of `item`")

    def compute(values: list[Any], position: Any) -> Any:
        index = int(position) - 1 if _number_key(position) is not None and abs(position) < 1e9 else -1
        return values[index] if 0 <= index < len(values) else empty_value(kind)

    return _result(kind, [items, number], compute)


def has_words(text: Any, part: Any) -> bool:
    """Return whether a text contains the words of another one, next to each other, ignoring case and spaces."""
    if is_missing(text) or is_missing(part):
        return False
    whole, words = spaced_words(text), spaced_words(part)
    return words.strip() in whole and words in whole  # spaces are everywhere, so looking for them first takes longer


def _item_type(expression: Expression) -> Type:
    if not isinstance(expression.type, ListOf):
        raise ExpressionError(f"this is a {type_name(expression.type)}, not a list", expression.offset)
    return expression.type.item


def _convert(kind: Scalar, convert: Callable[[str], Any], form: str) -> Callable[[list[Expression]], Expression]:
    """Return the builder of a conversion. A text in quotes must have the ``form``."""

    def converted(value: Any) -> Any:
        return convert(value) if isinstance(value, str) else None

    def build(arguments: list[Expression]) -> Expression:
        [text] = arguments
        value = converted(text.constant)
        if text.constant is not None and (value is None or (kind is Scalar.DATE and not is_date(value))):
            raise ExpressionError(f"{text.constant!r} is not {form}", text.offset)
        return replace(_result(kind, arguments, converted), constant=value)

    return build


def _kind(kind: Type) -> str:
    return "list" if isinstance(kind, ListOf) else "record" if isinstance(kind, Record) else kind.value


_number = _convert(Scalar.NUMBER, first_number, "a number such as '1,250.5'")
_date = _convert(Scalar.DATE, lambda text: text, "an English date such as '14 May 1962'")
_minutes = _convert(Scalar.NUMBER, clock_minutes, "a time such as '9:25 pm'")
_words = _convert(Scalar.NUMBER, lambda text: float(word_count(text)), "a text")

_ALL: Final = ("text", "number", "boolean", "date", "record", "list")
_TEXT: Final = ("text", "date")
_FUNCTIONS: Final[Mapping[str, _Function]] = {
    "given": _Function("given(value, ...)", _ALL, _given, most=50),
    "count": _Function("count(list)", ("list",), _count),
    "unique": _Function("unique(list)", ("list",), _unique),
    "number": _Function("number(text)", _TEXT, _number),
    "date": _Function("date(text)", _TEXT, _date),
    "minutes": _Function("minutes(text)", _TEXT, _minutes),
    "words": _Function("words(text)", _TEXT, _words),
    "within": _Function("within(number or date, lowest, highest)", ("number", *_TEXT), _within, 3, 3),
    "contains": _Function("contains(text, 'part')", _TEXT, _contains, 2, 2),
    "matches": _Function("matches(text, 'pattern')", _TEXT, _matches, 2, 2),
    "find": _Function("find(list, 'field', text)", ("list", *_TEXT), _find, 3, 3),
    "item": _Function("item(list, number)", ("list", "number"), _item, 2, 2),
}
