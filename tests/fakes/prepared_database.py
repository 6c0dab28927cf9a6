"""Private databases of services, copied from one that is created and migrated once per test process.

``assay demo`` and the service without extras create theirs in the tests.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import shutil
import subprocess
from pathlib import Path

from app.storage.database import connect_database, migrate
from app.storage.embedded import EmbeddedPostgres
from tests.fakes.folders import service_folder


def prepare_database(home: Path) -> None:
    """Create the data folder of a service in ``home`` with an empty, migrated database, unless it exists."""
    if (home / "data").exists():
        return
    (home / "data").mkdir(mode=0o700)
    subprocess.run(["cp", "-a", str(_template()), str(home / "data/postgres")], check=True)


@functools.cache
def _template() -> Path:
    folder = service_folder("assay-template-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = EmbeddedPostgres(folder)
    url = server.start()

    async def prepare() -> None:
        async with connect_database(url) as database, database.begin() as connection:
            await migrate(connection)

    try:
        asyncio.run(prepare())
    finally:
        server.stop()
    return folder / "postgres"
