"""Migrations of the tables of the core."""
