"""What is the same for every process on one database, however many machines they run on."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.storage.database import Database
from app.storage.tables import installation

_SECRET = "secret"  # noqa: S105 - the name of a row


async def shared_secret(database: Database, proposed: bytes) -> bytes:
    """The secret of the installation; the first process's proposal becomes it.

    What it marks stays the same on every machine, so that one worker finds again what another has asked.

    Raises:
        DatabaseUnavailable
    """
    async with database.begin() as connection:
        offered = insert(installation).values(name=_SECRET, value=proposed.hex())
        await connection.execute(offered.on_conflict_do_nothing())
        query = select(installation.c.value).where(installation.c.name == _SECRET)
        return bytes.fromhex((await connection.execute(query)).scalar_one())
