"""Tables of results: one row per result or per leaf. ``docs/interop.md`` lists the columns, which can all be empty."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_type_hints

from app.csv_tables import Cell, to_csv
from app.features.interop.exported_results import ExportedResult
from cache.atomic_files import write_atomic
from judges.agent_figures import seconds_of, usage_of, word_count
from judges.late_libraries import pa, pq
from rubrics.scoring import is_success
from rubrics.tree_json import BAD_STATES, GOOD_STATES, leaf_states, script_of

Text: TypeAlias = str | None
Count: TypeAlias = int | None
Number: TypeAlias = float | None
Flag: TypeAlias = bool | None
Texts: TypeAlias = tuple[str, ...] | None
"""Joined by line breaks in formats without lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Columns of both tables."""

    result_id: Text
    agent: Text
    task_id: Text
    run: Text
    answer_name: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow(_Row):
    """Row of the table of results."""

    status: Text
    final_score: Number
    success: Flag
    score_value: Number = None
    score_low: Number = None
    score_high: Number = None
    strict_value: Number = None
    strict_low: Number = None
    strict_high: Number = None
    leaves: Count
    leaves_passed: Count
    leaves_failed: Count
    leaves_skipped: Count
    leaves_not_judged: Count
    leaves_undecided: Count
    words: Count
    pages: Count
    model: Text
    prompts: Texts
    judge_version: Text
    judge_sha256: Text
    answer_sha256: Text
    calls: Count
    cached_calls: Count
    input_tokens: Count
    output_tokens: Count
    usd: Number
    seconds: Number
    created_at: Text
    tool_version: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRow(_Row):
    """Row of the table of leaves."""

    leaf: Text
    description: Text
    critical: Flag
    weight: Number
    outcome: Text
    reason: Text
    claim: Text
    sources: Texts
    instruction: Text
    blocked_by: Text
    votes_for: Count
    votes_against: Count
    votes_lost: Count
    grounded: Flag
    grounding: Text
    quotes: Texts
    signals: Texts
    prompt: Text
    model: Text
    usd: Number
    reasoning: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one class, whose fields are the columns."""

    row: type[_Row]
    rows: Sequence[_Row]

    def objects(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]


def result_table(results: Iterable[ExportedResult]) -> Table:
    return Table(row=ResultRow, rows=[_result_row(result) for result in results])


def leaf_table(results: Iterable[ExportedResult]) -> Table:
    """Return one row per leaf of each result, in tree order."""
    rows = [_leaf_row(result, leaf, state) for result in results for leaf, state in leaf_states(result.result)]
    return Table(row=LeafRow, rows=rows)


def _key_cells(exported: ExportedResult) -> dict[str, Any]:
    return {
        "result_id": _text(exported.result.get("id")),
        "agent": exported.agent,
        "task_id": exported.task_id,
        "run": exported.run,
        "answer_name": exported.answer_name,
    }


def _result_row(exported: ExportedResult) -> ResultRow:
    result = exported.result
    script = script_of(result)
    states = Counter(state for _, state in leaf_states(result))
    final = float(result["final_score"])
    return ResultRow(
        **_key_cells(exported),
        **_score("score", result.get("score")),
        **_score("strict", result.get("score_strict")),
        **asdict(usage_of(result)),
        status=str(result.get("status") or "complete"),
        final_score=final,
        success=is_success(final),
        leaves=states.total(),
        leaves_passed=sum(states[state] for state in GOOD_STATES),
        leaves_failed=sum(states[state] for state in BAD_STATES),
        leaves_skipped=states["skipped"],
        leaves_not_judged=states["not_judged"],
        leaves_undecided=states["undecided"],
        words=None if exported.answer is None else word_count(exported.answer),
        pages=len(result.get("pages") or ()),
        model=_text(result.get("model") or result.get("judge_model")),
        prompts=tuple(result.get("prompts") or ()),
        judge_version=_text(script.get("version")),
        judge_sha256=_text(script.get("sha256")),
        answer_sha256=_text(result.get("answer_sha256")),
        seconds=seconds_of(result),
        created_at=None if exported.created_at is None else exported.created_at.isoformat(),
        tool_version=_text(result.get("tool_version")),
    )


_COPIED = ("reason", "claim", "instruction", "blocked_by", "grounding", "prompt", "model", "reasoning")


def _leaf_row(exported: ExportedResult, leaf: Mapping[str, Any], state: str) -> LeafRow:
    votes = [vote.get("result") for vote in leaf.get("votes") or ()]
    copied: dict[str, Any] = {name: _text(leaf.get(name)) for name in _COPIED}
    return LeafRow(
        **_key_cells(exported),
        **copied,
        leaf=str(leaf.get("id")),
        description=_text(leaf.get("desc")),
        critical=bool(leaf.get("critical")),
        weight=float(leaf.get("weight") or 1.0),
        outcome=state,
        sources=None if leaf.get("sources") is None else tuple(leaf["sources"]),
        votes_for=votes.count(True),
        votes_against=votes.count(False),
        votes_lost=votes.count(None),
        grounded=leaf.get("grounded"),
        quotes=tuple(str(quote.get("text")) for quote in leaf.get("quotes") or ()),
        signals=tuple(leaf.get("signals") or ()),
        usd=(leaf.get("usage") or {}).get("usd"),
    )


def _score(name: str, score: object) -> dict[str, Any]:
    if not isinstance(score, Mapping):
        return {}
    return {f"{name}_{part}": score.get(part) for part in ("value", "low", "high")}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def write_csv(path: Path, table: Table) -> None:
    """Write CSV as the dashboard does: UTF-8 with a byte order mark, with formulas escaped."""
    names = [column.name for column in fields(table.row)]
    text = to_csv(names, ([_cell(getattr(row, name)) for name in names] for row in table.rows))
    write_atomic(path, text.encode("utf-8", "replace"))


def write_parquet(path: Path, table: Table) -> None:
    """Write Parquet with typed, nullable columns."""
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    texts = pa.list_(pa.string())
    schema = pa.schema(
        [(name, types.get(get_args(kind)[0], texts)) for name, kind in get_type_hints(table.row).items()]
    )
    rows = [{name: _storable(value) for name, value in row.items()} for row in table.objects()]
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out)
    write_atomic(path, out.getvalue())


def write_json_lines(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line, UTF-8."""
    lines = (json.dumps(dict(each), ensure_ascii=False, default=str) + "\n" for each in objects)
    write_atomic(path, "".join(lines).encode("utf-8", "replace"))


def _cell(value: Any) -> Cell:
    return "\n".join(value) if isinstance(value, tuple) else value


def _storable(value: Any) -> Any:
    """Replace lone surrogates, which UTF-8 (and therefore Parquet) cannot store."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_storable(each) for each in value] if isinstance(value, tuple) else value
