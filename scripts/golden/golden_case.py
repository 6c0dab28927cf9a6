"""Comparison of expected and actual values, by field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from judges.errors import JudgeError

MALFORMED = (JudgeError, LookupError, TypeError, ValueError, AttributeError, RuntimeError)
"""Errors that malformed golden cases cause in the code that reads them."""
TOLERANCE = 1e-9
"""For numbers, because means may be summed in another order."""
_ABSENT = "(absent)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """One field that differs. ``field`` is a path such as ``results.error_ratio.0``."""

    field: str
    expected: Any
    got: Any


@dataclass(slots=True)
class GoldenCase:
    """One golden case and its findings. ``not_checked`` lists keys that no check covers."""

    name: str
    differences: list[FieldDifference] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def expect(self, name: str, expected: Any, got: Any) -> None:
        self.differences += differences(expected, got, name)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Turn errors into a failed case, so that the other cases still run."""
        try:
            yield
        except MALFORMED as error:
            got = f"{type(error).__name__}: {error}"
            self.differences.append(FieldDifference(field="(all)", expected="a case that runs", got=got))

    def note_unchecked(self, inputs: Mapping[str, Any], known: frozenset[str]) -> None:
        """Record the keys of ``inputs`` that are not in ``known``."""
        self.not_checked += sorted(inputs.keys() - known - REMARKS)


REMARKS = frozenset({"id", "source", "note", "description", "comment", "recommended"})
"""Keys that contain remarks for people."""


def differences(expected: Any, actual_value: Any, path: str) -> Iterator[FieldDifference]:
    """Yield every field in which two JSON values differ. Tuples equal lists; numbers are compared by value."""
    if isinstance(expected, Mapping) and isinstance(actual_value, Mapping):
        for key in [*expected, *(key for key in actual_value if key not in expected)]:
            yield from differences(expected.get(key, _ABSENT), actual_value.get(key, _ABSENT), f"{path}.{key}")
    elif _is_list(expected) and _is_list(actual_value) and len(expected) == len(actual_value):
        for place, (expected_item, actual) in enumerate(zip(expected, actual_value, strict=True)):
            yield from differences(expected_item, actual, f"{path}.{place}")
    elif not _same(expected, actual_value):
        yield FieldDifference(field=path, expected=expected, got=actual_value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _same(expected: Any, actual: Any) -> bool:
    if _is_number(expected) and _is_number(actual):
        return math.isclose(expected, actual, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(expected) is type(actual) and bool(expected == actual)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
