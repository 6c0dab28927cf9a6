"""The rows of paired browsers: a code that is shown once, and the token that it was exchanged for. Only hashes of both
are here. Every function takes an open transaction."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import RowMapping, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import pairings


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One code, and the browser that used it. ``owner`` is whose code it was: in their name pages are handed in;
    ``everybody``: they see what others handed in."""

    id: str
    code_sha256: str
    owner: str
    everybody: bool
    made_at: datetime
    code_expires_at: datetime
    token_sha256: str | None = None
    name: str | None = None
    paired_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def usable(self, now: datetime) -> bool:
        """Whether the browser may hand pages in."""
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
    """Exchange a code for a token, once; None where it is wrong, used, too old or revoked."""
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
    """The pairing that a token is of, whatever became of it."""
    query = select(*pairings.c).where(pairings.c.token_sha256 == token_sha256)
    return _first(list((await connection.execute(query)).mappings()))


async def list_pairings(
    connection: AsyncConnection, *, limit: int, before: str | None = None, owner: str | None = None
) -> list[Pairing]:
    """Newest first."""
    query = select(*pairings.c).order_by(pairings.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(pairings.c.id < before)
    if owner is not None:
        query = query.where(pairings.c.owner == owner)
    return [Pairing(**row) for row in (await connection.execute(query)).mappings()]


async def revoke_pairing(
    connection: AsyncConnection, pairing_id: str, *, now: datetime, owner: str | None = None
) -> Pairing | None:
    """End a pairing for good, code and token; the first revocation stands. None when there is none, or not one of
    ``owner``'s."""
    query = (
        update(pairings)
        .where(pairings.c.id == pairing_id, *([] if owner is None else [pairings.c.owner == owner]))
        .values(revoked_at=func.coalesce(pairings.c.revoked_at, now))
        .returning(*pairings.c)
    )
    return _first(list((await connection.execute(query)).mappings()))


def _first(rows: list[RowMapping]) -> Pairing | None:
    return Pairing(**rows[0]) if rows else None
