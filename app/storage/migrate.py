"""Schema migrations: our tables with Alembic, the job queue's tables with procrastinate's scripts.

The core and each feature with tables have their own scripts and record their own revision, so a database stays usable
if a feature is deleted.

All migrations run in one transaction under one lock. Many processes can start at once, and an interrupted migration is
rolled back.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from procrastinate.schema import SchemaManager
from sqlalchemy import Connection, column, insert, select, table, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.errors import DatabaseTooNew
from app.storage.tables import queue_migrations

_LOCK = 0x61737361  # "assa"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Migration scripts of the core or of one feature."""

    scripts: Path
    version_table: str
    """Table in which Alembic records the revision."""

    @property
    def newest_revision(self) -> str:
        """Revision of the last script: the number in its file name, such as ``m0001_initial.py``."""
        return max(path.name for path in (self.scripts / "versions").glob("m*.py"))[1:5]


def histories() -> list[History]:
    """Return the history of the core, then those of the features, whose tables can refer to tables of the core."""
    from app import features

    folder = Path(features.__file__).parent
    return [
        History(scripts=Path(__file__).with_name("migrations"), version_table="alembic_version"),
        *(
            History(scripts=folder / feature.name / "migrations", version_table=f"alembic_version_{feature.name}")
            for feature in features.FEATURES
            if feature.tables
        ),
    ]


async def migrate(connection: AsyncConnection) -> None:
    """Apply missing migrations. Call in a separate transaction.

    Raises:
        DatabaseTooNew: A newer release has migrated the database.
    """
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    for history in histories():
        if await _revision(connection, history.version_table) != history.newest_revision:
            await connection.run_sync(_migrate_tables, history)
    await _migrate_queue(connection)


async def _revision(connection: AsyncConnection, version_table: str) -> str | None:
    """Return the revision that Alembic has recorded in ``version_table``, or None if it does not exist."""
    has_table = await connection.execute(text("SELECT to_regclass(:name) IS NOT NULL"), {"name": version_table})
    if not has_table.scalar_one():
        return None
    return (await connection.execute(select(column("version_num")).select_from(table(version_table)))).scalar()


def _migrate_tables(connection: Connection, history: History) -> None:
    # Alembic takes a tenth of a second to import, and most processes find a current database.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    script = ScriptDirectory(str(history.scripts))

    def steps(revision: Any, _context: Any) -> Any:
        try:
            revisions = script._upgrade_revs("head", revision)
        except CommandError as error:
            raise DatabaseTooNew(
                f"The database has schema revision {', '.join(revision)}, but this release supports revisions up to "
                f"{script.get_current_head()}: start the newer release, or restore an older backup"
            ) from error
        for step in revisions:
            _log.info("migrating database", step=str(step), version_table=history.version_table)
        return revisions

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=history.version_table)
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
