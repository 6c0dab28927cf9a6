"""The values that a judge extracted from the answer, with the leaves that use them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.dashboard.outline import Node

MAX_VALUES: Final = 300
MAX_USES: Final = 8
_NOTHING: Final = "no_info"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedValue:
    """One value. ``uses`` are the first leaves whose claim, sources or check contain it, of ``count``."""

    field: str
    value: str
    uses: Sequence[Node]
    count: int


def extracted_values(result: Mapping[str, Any], leaves: Sequence[Node]) -> list[ExtractedValue]:
    """Return the first ``MAX_VALUES`` values of a result, in the order in which they were extracted."""
    texts = [_text_of(leaf) for leaf in leaves]
    starts, length = [], 0
    for text in texts:
        starts.append(length)
        length += len(text) + 1
    everything, values = "\n".join(texts), list[ExtractedValue]()
    for field, value in _all_values(result):
        if len(values) == MAX_VALUES:
            break
        found = _places(value, everything)
        used = sorted({bisect_right(starts, place) - 1 for place in found})
        values.append(
            ExtractedValue(field=field, value=value, uses=[leaves[nth] for nth in used[:MAX_USES]], count=len(used))
        )
    return values


def _places(value: str, text: str) -> list[int]:
    if not value:
        return []
    return [match.start() for match in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text)]


def _text_of(leaf: Node) -> str:
    """Return the texts of a leaf in which an extracted value can occur."""
    fields = leaf.fields
    sources = fields.get("sources") or ()
    compared = fields.get("reasoning") if not fields.get("claim") else ""
    return " \t".join(str(text) for text in (fields.get("claim"), *sources, compared) if text).replace("\n", " ")


def _all_values(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for part in result.get("eval_breakdown") or ():
        for record in part.get("info") or ():
            for name, value in record.items() if isinstance(record, Mapping) else ():
                if name != _NOTHING:
                    yield from _flattened(str(name), value)


def _flattened(field: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flattened(f"{field}.{name}", each)
    elif isinstance(value, list):
        for number, each in enumerate(value, 1):
            yield from _flattened(f"{field}[{number}]", each)
    elif isinstance(value, bool):
        yield field, str(value).lower()
    else:
        yield field, "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
