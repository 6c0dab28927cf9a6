"""State that all processes on one database share: the secret, provider status, slots and the reply cache."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.storage.database import Database
from app.storage.provider_status import SharedProviderStatus
from app.storage.reply_cache import DatabaseReplyCache
from app.storage.shared_slots import SharedSlots
from app.storage.tables import installation


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedState:
    """Access of one process to the shared state. ``replies`` is None on a single machine."""

    secret: bytes
    provider_status: SharedProviderStatus
    slots: SharedSlots
    replies: DatabaseReplyCache | None = None


@asynccontextmanager
async def open_shared_state(
    database: Database, *, secret: bytes, redact: Callable[[str], str], reply_bytes: int = 0
) -> AsyncIterator[SharedState]:
    """Open the shared state during the block.

    Args:
        secret: Becomes the installation's secret if the database has none yet.
        redact: Removes secrets from provider messages.
        reply_bytes: Maximum size of the shared reply cache; 0 disables it.

    Raises:
        DatabaseUnavailable: The database cannot be reached.
    """
    status, slots = SharedProviderStatus(database, redact=redact), SharedSlots(database)
    await status.update_pauses()  # required before the first model request
    updating = asyncio.create_task(status.run(), name="provider status")
    try:
        async with AsyncExitStack() as stack:
            replies = None
            if reply_bytes:
                replies = await stack.enter_async_context(DatabaseReplyCache(database, max_bytes=reply_bytes).running())
            yield SharedState(
                secret=await shared_secret(database, secret), provider_status=status, slots=slots, replies=replies
            )
    finally:
        updating.cancel()
        await asyncio.wait({updating})
        await slots.aclose()


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
