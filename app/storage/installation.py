"""Values that all processes on one database share, on any number of machines."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.storage.database import Database
from app.storage.tables import installation

_SECRET = "secret"  # noqa: S105 - the name of a row


async def shared_secret(database: Database, proposed: bytes) -> bytes:
    """Return the secret of the installation. The first process sets it to ``proposed``.

    The secret determines the markers around untrusted text in prompts. With one secret, all workers send identical
    requests and share cached replies.

    Raises:
        DatabaseUnavailable: The database cannot be reached.
    """
    async with database.begin() as connection:
        offered = insert(installation).values(name=_SECRET, value=proposed.hex())
        await connection.execute(offered.on_conflict_do_nothing())
        query = select(installation.c.value).where(installation.c.name == _SECRET)
        return bytes.fromhex((await connection.execute(query)).scalar_one())
