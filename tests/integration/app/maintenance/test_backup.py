"""Backup and restore with an embedded database; the commands are tested in ``tests/acceptance/test_backup.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import InvalidSettings
from app.maintenance.backup import back_up, restore
from app.storage.database import open_database
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.postgres


async def test_restore_that_failed_is_repeated_and_creates_the_data_folder(server_folder: Path) -> None:
    source = settings_for_tests(data_dir=server_folder / "source")
    async with open_database(source) as database:
        (source.data_dir / "blobs").mkdir()
        (source.data_dir / "secret").write_text("secret of the installation")
        await back_up(source, database, server_folder / "backup")
    (server_folder / "file").touch()
    async with open_database(settings_for_tests(data_dir=server_folder / "server"), migrated=False) as database:
        with pytest.raises(InvalidSettings, match="the database was not restored"):
            unusable = settings_for_tests(
                data_dir=server_folder / "target", blobs=(server_folder / "file/blobs").as_uri()
            )
            await restore(unusable, database, server_folder / "backup")
        target = settings_for_tests(data_dir=server_folder / "other", blobs="s3://bucket/prefix")
        await restore(target, database, server_folder / "backup")
    assert (target.data_dir / "secret").read_text() == "secret of the installation"
