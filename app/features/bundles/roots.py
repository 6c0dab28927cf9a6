"""Noting with results which bundles they are in: a bundle cannot hold its own hash, so no note is in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from app.api.overrides import time_json
from app.features.bundles.exporting import Exported
from app.features.bundles.root_notes import with_root, without_roots
from app.features.bundles.sources import Evaluated
from app.storage.bundle_roots import BundleRoot, note
from app.storage.database import Database
from judges.result_files import write_whole


async def note_root(database: Database, made: Exported, *, content: bool) -> None:
    """Note the root hash beside each result of a bundle. Raises DatabaseUnavailable."""
    root = BundleRoot(root_sha256=made.root, content=content, created_at=datetime.now(UTC))
    async with database.begin() as connection:
        await note(connection, made.results, root)


def note_in_files(evaluated: Evaluated, made: Exported, *, content: bool) -> Iterator[str]:
    """Note the root hash in each result file of a bundle; says in a sentence each where it could not be. Blocks."""
    root = {"root_sha256": made.root, "content": content, "created_at": time_json(datetime.now(UTC))}
    for judged in evaluated.judged:
        if judged.file is None:
            continue
        try:
            file = judged.file.read_bytes()
            if without_roots(file) != judged.body:
                yield f"{judged.file} has changed meanwhile"
            elif made.root.encode() not in (noted := with_root(file, root)):
                yield f"{judged.file} is not written as results are"
            elif noted != file:
                write_whole(judged.file, noted)
        except OSError as error:
            yield f"{judged.file}: {error.strerror or error}"
