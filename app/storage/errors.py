"""What can go wrong between us and the database.

StorageError (app.errors.AppError)
├── DatabaseUnavailable      not reachable right now; worth another try later
│   └── StorageFull          reachable, but there is no room left to write anything down
├── DatabaseTooNew           written by a newer release than this one
├── DataFolderRefused        the data folder belongs to somebody else, or cannot be used
└── IdempotencyConflict
    ├── KeyReused            the same Idempotency-Key came with another request
    └── KeyInProgress        the first request with this key has not ended yet
"""

from __future__ import annotations

from app.errors import AppError


class StorageError(AppError):
    """Base of the storage errors."""


class DatabaseUnavailable(StorageError):
    """The database does not answer; nothing was written."""


class StorageFull(DatabaseUnavailable):
    """The database has no room left; nothing was written."""


class DatabaseTooNew(StorageError):
    """The schema has a revision this release does not know."""


class DataFolderRefused(StorageError):
    """The folder of the private PostgreSQL cannot be used by this user or this release."""


class IdempotencyConflict(StorageError):
    """An Idempotency-Key cannot be honoured."""


class KeyReused(IdempotencyConflict):
    """The key was used for another request before."""


class KeyInProgress(IdempotencyConflict):
    """The first request with this key is still under way."""
