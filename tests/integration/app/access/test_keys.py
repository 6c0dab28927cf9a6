"""Keys against a real database, two key rings standing for two processes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.access.keys import (
    LOCAL_CALLER,
    MAX_CACHE_AGE_S,
    KeyAuthenticator,
    create_key,
    load_keys,
    replace_key,
    revoke_stored_key,
)
from app.clock import SystemClock
from app.storage.database import Database
from app.storage.records import Scope
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.postgres


async def ring_on(database: Database, **settings) -> KeyAuthenticator:
    ring = KeyAuthenticator(settings_for_tests(**settings), database, SystemClock())
    await ring.read()
    return ring


def now() -> datetime:
    return datetime.now(UTC)


async def test_without_any_key_everybody_on_this_machine_may_ask(database: Database):
    ring = await ring_on(database)
    assert not ring.needed
    assert await ring.authenticate(None) == LOCAL_CALLER


async def test_the_holder_of_a_key_is_its_owner_with_its_scope(database: Database):
    key, _ = await create_key(database, "otter", Scope.READ, now=now())
    ring = await ring_on(database)
    caller = await ring.authenticate(key)
    assert caller is not None
    assert (caller.owner, caller.scope, caller.visible_owner) == ("otter", Scope.READ, "otter")


@pytest.mark.parametrize("wrong", [None, "", "assay_", "x" * 5000, "assay_0123456789_" + "A" * 43, "\ud800"])
async def test_what_is_no_key_opens_nothing(database: Database, wrong: str | None):
    await create_key(database, "otter", Scope.READ, now=now())
    assert await (await ring_on(database)).authenticate(wrong) is None


async def test_a_key_with_one_letter_changed_opens_nothing(database: Database):
    key, _ = await create_key(database, "otter", Scope.READ, now=now())
    ring = await ring_on(database)
    assert await ring.authenticate(key[:-1] + ("A" if key[-1] != "A" else "B")) is None
    assert await ring.authenticate(key + "A") is None


async def test_a_key_made_elsewhere_is_known_without_waiting(database: Database, monkeypatch: pytest.MonkeyPatch):
    await create_key(database, "otter", Scope.READ, now=now())
    ring = await ring_on(database)
    later, _ = await create_key(database, "heron", Scope.READ, now=now())
    ring._read_at = float("-inf")  # as if it had been read a while ago
    caller = await ring.authenticate(later)
    assert caller is not None
    assert caller.owner == "heron"


async def test_a_revoked_key_is_refused_by_every_process_within_five_seconds(database: Database):
    key, record = await create_key(database, "otter", Scope.ADMIN, now=now())
    rings = [await ring_on(database), await ring_on(database)]
    assert await revoke_stored_key(database, record.id, now=now()) is not None
    for ring in rings:
        assert ring._read_at is not None
        ring._read_at -= MAX_CACHE_AGE_S  # five seconds later, even where the regular refresh does not come through
        assert await ring.authenticate(key) is None


async def test_when_the_last_key_is_revoked_the_service_does_not_open(database: Database):
    _, record = await create_key(database, "otter", Scope.ADMIN, now=now())
    await revoke_stored_key(database, record.id, now=now())
    ring = await ring_on(database)
    assert ring.needed
    assert await ring.authenticate(None) is None


async def test_an_expired_key_opens_nothing(database: Database):
    key, _ = await create_key(database, "otter", Scope.READ, now=now(), expires_at=now() - timedelta(seconds=1))
    assert await (await ring_on(database)).authenticate(key) is None


async def test_two_keys_overlap_while_one_replaces_the_other(database: Database):
    old, record = await create_key(database, "otter", Scope.SUBMIT, now=now())
    made = await replace_key(database, record.id, now=now(), old_ends=now() + timedelta(hours=1))
    assert made is not None
    new, replacing = made
    ring = await ring_on(database)
    callers = [await ring.authenticate(key) for key in (old, new)]
    assert callers[0] == callers[1] is not None
    assert (replacing.owner, replacing.scope) == ("otter", Scope.SUBMIT)


async def test_a_key_can_be_replaced_at_once(database: Database):
    old, record = await create_key(database, "otter", Scope.SUBMIT, now=now())
    moment = now()
    made = await replace_key(database, record.id, now=moment, old_ends=moment)
    assert made is not None
    ring = await ring_on(database)
    assert await ring.authenticate(old) is None
    assert await ring.authenticate(made[0]) is not None


async def test_a_revoked_key_cannot_be_replaced(database: Database):
    _, record = await create_key(database, "otter", Scope.SUBMIT, now=now())
    await revoke_stored_key(database, record.id, now=now())
    assert await replace_key(database, record.id, now=now(), old_ends=now()) is None
    assert await replace_key(database, "nothing", now=now(), old_ends=now()) is None
    assert len(await load_keys(database)) == 1


async def test_configured_keys_work_beside_stored_ones_and_see_only_their_own(database: Database):
    key, _ = await create_key(database, "otter", Scope.READ, now=now())
    ring = await ring_on(database, api_keys="first,second")
    callers = [await ring.authenticate(each) for each in ("first", "second", key)]
    assert len({caller.owner for caller in callers if caller is not None}) == 3
    assert [caller.visible_owner for caller in callers if caller is not None][:2] == [
        caller.owner for caller in callers if caller is not None
    ][:2]
