"""Dump and restore of a database on a server of an older release of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from app.storage import embedded
from app.storage.database import open_database
from app.storage.dumping import dump, load
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.postgres


async def test_dump_of_a_server_before_17_is_restored_into_such_a_server(
    server_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(embedded, "PG_VERSION", 16)
    async with open_database(settings_for_tests(data_dir=server_folder / "one")) as database:
        await dump(database, server_folder / "database.dump")
    async with open_database(settings_for_tests(data_dir=server_folder / "two"), migrated=False) as database:
        await load(database, server_folder / "database.dump")
        async with database.begin() as connection:
            assert (await connection.execute(text("SHOW server_version_num"))).scalar_one().startswith("16")
            assert (await connection.execute(text("SELECT count(*) FROM results"))).scalar_one() == 0
