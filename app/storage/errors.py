"""Errors of the storage layer.

StorageError (app.errors.AppError)
├── DatabaseUnavailable      the database cannot be reached; retry later
│   └── StorageFull          the disk of the database is full
├── OtherSchema              another version of assay has created or migrated the database
├── DataFolderRefused        the data folder belongs to another user, or cannot be used
├── KeyReused                the Idempotency-Key was used for a different request
└── KeyInProgress            the first request with this key is still running
"""

from __future__ import annotations

from app.errors import AppError


class StorageError(AppError):
    """Base class of the storage errors."""


class DatabaseUnavailable(StorageError):
    """The database cannot be reached."""


def database_unavailable(cause: BaseException) -> DatabaseUnavailable:
    """Return the error for an error of the driver, whose message names server, user and database, but no password."""
    reason = next(iter(str(cause).splitlines()), type(cause).__name__)
    return DatabaseUnavailable(f"The database is unavailable: {reason}")


class StorageFull(DatabaseUnavailable):
    """The disk of the database is full. Nothing was written."""


class OtherSchema(StorageError):
    """The schema revision of the database is unknown to this version."""


class DataFolderRefused(StorageError):
    """The folder of the embedded PostgreSQL cannot be used by this user or this release."""


class KeyReused(StorageError):
    """The Idempotency-Key was used for a different request."""


class KeyInProgress(StorageError):
    """The first request with this Idempotency-Key is still running."""
