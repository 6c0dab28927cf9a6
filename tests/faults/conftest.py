"""Database fixtures of the integration tests."""

from __future__ import annotations

from tests.integration.app.conftest import database, database_url, fresh_database_url, postgres_url, rig

__all__ = ["database", "database_url", "fresh_database_url", "postgres_url", "rig"]
