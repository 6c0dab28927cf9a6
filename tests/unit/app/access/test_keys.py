from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta

import pytest

from app.access.keys import new_key
from app.storage.records import Scope

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_key_has_a_public_id_and_256_random_bits():
    key, record = new_key("otter", Scope.SUBMIT, now=NOW)
    word, key_id, secret = re.fullmatch(r"(assay)_([0-9a-z]{10})_(.+)", key).groups()  # type: ignore[union-attr]
    assert (word, key_id) == ("assay", record.id)
    assert len(base64.urlsafe_b64decode(secret + "=")) * 8 == 256


def test_record_of_a_key_does_not_contain_the_secret():
    key, record = new_key("otter", Scope.READ, now=NOW)
    assert key.split("_", 2)[2] not in repr(record)
    assert len(record.sha256) == 64


@pytest.mark.parametrize(
    ("scope", "opens"),
    [
        (Scope.SUBMIT, [True, True, False, False]),
        (Scope.OPERATOR, [True, True, True, False]),
    ],
)
def test_each_scope_includes_the_ones_before(scope: Scope, opens: list[bool]):
    assert [scope.includes(needed) for needed in Scope] == opens


def test_key_is_usable_until_it_expires():
    _, record = new_key("otter", Scope.READ, now=NOW, expires_at=NOW + timedelta(days=1))
    assert record.usable(NOW)
    assert not record.usable(NOW + timedelta(days=1))
