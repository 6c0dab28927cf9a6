"""Backup, health checks, reindexing and retention."""
