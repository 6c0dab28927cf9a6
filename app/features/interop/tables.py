"""Tables of results: one row per result or per leaf. ``docs/interop.md`` lists the columns. Pure functions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeAlias

from app.csv_tables import Cell, to_csv
from app.features.interop.exported_results import ExportedResult
from cache.atomic_files import write_atomic
from judges.agent_figures import seconds_of, usage_of, word_count
from rubrics.result_json import leaves_of, script_of
from rubrics.scoring import is_success

Value: TypeAlias = str | int | float | bool | tuple[str, ...] | None


class ColumnType(StrEnum):
    """Type of a column. All columns are nullable."""

    TEXT = "text"
    COUNT = "count"
    NUMBER = "number"
    FLAG = "flag"
    TEXTS = "texts"
    """List of texts, joined by line breaks in formats without lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns by name, in order, and rows with one value per column."""

    columns: Mapping[str, ColumnType]
    rows: Sequence[Sequence[Value]]

    def objects(self) -> Iterator[dict[str, Value]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


def result_table(results: Iterable[ExportedResult]) -> Table:
    return _table(_RESULT_COLUMNS, (_result_row(result) for result in results))


def leaf_table(results: Iterable[ExportedResult]) -> Table:
    """Return one row per leaf of each result, in tree order."""
    return _table(_LEAF_COLUMNS, (_leaf_row(result, leaf) for result in results for leaf in leaves_of(result.result)))


_KEY_COLUMNS: Final = {
    "result_id": ColumnType.TEXT,
    "agent": ColumnType.TEXT,
    "task_id": ColumnType.TEXT,
    "run": ColumnType.TEXT,
    "answer_name": ColumnType.TEXT,
}
_RESULT_COLUMNS: Final[Mapping[str, ColumnType]] = {
    **_KEY_COLUMNS,
    "status": ColumnType.TEXT,
    "final_score": ColumnType.NUMBER,
    "success": ColumnType.FLAG,
    **{f"{score}_{part}": ColumnType.NUMBER for score in ("score", "strict") for part in ("value", "low", "high")},
    "leaves": ColumnType.COUNT,
    **{f"leaves_{outcome}": ColumnType.COUNT for outcome in ("passed", "failed", "skipped", "not_judged", "undecided")},
    "words": ColumnType.COUNT,
    "pages": ColumnType.COUNT,
    "model": ColumnType.TEXT,
    "prompts": ColumnType.TEXTS,
    "judge_version": ColumnType.TEXT,
    "judge_sha256": ColumnType.TEXT,
    "answer_sha256": ColumnType.TEXT,
    "calls": ColumnType.COUNT,
    "cached_calls": ColumnType.COUNT,
    "input_tokens": ColumnType.COUNT,
    "output_tokens": ColumnType.COUNT,
    "usd": ColumnType.NUMBER,
    "seconds": ColumnType.NUMBER,
    "created_at": ColumnType.TEXT,
    "tool_version": ColumnType.TEXT,
}
_LEAF_COLUMNS: Final[Mapping[str, ColumnType]] = {
    **_KEY_COLUMNS,
    "leaf": ColumnType.TEXT,
    "description": ColumnType.TEXT,
    "critical": ColumnType.FLAG,
    "weight": ColumnType.NUMBER,
    "outcome": ColumnType.TEXT,
    "reason": ColumnType.TEXT,
    "claim": ColumnType.TEXT,
    "sources": ColumnType.TEXTS,
    "instruction": ColumnType.TEXT,
    "blocked_by": ColumnType.TEXT,
    "votes_for": ColumnType.COUNT,
    "votes_against": ColumnType.COUNT,
    "votes_lost": ColumnType.COUNT,
    "grounded": ColumnType.FLAG,
    "grounding": ColumnType.TEXT,
    "quotes": ColumnType.TEXTS,
    "signals": ColumnType.TEXTS,
    "prompt": ColumnType.TEXT,
    "model": ColumnType.TEXT,
    "usd": ColumnType.NUMBER,
    "reasoning": ColumnType.TEXT,
}


def _table(columns: Mapping[str, ColumnType], rows: Iterable[Mapping[str, Value]]) -> Table:
    return Table(columns=columns, rows=[[row.get(name) for name in columns] for row in rows])


def _key_cells(exported: ExportedResult) -> dict[str, Value]:
    return {
        "result_id": _text(exported.result.get("id")),
        "agent": exported.agent,
        "task_id": exported.task_id,
        "run": exported.run,
        "answer_name": exported.answer_name,
    }


def _result_row(exported: ExportedResult) -> dict[str, Value]:
    result = exported.result
    script, usage = script_of(result), usage_of(result)
    outcomes = Counter(str(leaf.get("outcome") or leaf.get("status")) for leaf in leaves_of(result))
    final = float(result["final_score"])
    return {
        **_key_cells(exported),
        "status": str(result.get("status") or "complete"),
        "final_score": final,
        "success": is_success(final),
        **_score("score", result.get("score")),
        **_score("strict", result.get("score_strict")),
        "leaves": sum(outcomes.values()),
        **{
            f"leaves_{outcome}": outcomes[outcome]
            for outcome in ("passed", "failed", "skipped", "not_judged", "undecided")
        },
        "words": None if exported.answer is None else word_count(exported.answer),
        "pages": len(result.get("pages") or ()),
        "model": _text(result.get("model") or result.get("judge_model")),
        "prompts": tuple(result.get("prompts") or ()),
        "judge_version": _text(script.get("version")),
        "judge_sha256": _text(script.get("sha256")),
        "answer_sha256": _text(result.get("answer_sha256")),
        **asdict(usage),
        "seconds": seconds_of(result),
        "created_at": None if exported.created_at is None else exported.created_at.isoformat(),
        "tool_version": _text(result.get("tool_version")),
    }


def _leaf_row(exported: ExportedResult, leaf: Mapping[str, Any]) -> dict[str, Value]:
    votes = [vote.get("result") for vote in leaf.get("votes") or ()]
    readers: dict[str, Callable[[Any], Value]] = dict.fromkeys(
        ("reason", "claim", "instruction", "blocked_by", "grounding", "prompt", "model", "reasoning"), _text
    )
    return {
        **_key_cells(exported),
        **{name: read(leaf.get(name)) for name, read in readers.items()},
        "leaf": str(leaf.get("id")),
        "description": _text(leaf.get("desc")),
        "critical": bool(leaf.get("critical")),
        "weight": float(leaf.get("weight") or 1.0),
        "outcome": str(leaf.get("outcome") or leaf.get("status")),
        "sources": None if leaf.get("sources") is None else tuple(leaf["sources"]),
        "votes_for": votes.count(True),
        "votes_against": votes.count(False),
        "votes_lost": votes.count(None),
        "grounded": leaf.get("grounded"),
        "quotes": tuple(str(quote.get("text")) for quote in leaf.get("quotes") or ()),
        "signals": tuple(leaf.get("signals") or ()),
        "usd": (leaf.get("usage") or {}).get("usd"),
    }


def _score(name: str, score: object) -> dict[str, Value]:
    if not isinstance(score, Mapping):
        return {}
    return {f"{name}_{part}": score.get(part) for part in ("value", "low", "high")}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def write_csv(path: Path, table: Table) -> None:
    """Write CSV as the dashboard does: UTF-8 with a byte order mark, with formulas escaped."""
    text = to_csv(list(table.columns), ([_cell(value) for value in row] for row in table.rows))
    write_atomic(path, text.encode("utf-8", "replace"))


def write_parquet(path: Path, table: Table) -> None:
    """Write Parquet with typed, nullable columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        ColumnType.TEXT: pa.string(),
        ColumnType.COUNT: pa.int64(),
        ColumnType.NUMBER: pa.float64(),
        ColumnType.FLAG: pa.bool_(),
        ColumnType.TEXTS: pa.list_(pa.string()),
    }
    fields = [pa.field(name, types[column_type]) for name, column_type in table.columns.items()]
    columns = [[_storable(row[index]) for row in table.rows] for index in range(len(fields))]
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, fields, strict=True)]
    out = BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), out)
    write_atomic(path, out.getvalue())


def write_json_lines(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line, UTF-8."""
    lines = (json.dumps(dict(each), ensure_ascii=False, default=str) + "\n" for each in objects)
    write_atomic(path, "".join(lines).encode("utf-8", "replace"))


def _cell(value: Value) -> Cell:
    return "\n".join(value) if isinstance(value, tuple) else value


def _storable(value: Value) -> Any:
    """Replace lone surrogates, which UTF-8 (and therefore Parquet) cannot store."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_storable(each) for each in value] if isinstance(value, tuple) else value
