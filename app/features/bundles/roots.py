"""Recording of bundle root hashes with the results that a bundle contains.

The record is stored outside the bundle, because a bundle cannot contain its own hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from app.api.overrides import time_json
from app.features.bundles.agent_results import AgentResults
from app.features.bundles.exporting import ExportReport
from app.features.bundles.root_notes import with_root, without_roots
from app.storage.bundle_roots import BundleRoot, note
from app.storage.database import Database
from judges.result_files import write_atomic


async def record_root(database: Database, exported: ExportReport, *, content: bool) -> None:
    """Store the root hash for each result of a bundle. Raises DatabaseUnavailable."""
    root = BundleRoot(root_sha256=exported.root, content=content, created_at=datetime.now(UTC))
    async with database.begin() as connection:
        await note(connection, exported.results, root)


def record_root_in_files(evaluated: AgentResults, exported: ExportReport, *, content: bool) -> Iterator[str]:
    """Add the root hash to each result file of a bundle.

    Yield a sentence for each file that could not be updated. Blocks.
    """
    root = {"root_sha256": exported.root, "content": content, "created_at": time_json(datetime.now(UTC))}
    for judged in evaluated.judged:
        if judged.file is None:
            continue
        try:
            file = judged.file.read_bytes()
            if without_roots(file) != judged.body:
                yield f"{judged.file} changed during the export"
            elif exported.root.encode() not in (noted := with_root(file, root)):
                yield f"{judged.file} does not have the layout of a result file"
            elif noted != file:
                write_atomic(judged.file, noted)
        except OSError as error:
            yield f"{judged.file}: {error.strerror or error}"
