"""Table of the bundles that contain a result, and its queries. Call every function inside a transaction."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Boolean, Column, DateTime, ForeignKey, Table, Text, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.results import owned_by
from app.storage.tables import metadata, results

bundle_roots = Table(
    "bundle_roots",
    metadata,
    Column("result_id", Text, ForeignKey("results.id", ondelete="CASCADE"), primary_key=True),
    Column("root_sha256", Text, primary_key=True),
    # Whether the bundle includes page contents.
    Column("content", Boolean, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRoot:
    """Bundle that contains a result.

    ``content``: whether the bundle includes page contents. ``created_at``: time of the first export.
    """

    root_sha256: str
    content: bool
    created_at: datetime


async def record_bundle_root(connection: AsyncConnection, result_ids: Iterable[str], root: BundleRoot) -> None:
    """Record that a bundle contains these results. Skip results that have been removed."""
    known = await connection.execute(select(results.c.id).where(results.c.id.in_(list(result_ids))))
    rows = [{"result_id": result_id, **dataclasses.asdict(root)} for result_id in known.scalars()]
    if rows:
        await connection.execute(insert(bundle_roots).on_conflict_do_nothing(), rows)


async def roots_by_result(connection: AsyncConnection, result_ids: Iterable[str]) -> Mapping[str, Sequence[BundleRoot]]:
    """Return the bundles by result ID, oldest first. Results without a bundle are omitted."""
    roots: dict[str, list[BundleRoot]] = defaultdict(list)
    query = (
        select(bundle_roots)
        .where(bundle_roots.c.result_id.in_(list(result_ids)))
        .order_by(bundle_roots.c.created_at, bundle_roots.c.root_sha256)
    )
    for row in (await connection.execute(query)).mappings():
        fields = dict(row)
        roots[fields.pop("result_id")].append(BundleRoot(**fields))
    return roots


async def roots_of(connection: AsyncConnection, result_id: str, *, owner: str | None = None) -> list[BundleRoot] | None:
    """Return the bundles of one result, oldest first. Return None if ``owner`` has no such result."""
    known = select(results.c.id).where(results.c.id == result_id, *owned_by(owner))
    if (await connection.execute(known)).first() is None:
        return None
    return list((await roots_by_result(connection, [result_id])).get(result_id, ()))
