"""Table of browser pairings and its queries: a one-time code and the token that it was exchanged for.

Only hashes of the code and the token are stored. Call every function inside a transaction.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Boolean, Column, DateTime, RowMapping, Table, Text, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.listings import below, equal
from app.storage.tables import metadata

# Paired browsers that may submit pages. Only hashes of the code and the token are stored.
pairings = Table(
    "pairings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("code_sha256", Text, nullable=False, unique=True),
    Column("owner", Text, nullable=False),
    # Whether the owner of the code sees the data of all owners.
    Column("sees_all_owners", Boolean, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("code_expires_at", DateTime(timezone=True), nullable=False),
    Column("token_sha256", Text),
    Column("name", Text),
    Column("paired_at", DateTime(timezone=True)),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Pairing code and the browser that used it.

    The browser submits pages as ``owner``, who created the code. ``sees_all_owners``: the owner may see the data of all
    owners.
    """

    id: str
    code_sha256: str
    owner: str
    sees_all_owners: bool
    created_at: datetime
    code_expires_at: datetime
    token_sha256: str | None = None
    name: str | None = None
    paired_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def usable(self, now: datetime) -> bool:
        """Return whether the browser may submit pages."""
        return self.expires_at is not None and now < self.expires_at and self.revoked_at is None


async def insert_pairing(connection: AsyncConnection, pairing: Pairing) -> None:
    await connection.execute(insert(pairings).values(**dataclasses.asdict(pairing)))


async def use_code(
    connection: AsyncConnection,
    code_sha256: str,
    *,
    token_sha256: str,
    name: str,
    now: datetime,
    expires_at: datetime,
) -> Pairing | None:
    """Exchange a code for a token. Return None if the code is unknown, used, expired or revoked."""
    query = (
        update(pairings)
        .where(
            pairings.c.code_sha256 == code_sha256,
            pairings.c.paired_at.is_(None),
            pairings.c.revoked_at.is_(None),
            pairings.c.code_expires_at > now,
        )
        .values(token_sha256=token_sha256, name=name, paired_at=now, expires_at=expires_at)
        .returning(*pairings.c)
    )
    return _first(list((await connection.execute(query)).mappings()))


async def find_pairing(connection: AsyncConnection, token_sha256: str) -> Pairing | None:
    """Return the pairing of a token, even if it is expired or revoked. Return None if there is none."""
    query = select(*pairings.c).where(pairings.c.token_sha256 == token_sha256)
    return _first(list((await connection.execute(query)).mappings()))


async def list_pairings(
    connection: AsyncConnection, *, limit: int, before: str | None = None, owner: str | None = None
) -> list[Pairing]:
    """Return pairings, newest first. ``before`` is the ID of the last one of the previous page."""
    query = select(*pairings.c).where(*equal((pairings.c.owner, owner)), *below(pairings.c.id, before))
    query = query.order_by(pairings.c.id.desc()).limit(limit)
    return [Pairing(**row) for row in (await connection.execute(query)).mappings()]


async def revoke_pairing(
    connection: AsyncConnection, pairing_id: str, *, now: datetime, owner: str | None = None
) -> Pairing | None:
    """Revoke the code and the token of a pairing. Keep the time of the first revocation.

    Return None if ``owner`` (None: any owner) has no such pairing.
    """
    query = (
        update(pairings)
        .where(pairings.c.id == pairing_id, *equal((pairings.c.owner, owner)))
        .values(revoked_at=func.coalesce(pairings.c.revoked_at, now))
        .returning(*pairings.c)
    )
    return _first(list((await connection.execute(query)).mappings()))


def _first(rows: list[RowMapping]) -> Pairing | None:
    return Pairing(**rows[0]) if rows else None
