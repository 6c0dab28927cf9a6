"""What the processes on one database share besides rows: a secret, places, word of refused keys, models' replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.storage.database import Database
from app.storage.installation import shared_secret
from app.storage.model_lines import ModelLines
from app.storage.shared_replies import SharedReplies
from app.storage.shared_slots import SharedSlots


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """One process's part in it. ``replies`` is None where each machine keeps its own."""

    secret: bytes
    lines: ModelLines
    slots: SharedSlots
    replies: SharedReplies | None = None


@asynccontextmanager
async def open_sharing(
    database: Database, *, secret: bytes, redact: Callable[[str], str], reply_bytes: int = 0
) -> AsyncIterator[Sharing]:
    """Take part for as long as the block lasts. ``secret`` is used if the database has none yet.

    ``reply_bytes``: how much of the models' replies is kept for all; 0: none is.

    Raises:
        DatabaseUnavailable
    """
    lines, slots = ModelLines(database, redact=redact), SharedSlots(database)
    await lines.look_for_pauses()  # before the first request can be made
    listening = asyncio.create_task(lines.run(), name="model lines")
    try:
        async with AsyncExitStack() as stack:
            replies = None
            if reply_bytes:
                replies = await stack.enter_async_context(SharedReplies(database, max_bytes=reply_bytes).running())
            yield Sharing(secret=await shared_secret(database, secret), lines=lines, slots=slots, replies=replies)
    finally:
        listening.cancel()
        await asyncio.wait({listening})
        await slots.aclose()
