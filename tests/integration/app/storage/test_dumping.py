"""Dump and restore of a database on a server of an older release of PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from app.storage import embedded
from app.storage.database import open_database
from app.storage.dumping import dump, load
from tests.fakes.folders import service_folder
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.postgres


@pytest.fixture
def folder() -> Iterator[Path]:
    path = service_folder("assay-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


async def test_dump_of_a_server_before_17_is_restored_into_such_a_server(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embedded, "PG_VERSION", 16)
    async with open_database(settings_for_tests(data_dir=folder / "one")) as database:
        await dump(database, folder / "database.dump")
    async with open_database(settings_for_tests(data_dir=folder / "two"), migrated=False) as database:
        await load(database, folder / "database.dump")
        async with database.begin() as connection:
            assert (await connection.execute(text("SHOW server_version_num"))).scalar_one().startswith("16")
            assert (await connection.execute(text("SELECT count(*) FROM results"))).scalar_one() == 0
