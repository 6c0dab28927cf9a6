"""Bench reports in the data folder: written by ``assay meta-eval bench``, read by the API and for results of juries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import structlog

from judges.analysis.meta_eval.bench import BENCH_VERSION
from judges.errors import ModelNotConfigured
from judges.llm.providers import JudgeName, parse_model
from judges.result_files import write_json

_log = structlog.get_logger(__name__)

FOLDER: Final = "benches"
MAX_REPORTS: Final = 200
"""Maximum number of reports that are read, newest first."""
_MEASURED: Final = ("common", "error_correlation", "effective_votes")
_FIELDS: Final = {"id", "created_at", "rule", "sample", "sets", "rows"}
MAX_REPORT_BYTES: Final = 16 * 1024 * 1024


def write_bench(report: Mapping[str, Any], data_dir: Path) -> Path:
    """Store a report and return its path. Blocks on the disk. Raises OSError."""
    at = datetime.fromisoformat(report["created_at"])
    path = data_dir / FOLDER / f"{at:%Y%m%d_%H%M%S_%f}_{report['id']}.json"
    write_json(path, dict(report))
    return path


def read_benches(data_dir: Path) -> list[dict[str, Any]]:
    """Return the stored reports, newest first. Files that are not reports are skipped. Blocks on the disk."""
    return list(_each_bench(data_dir))


def measured_jury(data_dir: Path, judged_by: JudgeName) -> dict[str, Any] | None:
    """Return what the newest bench with a jury of these models and this rule measured; None if there is none.

    ``sets`` has one entry per label set. Blocks on the disk.
    """
    models = sorted(member.model for member in judged_by.members)
    for report in _each_bench(data_dir):
        rows = [row for row in report["rows"] if row.get("jury")]
        found = [
            {"set": row["set"], **{name: row["jury"][name] for name in _MEASURED}}
            for row in rows
            if row["jury"]["rule"] == judged_by.rule
            and sorted(_bare(member["model"]) for member in row["jury"]["members"]) == models
        ]
        if found:
            return {"bench": report["id"], "at": report["created_at"], "sets": found}
    return None


def _bare(model: str) -> str:
    """Return the name of a judge without its provider. Names of recorded judges can have any form."""
    try:
        return parse_model(model).model
    except ModelNotConfigured:
        return model


def _each_bench(data_dir: Path) -> Iterator[dict[str, Any]]:
    try:
        paths = sorted((data_dir / FOLDER).glob("*.json"), reverse=True)[:MAX_REPORTS]
    except OSError:
        return
    for path in paths:
        try:
            report = json.loads(path.read_bytes()) if path.stat().st_size <= MAX_REPORT_BYTES else None
        except (OSError, ValueError, RecursionError):
            report = None
        if isinstance(report, dict) and report.get("bench_version") == BENCH_VERSION and report.keys() >= _FIELDS:
            yield report
        else:
            _log.warning("bench report unreadable", file=path.name)
