"""The root hashes of bundles that results have gone into. Every function takes an open transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.results import owned_by
from app.storage.tables import bundle_roots, results


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRoot:
    """One bundle that a result is in. ``content``: whether what pages say is in it; ``created_at``: first exported."""

    root_sha256: str
    content: bool
    created_at: datetime


async def note(connection: AsyncConnection, result_ids: Iterable[str], root: BundleRoot) -> None:
    """Remember that these results are in a bundle; a result that was forgotten meanwhile is passed over."""
    found = await connection.execute(select(results.c.id).where(results.c.id.in_(list(result_ids))))
    rows = [
        {
            "result_id": result_id,
            "root_sha256": root.root_sha256,
            "content": root.content,
            "created_at": root.created_at,
        }
        for result_id in found.scalars()
    ]
    if rows:
        await connection.execute(insert(bundle_roots).on_conflict_do_nothing(), rows)


async def roots_by_result(connection: AsyncConnection, result_ids: Iterable[str]) -> Mapping[str, Sequence[BundleRoot]]:
    """The bundles of results, oldest first, by result; those that are in none are missing."""
    found: dict[str, list[BundleRoot]] = defaultdict(list)
    query = (
        select(bundle_roots)
        .where(bundle_roots.c.result_id.in_(list(result_ids)))
        .order_by(bundle_roots.c.created_at, bundle_roots.c.root_sha256)
    )
    for row in (await connection.execute(query)).mappings():
        fields = dict(row)
        found[fields.pop("result_id")].append(BundleRoot(**fields))
    return found


async def roots_of(connection: AsyncConnection, result_id: str, *, owner: str | None = None) -> list[BundleRoot] | None:
    """The bundles of one result, oldest first; None where there is no such result, or it is not ``owner``'s."""
    known = select(results.c.id).where(results.c.id == result_id, *owned_by(owner))
    if (await connection.execute(known)).first() is None:
        return None
    return list((await roots_by_result(connection, [result_id])).get(result_id, ()))
