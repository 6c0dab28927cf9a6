"""Bench reports in the data folder: written by ``assay meta-eval bench``, read by the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import structlog

from judges.analysis.meta_eval.bench import BENCH_VERSION
from judges.result import write_json

_log = structlog.get_logger(__name__)

FOLDER: Final = "benches"
MAX_REPORTS: Final = 200
"""Maximum number of reports that are read, newest first."""
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
    reports: list[dict[str, Any]] = []
    try:
        paths = sorted((data_dir / FOLDER).glob("*.json"), reverse=True)[:MAX_REPORTS]
    except OSError:
        return reports
    for path in paths:
        try:
            report = json.loads(path.read_bytes()) if path.stat().st_size <= MAX_REPORT_BYTES else None
        except (OSError, ValueError, RecursionError):
            report = None
        if isinstance(report, dict) and report.get("bench_version") == BENCH_VERSION and report.keys() >= _FIELDS:
            reports.append(report)
        else:
            _log.warning("bench report unreadable", file=path.name)
    return reports
