"""Message about a database that cannot be reached."""

from __future__ import annotations

import pytest

from app.storage.database import connect_database
from app.storage.errors import DatabaseUnavailable


async def test_message_has_the_reason_and_no_password():
    async with connect_database("postgresql://walker:pw-secret@127.0.0.1:1/assay") as database:
        with pytest.raises(DatabaseUnavailable, match=r"port 1 failed: Connection refused$") as raised:
            async with database.begin():
                pass
    assert "pw-secret" not in str(raised.value)
