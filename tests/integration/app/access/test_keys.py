"""Key authentication against a real database. Two authenticators represent two processes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.access.keys import (
    MAX_CACHE_AGE_S,
    KeyAuthenticator,
    create_key,
)
from app.clock import SystemClock
from app.storage.database import Database
from app.storage.keys import revoke_key
from app.storage.records import Scope
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.postgres


async def authenticator_on(database: Database, **settings) -> KeyAuthenticator:
    authenticator = KeyAuthenticator(settings_for_tests(**settings), database, SystemClock())
    await authenticator.reload()
    return authenticator


def now() -> datetime:
    return datetime.now(UTC)


async def test_key_of_other_process_is_accepted_immediately(database: Database, monkeypatch: pytest.MonkeyPatch):
    await create_key(database, "otter", Scope.READ, now=now())
    authenticator = await authenticator_on(database)
    later, _ = await create_key(database, "heron", Scope.READ, now=now())
    authenticator._read_at = float("-inf")  # as if the last read was some time ago
    caller = await authenticator.authenticate(later)
    assert caller is not None
    assert caller.owner == "heron"


async def test_revoked_key_is_rejected_everywhere_within_five_seconds(database: Database):
    key, record = await create_key(database, "otter", Scope.ADMIN, now=now())
    authenticators = [await authenticator_on(database), await authenticator_on(database)]
    assert await revoke_key(database, record.id, now=now()) is not None
    for authenticator in authenticators:
        assert authenticator._read_at is not None
        authenticator._read_at -= MAX_CACHE_AGE_S  # five seconds later, without the regular refresh
        assert await authenticator.authenticate(key) is None


async def test_only_valid_keys_are_accepted(database: Database):
    key, _ = await create_key(database, "otter", Scope.READ, now=now())
    expired, _ = await create_key(database, "otter", Scope.READ, now=now(), expires_at=now() - timedelta(seconds=1))
    authenticator = await authenticator_on(database)
    caller = await authenticator.authenticate(key)
    assert caller is not None
    assert (caller.owner, caller.scope, caller.visible_owner) == ("otter", Scope.READ, "otter")
    altered = key[:-1] + ("A" if key[-1] != "A" else "B")
    for wrong in (None, "", "x" * 5000, "assay_0123456789_" + "A" * 43, "\ud800", altered, key + "A", expired):
        assert await authenticator.authenticate(wrong) is None
