"""Backup, environment checks, reindexing and retention."""
