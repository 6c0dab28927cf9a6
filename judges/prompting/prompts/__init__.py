"""Versioned prompt files and their loader."""
