"""Root hashes of bundles, recorded with the results that a bundle contains.

The record is stored outside the bundle, because a bundle cannot contain its own hash: in the database, or at the end of
the result file, from which it can be removed again byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from app.api.overrides import time_json
from app.features.bundles.storage import BundleRoot, record_bundle_root
from app.storage.database import Database
from cache.atomic_files import write_atomic

if TYPE_CHECKING:
    from app.features.bundles.agent_results import AgentResults
    from app.features.bundles.exporting import ExportReport

_MARKER: Final = b',\n  "bundles": '
_END: Final = b"\n}\n"
_FIELDS: Final = {"root_sha256", "content", "created_at"}


async def record_root(database: Database, exported: ExportReport, *, content: bool) -> None:
    """Store the root hash for each result of a bundle. Raises DatabaseUnavailable."""
    root = BundleRoot(root_sha256=exported.root, content=content, created_at=datetime.now(UTC))
    async with database.begin() as connection:
        await record_bundle_root(connection, exported.results, root)


def root_json(root: BundleRoot) -> dict[str, Any]:
    """Return one bundle as results list it."""
    return {"root_sha256": root.root_sha256, "content": root.content, "created_at": time_json(root.created_at)}


def record_root_in_files(results: AgentResults, exported: ExportReport, *, content: bool) -> Iterator[str]:
    """Add the root hash to each result file of a bundle.

    Yield a sentence for each file that could not be updated. Blocks.
    """
    root = root_json(BundleRoot(root_sha256=exported.root, content=content, created_at=datetime.now(UTC)))
    for judged in results.judged:
        if judged.file is None:
            continue
        try:
            file = judged.file.read_bytes()
            if without_roots(file) != judged.body:
                yield f"{judged.file} changed during the export"
            elif exported.root.encode() not in (with_record := with_root(file, root)):
                yield f"{judged.file} does not have the layout of a result file"
            elif with_record != file:
                write_atomic(judged.file, with_record)
        except OSError as error:
            yield f"{judged.file}: {error.strerror or error}"


def without_roots(file: bytes) -> bytes:
    """Return a result file without recorded bundles, byte for byte as it was first written."""
    return _split(file)[0]


def with_root(file: bytes, root: dict[str, Any]) -> bytes:
    """Return a result file with one more bundle recorded.

    Unchanged if it is already recorded, or if the file layout is unknown.
    """
    before, recorded = _split(file)
    if not before.endswith(_END) or root["root_sha256"] in [each["root_sha256"] for each in recorded]:
        return file
    return before.removesuffix(_END) + _MARKER + json.dumps([*recorded, root]).encode() + _END


def _split(file: bytes) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the file without the recorded bundles, and the bundles.

    The marker cannot occur inside a JSON string because of its line break.
    """
    before, marker, rest = file.rpartition(_MARKER)
    document = rest.removesuffix(_END)
    if not marker or document == rest or b"\n" in document:
        return file, []
    try:
        recorded = json.loads(document)
    except ValueError:
        return file, []
    if (
        not isinstance(recorded, list)
        or not recorded
        or not all(isinstance(each, dict) and each.keys() == _FIELDS for each in recorded)
    ):
        return file, []
    return before + _END, recorded
