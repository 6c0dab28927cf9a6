"""Dump and restore of the whole database with ``pg_dump`` and ``pg_restore``."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from sqlalchemy import text

from app.errors import InvalidSettings
from app.storage.database import Database
from app.storage.embedded import postgres_program
from app.storage.errors import DatabaseUnavailable


def connection_variables(url: str) -> dict[str, str]:
    """Return a connection URL as environment variables of PostgreSQL's client programs."""
    conninfo = conninfo_to_dict(url)
    names = {each.keyword.decode(): each.envvar.decode() for each in Conninfo.get_defaults() if each.envvar}
    return {names[key]: str(value) for key, value in conninfo.items() if value and key in names}


async def dump(database: Database, file: Path) -> None:
    """Write a consistent snapshot of the database to ``file``.

    Raises:
        DatabaseUnavailable: ``pg_dump`` failed.
    """
    await _run(database, "pg_dump", "--format=custom", f"--file={file}")


async def require_empty(database: Database) -> None:
    """Raise InvalidSettings if the database has tables."""
    async with database.begin() as connection:
        tables = await connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
        if tables.scalar_one():
            raise InvalidSettings("The database is not empty: restore into an empty one")


async def load(database: Database, file: Path) -> None:
    """Restore ``file`` into an empty database in one transaction.

    Raises:
        DatabaseUnavailable: ``pg_restore`` failed. Nothing was changed.
    """
    name = str(conninfo_to_dict(database.url).get("dbname") or "postgres")
    options = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", f"--dbname={name}")
    await _run(database, "pg_restore", *options, str(file))


async def _run(database: Database, program: str, *arguments: str) -> None:
    """Run a PostgreSQL client program.

    Connection data is passed in the environment, because other users of the machine can read command line arguments.
    """
    async with database.begin() as connection:
        version = int((await connection.execute(text("SHOW server_version_num"))).scalar_one()) // 10000
    process = await asyncio.create_subprocess_exec(
        postgres_program(program, version),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"LC_ALL": "C", "PATH": os.defpath, **connection_variables(database.url)},
    )
    try:
        _, output = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        message = output.decode(errors="replace").strip()
        raise DatabaseUnavailable(f"{program} failed with exit code {process.returncode}: {message}")
