from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta

import pytest

from app.access.keys import new_key
from app.observability.logs import MASK, Redactor
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


def test_keys_are_unique():
    made = {new_key("otter", Scope.READ, now=NOW)[0] for _ in range(1000)}
    assert len(made) == 1000


@pytest.mark.parametrize(
    ("scope", "opens"),
    [
        (Scope.READ, [True, False, False, False]),
        (Scope.SUBMIT, [True, True, False, False]),
        (Scope.OPERATOR, [True, True, True, False]),
        (Scope.ADMIN, [True, True, True, True]),
    ],
)
def test_each_scope_includes_the_ones_before(scope: Scope, opens: list[bool]):
    assert [scope.includes(needed) for needed in Scope] == opens


def test_key_is_usable_until_it_expires():
    _, record = new_key("otter", Scope.READ, now=NOW, expires_at=NOW + timedelta(days=1))
    assert record.usable(NOW)
    assert not record.usable(NOW + timedelta(days=1))


def test_unknown_key_in_a_log_message_is_masked():
    key, _ = new_key("otter", Scope.READ, now=NOW)
    assert Redactor().redact(f"asked with {key}!") == f"asked with {MASK}!"
