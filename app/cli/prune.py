"""``assay admin prune``: delete old data. Without ``--yes`` it only prints what it would delete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from app.console.connection import JsonOption
from app.console.errors import duration
from app.console.runtime import run_in_database
from app.console.streams import print_json, print_line
from app.engine.runtime import open_blobs
from app.maintenance.retention import PruneReport
from app.maintenance.retention import prune as prune_all


def prune(
    older_than: Annotated[str, typer.Option(help="Minimum age, for example 90d or 26w. Unfinished jobs are kept.")],
    yes: Annotated[bool, typer.Option("--yes", help="Delete. Without it, only print what would be deleted.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete old results, captures and stored pages. Keeps the evidence of remaining results."""
    now = datetime.now(UTC)
    before = now - duration(older_than, option="--older-than")
    report = run_in_database(
        lambda settings, database: prune_all(
            database,
            open_blobs(settings),
            before=before,
            now=now,
            dry_run=not yes,
            folder=settings.data_dir / "captures",
        )
    )
    counts = _counts(report)
    if as_json:
        print_json({"removed": yes, "before": before.isoformat(), **counts})
        return
    counts_text = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items())
    action = "removed" if yes else "would remove (nothing is removed without --yes)"
    print_line(f"{action}: {counts_text}")


def _counts(report: PruneReport) -> dict[str, Any]:
    return {
        "jobs": report.rows.jobs,
        "results": report.rows.results,
        "submissions": report.rows.submissions,
        "answers": report.rows.answers,
        "captures": len(report.rows.captures),
        "stored_pages": report.bodies,
        "idempotency_keys": report.rows.idempotency_keys,
        "shared_replies": report.rows.replies,
    }
