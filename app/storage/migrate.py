"""Schema migrations: our tables with Alembic, the job queue's tables with procrastinate's scripts.

All migrations run in one transaction under one lock. Many processes can start at once, and an interrupted migration is
rolled back.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import structlog
from procrastinate.schema import SchemaManager
from sqlalchemy import Connection, column, insert, select, table, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.errors import OtherSchema
from app.storage.tables import queue_migrations, schema_revision

_LOCK = 0x61737361  # "assa"
_log = structlog.get_logger(__name__)


_SCRIPTS = Path(__file__).with_name("migrations")
_VERSION_TABLE = "alembic_version"


async def migrate(connection: AsyncConnection) -> None:
    """Apply missing migrations. Call in a separate transaction.

    Raises:
        OtherSchema: Another version of assay has created or migrated the database.
    """
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if await _revision(connection) != await asyncio.to_thread(schema_revision):
        await connection.run_sync(_migrate_tables)
    await _migrate_queue(connection)


async def _revision(connection: AsyncConnection) -> str | None:
    """Return the revision that Alembic has recorded, or None in a new database."""
    has_table = await connection.execute(text("SELECT to_regclass(:name) IS NOT NULL"), {"name": _VERSION_TABLE})
    if not has_table.scalar_one():
        return None
    return (await connection.execute(select(column("version_num")).select_from(table(_VERSION_TABLE)))).scalar()


def _migrate_tables(connection: Connection) -> None:
    # Alembic takes a tenth of a second to import, and most processes find a current database.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    script = ScriptDirectory(str(_SCRIPTS))

    def steps(revision: Any, _context: Any) -> Any:
        try:
            revisions = script._upgrade_revs("head", revision)
        except CommandError as error:
            raise OtherSchema(
                f"The database was made by another version of assay (schema {', '.join(revision)}): start a new data "
                "folder with ASSAY_DATA_DIR, or an empty database with ASSAY_DATABASE_URL, or run that version"
            ) from error
        for step in revisions:
            _log.info("migrating database", step=str(step))
        return revisions

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=_VERSION_TABLE)
        environment.run_migrations()


async def _migrate_queue(connection: AsyncConnection) -> None:
    """Create procrastinate's schema, or apply the migration scripts that its newer release has added."""
    scripts = await asyncio.to_thread(_queue_scripts)
    known = set((await connection.execute(select(queue_migrations.c.name))).scalars())
    missing = [script for script in scripts if script.name not in known]
    if not known:
        await _run_script(connection, SchemaManager.get_schema())
    else:
        for script in missing:
            _log.info("migrating queue", step=script.name)
            await _run_script(connection, await asyncio.to_thread(script.read_text, "utf-8"))
    if missing:
        await connection.execute(insert(queue_migrations), [{"name": script.name} for script in missing])


def _queue_scripts() -> list[Path]:
    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))


async def _run_script(connection: AsyncConnection, script: str) -> None:
    # Use the driver directly: the script has several statements, and text that looks like bind parameters.
    raw = (await connection.get_raw_connection()).driver_connection
    assert raw is not None  # noqa: S101 - a checked-out connection has a driver connection
    await raw.execute(script)
