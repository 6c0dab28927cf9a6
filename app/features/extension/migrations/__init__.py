"""Migrations of the tables of ``app.features.extension``."""
