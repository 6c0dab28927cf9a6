"""The whole database as one file, and back, by PostgreSQL's own programs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import text

from app.errors import WrongSettings
from app.storage.database import Database
from app.storage.embedded import postgres_program
from app.storage.errors import DatabaseUnavailable

_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
}


async def dump(database: Database, file: Path) -> None:
    """Write everything, as of one moment, into ``file``.

    Raises:
        DatabaseUnavailable: it could not be read to its end.
    """
    await _run("pg_dump", "--format=custom", f"--file={file}", url=database.url)


async def load(database: Database, file: Path) -> None:
    """Read ``file`` into a database that is empty: all of it or nothing.

    Raises:
        WrongSettings: the database is not empty.
        DatabaseUnavailable: it refused; nothing was changed.
    """
    async with database.begin() as connection:
        tables = await connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
        if tables.scalar_one():
            raise WrongSettings("the database holds something already: restore into an empty one")
    name = str(conninfo_to_dict(database.url).get("dbname") or "postgres")
    options = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", f"--dbname={name}")
    await _run("pg_restore", *options, str(file), url=database.url)


async def _run(program: str, *arguments: str, url: str) -> None:
    """Run a program on the database. Its address goes by the environment, since everybody may list our arguments."""
    given = conninfo_to_dict(url)
    address = {variable: str(given[name]) for name, variable in _VARIABLES.items() if given.get(name)}
    process = await asyncio.create_subprocess_exec(
        postgres_program(program),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"LC_ALL": "C", "PATH": os.defpath, **address},
    )
    try:
        _, said = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise DatabaseUnavailable(f"{program} ended with {process.returncode}: {said.decode(errors='replace').strip()}")
